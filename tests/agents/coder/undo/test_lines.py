"""The record of a session's changes while others add to it, and while it is made shorter."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.coder.undo.lines import BEGINNING
from trunkline.agents.coder.undo.turns import ChangeRecord
from trunkline.base.replacing import replace_private


@pytest.fixture
def record(tmp_path: Path) -> ChangeRecord:
    record = ChangeRecord(str(tmp_path / "s"))
    for number in range(4):
        record.begin(f"t{number}", 0)
        record.end(f"t{number}")
    return record


def test_what_is_added_while_the_oldest_turns_are_forgotten_is_kept(
    record: ChangeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    adding = threading.Thread(target=lambda: record.undo(["t3"], []))

    def add_meanwhile(path: str, data: bytes) -> None:
        adding.start()
        # It cannot come to its end before this one does.
        adding.join(0.05)
        replace_private(path, data)

    monkeypatch.setattr("trunkline.agents.coder.undo.lines.replace_private", add_meanwhile)
    record.keep_newest(0.5)
    adding.join(PATIENCE_SECONDS)
    assert [(turn.id, turn.is_undone) for turn in record.read()] == [("t2", False), ("t3", True)]


def test_what_was_undone_is_told_also_after_the_record_became_shorter(record: ChangeRecord) -> None:
    found, read = record.untold(BEGINNING)
    assert not found
    record.keep_newest(0.5)
    record.undo(["t3"], [])
    found, read = record.untold(read)
    assert found
    assert not record.untold(read)[0]


def test_a_turn_that_was_undone_with_one_that_is_forgotten_stays_undone(record: ChangeRecord) -> None:
    record.undo(["t1", "t2"], [])
    record.keep_newest(0.5)
    assert [(turn.id, turn.is_undone) for turn in record.read()] == [("t2", True), ("t3", False)]
