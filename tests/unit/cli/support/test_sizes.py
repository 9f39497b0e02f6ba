"""Sizes for people: the unit that fits, and no digits that nobody reads."""

from __future__ import annotations

import pytest

from hermes.cli.support.sizes import format_size


@pytest.mark.parametrize(
    "size, shown",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (2_500_000, "2.5 MB"),
        (12_400_000, "12.4 MB"),
        (800_000_000, "800 MB"),
        (2_000_000_000_000, "2000 GB"),
    ],
)
def test_size_is_shown_in_the_unit_that_fits(size: int, shown: str) -> None:
    assert format_size(size) == shown
