"""Names that sort by time."""

from __future__ import annotations

import time
import uuid

import pytest

from trunkline.core.ids import new_id


def test_an_id_is_a_uuid_of_version_7_and_no_two_are_alike() -> None:
    made = {new_id() for _ in range(10_000)}
    assert len(made) == 10_000
    assert {(uuid.UUID(id).version, uuid.UUID(id).variant) for id in made} == {(7, uuid.RFC_4122)}


def test_ids_sort_by_time_also_within_a_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    start = 1_794_841_820_155_000_000
    times = iter(range(start, start + 2_000_000, 500))
    monkeypatch.setattr(time, "time_ns", lambda: next(times))
    made = [new_id() for _ in range(4000)]
    assert made == sorted(made)
    assert made[0].startswith(f"{1_794_841_820_155:012x}"[:8])
