"""What one agent's runner remembers: bounded by what waits, and not in the way of the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trunkline.runner import state as module
from trunkline.runner.commlog import CommunicationLog, Stamp
from trunkline.runner.finishing import on_disk
from trunkline.runner.inbox import MAX_FEEDBACK_CHARS, Inbox
from trunkline.runner.state import AgentState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[AgentState]:
    kept = AgentState(str(tmp_path), "a")
    yield kept
    kept.close()


def numbers(state: AgentState) -> list[int]:
    return [kept.data["n"] for kept in state.oldest_feedback(100)]


def test_feedback_is_bounded_by_what_waits_and_the_oldest_goes(
    state: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FEEDBACK", 5)
    state.add_feedback({"n": 0})
    for number in range(1, 20):
        state.add_feedback({"n": number})
        state.remove_feedback([state.oldest_feedback(2)[1].key])
    # What was told meanwhile does not count: the first one still waits.
    assert numbers(state) == [0]
    for number in range(20, 27):
        state.add_feedback({"n": number})
    assert numbers(state) == [22, 23, 24, 25, 26]


def test_posts_of_answered_writes_are_known_up_to_a_limit(state: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WRITTEN", 2)
    for id in ("c1", "c2", "c2", "c3"):
        state.end_write(state.begin_write({"action": "comment"}), id)
    assert [state.is_written(id) for id in ("c1", "c2", "c3")] == [False, True, True]
    assert state.open_writes() == []


async def test_the_loop_turns_while_another_process_has_the_database(state: AgentState, tmp_path: Path) -> None:
    with closing(sqlite3.connect(state.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        adding = asyncio.create_task(on_disk(lambda: state.add_feedback({"n": 1})))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not adding.done()
        # Told to end, it is still written down.
        adding.cancel()
        other.execute("COMMIT")
        await asyncio.wait({adding})
    assert adding.cancelled()
    assert numbers(state) == [1]


async def test_feedback_that_is_too_long_keeps_its_members(state: AgentState, tmp_path: Path) -> None:
    log = CommunicationLog(str(tmp_path / "log.jsonl"), Stamp("a"))
    inbox = Inbox(state, log, lambda data: data)
    await inbox.tell({"type": "tx_feedback", "args": ["x" * MAX_FEEDBACK_CHARS], "value": None, "result": {}}, ["tx"])
    (kept,) = await inbox.waiting()
    assert list(kept.data) == ["type", "args", "value", "result"]
    assert "too long" in kept.data["result"]["error"]
