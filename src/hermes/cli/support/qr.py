"""QR codes for a terminal of 80 columns: texts of up to 425 bytes, drawn two rows to a line. Standard library only.

The weakest error correction is enough for a clean screen and makes the smallest picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

Matrix = list[list[bool]]

# By version, from 1: codewords in all, of these for correction in each block, blocks, centres of alignment marks.
_VERSIONS: Sequence[tuple[int, int, int, Sequence[int]]] = (
    (26, 7, 1, ()),
    (44, 10, 1, (6, 18)),
    (70, 15, 1, (6, 22)),
    (100, 20, 1, (6, 26)),
    (134, 26, 1, (6, 30)),
    (172, 18, 2, (6, 34)),
    (196, 20, 2, (6, 22, 38)),
    (242, 24, 2, (6, 24, 42)),
    (292, 30, 2, (6, 26, 46)),
    (346, 18, 4, (6, 28, 50)),
    (404, 20, 4, (6, 30, 54)),
    (466, 24, 4, (6, 32, 58)),
    (532, 26, 4, (6, 34, 62)),
)
_BYTES = 0b0100
_LEVEL_L = 0b01
_QUIET = 4

_MASKS: Sequence[Callable[[int, int], bool]] = (
    lambda row, column: (row + column) % 2 == 0,
    lambda row, _: row % 2 == 0,
    lambda _, column: column % 3 == 0,
    lambda row, column: (row + column) % 3 == 0,
    lambda row, column: (row // 2 + column // 3) % 2 == 0,
    lambda row, column: row * column % 2 + row * column % 3 == 0,
    lambda row, column: (row * column % 2 + row * column % 3) % 2 == 0,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2 == 0,
)


def encode(text: str) -> Matrix:
    """The modules, True for dark. Raises ValueError for a text that is too long."""
    data = text.encode()
    version = next((number for number in range(1, len(_VERSIONS) + 1) if len(data) <= _room(number)), 0)
    if not version:
        raise ValueError(f"{len(data)} bytes do not fit into a code")
    codewords = _interleaved(version, _packed(version, data))
    candidates = [_drawn(version, codewords, mask) for mask in range(len(_MASKS))]
    return min(candidates, key=_penalty)


def drawn(text: str, *, in_colour: bool) -> str:
    """The code as lines of a terminal. ``in_colour``: black on white whatever the terminal's colours are."""
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
        lines.append(f"\x1b[30;107m{line}\x1b[0m" if in_colour else line.translate(_INVERTED))
    return "\n".join(lines)


_INVERTED = str.maketrans(" ▄▀█", "█▀▄ ")


# Data


def _room(version: int) -> int:
    """Bytes of text that fit."""
    total, correction, blocks, _ = _VERSIONS[version - 1]
    return total - correction * blocks - (2 if version < 10 else 3)


def _packed(version: int, data: bytes) -> list[int]:
    total, correction, blocks, _ = _VERSIONS[version - 1]
    count = total - correction * blocks
    length = 8 if version < 10 else 16
    bits = f"{_BYTES:04b}{len(data):0{length}b}" + "".join(f"{byte:08b}" for byte in data)
    bits += "0" * min(4, count * 8 - len(bits))
    bits += "0" * (-len(bits) % 8)
    words = [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]
    fill = (0xEC, 0x11)
    return words + [fill[index % 2] for index in range(count - len(words))]


def _interleaved(version: int, words: list[int]) -> list[int]:
    _, correction, blocks, _ = _VERSIONS[version - 1]
    short = len(words) // blocks
    longer = len(words) % blocks  # the last blocks hold one word more
    parts, at = [], 0
    for number in range(blocks):
        size = short + (number >= blocks - longer)
        parts.append(words[at : at + size])
        at += size
    checks = [_correction(part, correction) for part in parts]
    mixed = [part[index] for index in range(short + 1) for part in parts if index < len(part)]
    return mixed + [check[index] for index in range(correction) for check in checks]


def _product(left: int, right: int) -> int:
    """In the field of 256 elements that the codes count in."""
    result = 0
    while right:
        if right & 1:
            result ^= left
        left = left << 1 ^ (0x11D if left & 0x80 else 0)
        right >>= 1
    return result


def _correction(words: Sequence[int], count: int) -> list[int]:
    divisor, root = [1], 1
    for _ in range(count):
        shifted = [*divisor, 0]
        for index, value in enumerate(divisor):
            shifted[index + 1] ^= _product(value, root)
        divisor, root = shifted, _product(root, 2)
    rest = [0] * count
    for word in words:
        factor = word ^ rest[0]
        rest = [*rest[1:], 0]
        rest = [value ^ _product(factor, part) for value, part in zip(rest, divisor[1:], strict=True)]
    return rest


# Drawing


def _drawn(version: int, codewords: Sequence[int], mask: int) -> Matrix:
    size = 17 + 4 * version
    matrix: list[list[bool | None]] = [[None] * size for _ in range(size)]
    _draw_marks(matrix, version)
    _draw_format(matrix, mask)
    if version >= 7:
        _draw_version(matrix, version)
    bits = (word >> shift & 1 == 1 for word in codewords for shift in range(7, -1, -1))
    for row, column in _path(size):
        if matrix[row][column] is None:
            matrix[row][column] = next(bits, False) ^ _MASKS[mask](row, column)
    return [[bool(module) for module in row] for row in matrix]


def _draw_marks(matrix: list[list[bool | None]], version: int) -> None:
    size = len(matrix)
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        for row in range(max(0, top - 1), min(size, top + 8)):
            for column in range(max(0, left - 1), min(size, left + 8)):
                distance = max(abs(row - top - 3), abs(column - left - 3))
                matrix[row][column] = distance in (0, 1, 3)
    centres = _VERSIONS[version - 1][3]
    corners = {(6, 6), (6, size - 7), (size - 7, 6)}
    for middle in ((row, column) for row in centres for column in centres if (row, column) not in corners):
        for row in range(middle[0] - 2, middle[0] + 3):
            for column in range(middle[1] - 2, middle[1] + 3):
                matrix[row][column] = max(abs(row - middle[0]), abs(column - middle[1])) != 1
    for at in range(8, size - 8):
        matrix[6][at] = matrix[at][6] = at % 2 == 0
    matrix[size - 8][8] = True


def _checked(value: int, divisor: int, bits: int) -> int:
    """The value with its check bits behind it."""
    rest = value << bits
    for shift in range(rest.bit_length() - 1, bits - 1, -1):
        if rest >> shift & 1:
            rest ^= divisor << shift - bits
    return value << bits | rest


def _draw_format(matrix: list[list[bool | None]], mask: int) -> None:
    size = len(matrix)
    bits = _checked(_LEVEL_L << 3 | mask, 0x537, 10) ^ 0x5412
    beside = [(8, column) for column in (0, 1, 2, 3, 4, 5, 7, 8)] + [(row, 8) for row in (7, 5, 4, 3, 2, 1, 0)]
    apart = [(row, 8) for row in range(size - 1, size - 8, -1)] + [(8, column) for column in range(size - 8, size)]
    for places in (beside, apart):
        for index, (row, column) in enumerate(places):
            matrix[row][column] = bits >> 14 - index & 1 == 1


def _draw_version(matrix: list[list[bool | None]], version: int) -> None:
    size = len(matrix)
    bits = _checked(version, 0x1F25, 12)
    for index in range(18):
        row, column = index // 3, size - 11 + index % 3
        matrix[row][column] = matrix[column][row] = bits >> index & 1 == 1


def _path(size: int) -> Iterator[tuple[int, int]]:
    """Two columns at a time from the right, up and down by turns, past the vertical line of marks."""
    is_up = True
    for right in (*range(size - 1, 6, -2), *range(5, 0, -2)):
        for row in range(size - 1, -1, -1) if is_up else range(size):
            yield row, right
            yield row, right - 1
        is_up = not is_up


def _penalty(matrix: Matrix) -> int:
    """How hard it is to read: long runs, blocks, what looks like a corner mark, too much of one colour."""
    size = len(matrix)
    lines = [*matrix, *(list(column) for column in zip(*matrix, strict=True))]
    total = 0
    for line in lines:
        runs = [len(list(run)) for _, run in groupby(line)]
        total += sum(run - 2 for run in runs if run >= 5)
        text = "".join("#" if module else "." for module in line)
        total += 40 * (text.count("#.###.#....") + text.count("....#.###.#"))
    for row in range(size - 1):
        for column in range(size - 1):
            total += 3 * (len({*matrix[row][column : column + 2], *matrix[row + 1][column : column + 2]}) == 1)
    dark = sum(sum(row) for row in matrix) * 100 // size**2
    return total + 10 * (abs(dark - 50) // 5)
