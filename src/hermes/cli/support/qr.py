"""Draw QR codes for a terminal of 80 columns: up to 425 bytes, weakest error correction, two module rows to a line."""

from __future__ import annotations

from hermes.services.adapters.qr import encode

_QUIET = 4


def drawn(text: str, *, in_colour: bool) -> str:
    """The code as lines of a terminal. ``in_colour``: they are shown black on white, whatever its colours are."""
    matrix = encode(text)
    wide = len(matrix) + 2 * _QUIET
    blank = [[False] * wide for _ in range(_QUIET)]
    sides = [False] * _QUIET
    rows = [*blank, *([*sides, *row, *sides] for row in matrix), *blank]
    if len(rows) % 2:
        rows.append([False] * wide)
    lines = []
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        line = "".join(" ▄▀█"[2 * up + low] for up, low in zip(upper, lower, strict=True))
        # Without colours, light modules are drawn: most terminals are dark.
        lines.append(line if in_colour else line.translate(_INVERTED))
    return "\n".join(lines)


_INVERTED = str.maketrans(" ▄▀█", "█▀▄ ")
