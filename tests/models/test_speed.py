"""How fast models are, as their engine tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.base import paths
from trunkline.models import speed


def test_the_last_answer_counts() -> None:
    speed.heard("speed-a", {"predicted_n": 20, "predicted_per_second": 105.929, "prompt_ms": 147.4})
    speed.heard("speed-a", {"predicted_n": 30, "predicted_per_second": 99, "prompt_ms": 10})
    found = speed.last("speed-a")
    assert found is not None
    assert (found.tokens_per_second, found.read_ms, found.tokens) == (99.0, 10, 30)


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


def test_what_was_measured_is_kept_for_other_processes_until_something_newer_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speed.keep("speed-c", 20.5, 64)
    speed.keep("speed-d", 7.0, 64)
    # As another process sees it.
    monkeypatch.setattr(speed, "_last", {})
    kept = [speed.last(name) for name in ("speed-c", "speed-d", "speed-e")]
    assert [each and each.tokens_per_second for each in kept] == [20.5, 7.0, None]
    speed.heard("speed-c", {"predicted_n": 20, "predicted_per_second": 30.0})
    heard = speed.last("speed-c")
    assert heard is not None
    assert heard.tokens_per_second == 30.0


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"speed-f": 3}', b"\xff"])
def test_a_file_that_cannot_be_read_is_as_good_as_none(damage: bytes) -> None:
    speed.keep("speed-f", 20.5, 64)
    Path(paths.cache_dir(), "models", speed.FILE).write_bytes(damage)
    assert speed.last("speed-f") is None
    speed.keep("speed-f", 21.5, 64)
    kept = speed.last("speed-f")
    assert kept is not None
    assert kept.tokens_per_second == 21.5


def test_what_was_measured_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "MOST_KEPT", 2)
    for name in ("speed-1", "speed-2", "speed-3"):
        speed.keep(name, 1.0, 64)
    assert [speed.last(name) is not None for name in ("speed-1", "speed-2", "speed-3")] == [False, True, True]
