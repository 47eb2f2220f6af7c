"""How fast models are, as their engine tells it."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.models import speed
from trunkline.models.speed import ModelSpeed


def test_the_last_answer_counts() -> None:
    speed.heard("speed-a", {"predicted_n": 20, "predicted_per_second": 105.929, "prompt_ms": 147.4})
    speed.heard("speed-a", {"predicted_n": 30, "predicted_per_second": 99, "prompt_ms": 10})
    assert speed.last("speed-a") == ModelSpeed(99.0, 10, 30)


@pytest.mark.parametrize(
    "timings",
    [
        None, "fast", {}, {"predicted_n": 3, "predicted_per_second": 900.0}, {"predicted_n": 20},
        {"predicted_n": 20, "predicted_per_second": float("inf")}, {"predicted_n": 20, "predicted_per_second": -1},
        {"predicted_n": "20", "predicted_per_second": "9"},
    ],
)  # fmt: skip
def test_what_says_nothing_is_left_aside(timings: Any) -> None:
    speed.heard("speed-b", timings)
    assert speed.last("speed-b") is None
