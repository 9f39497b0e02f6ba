"""QR codes: as a reader of codes took them, module for module."""

from __future__ import annotations

import hashlib

import pytest

from hermes.cli.support import qr
from hermes.services.adapters.qr import Matrix, encode


def digest(matrix: Matrix) -> str:
    return hashlib.sha256("\n".join("".join("01"[module] for module in row) for row in matrix).encode()).hexdigest()[
        :16
    ]


# zxing-cpp 3.1.1 read these codes, and one of every length from 1 to 425, back as their texts. Codes that no padding
# completes (271 and 425 bytes) are module for module those of python-qrcode 8.2; segno pads the others differently.
KNOWN = {
    "a": "f509ff1d9498cb8b",
    "https://liteapp.weixin.qq.com/q/7GiQu1?bot_type=3": "550c0bc20a81dbac",
    "你好，微信": "0a85479bc7ea4b8a",
    "https://liteapp.weixin.qq.com/q/" + "0123456789abcdef" * 8: "9090f45ece949f34",
    "z" * 271: "767e9d8aee1b5c22",
    "z" * 300: "f95f0e32bbc999a3",
    "z" * 425: "498bb93e991b0f7b",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=str(len(text))) for text in KNOWN])
def test_a_code_is_the_one_that_a_reader_took(text: str) -> None:
    assert digest(encode(text)) == KNOWN[text]


def test_a_text_that_fits_into_no_code_is_refused() -> None:
    assert len(encode("x" * 425)) == 69
    with pytest.raises(ValueError, match="426 bytes"):
        encode("x" * 426)


def test_it_is_drawn_two_rows_to_a_line_with_a_quiet_border() -> None:
    lines = qr.drawn("https://liteapp.weixin.qq.com/q/abc", in_colour=False).split("\n")
    assert len({len(line) for line in lines}) == 1
    assert lines[0] == lines[1] == "█" * len(lines[0])
    assert lines[2].startswith("████ ▄▄▄▄▄ █")


def test_shown_in_colour_dark_modules_are_drawn_and_else_the_light_ones() -> None:
    dark, light = (qr.drawn("a", in_colour=in_colour) for in_colour in (True, False))
    assert dark.translate(str.maketrans(" ▄▀█", "█▀▄ ")) == light
