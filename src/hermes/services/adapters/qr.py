"""Encode a text as a QR code."""

from __future__ import annotations

Matrix = list[list[bool]]

MAX_BYTES = 425  # of version 13: with its border, 77 columns of a terminal


def encode(text: str) -> Matrix:
    """Return the modules, True for dark. Raise ValueError for a text that is too long."""
    import segno  # here: only a sign-in needs segno

    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data)} bytes do not fit into a code")
    code = segno.make_qr(data, error="l", mode="byte", encoding="utf-8", boost_error=False)
    return [[bool(module) for module in row] for row in code.matrix]
