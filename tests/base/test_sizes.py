"""Sizes for people."""

from __future__ import annotations

import pytest

from trunkline.base.sizes import size_text


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (12_345, "12 kB"),
        (200_000, "200 kB"),
        (999_400, "999 kB"),
        (999_500, "1.0 MB"),
        (1_440_000, "1.4 MB"),
        (9_949_999, "9.9 MB"),
        (9_950_000, "10 MB"),
        (98_362_432, "98 MB"),
        (1_117_320_736, "1.1 GB"),
    ],
)
def test_a_size_has_the_unit_that_fits_it_and_is_never_nothing(count: int, told: str) -> None:
    assert size_text(count) == told
