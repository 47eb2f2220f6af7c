"""What a call was about to change is on the disk before it runs: a process that is killed in it leaves it undoable."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Literal

import pytest

from tests.support.undone import SESSION, UndoWorld
from trunkline.agents.coder.undo import checkpoints, scanning, undoing
from trunkline.agents.coder.undo.opened import OpenCall, OpenCalls
from trunkline.tools.toolbox import PreparedCall

Kind = Literal["command", "write"]


def a_call(world: UndoWorld, kind: Kind, text: str = "new") -> PreparedCall:
    if kind == "write":
        return world.writes("a", text)
    return world.runs(lambda: (world.root / "a").write_text(text))


async def killed_in(world: UndoWorld, call: PreparedCall) -> None:
    """A process looks, runs a call, and is never heard of again."""
    world.recorder.begin()
    await world.recorder.before(call)
    await call.run(lambda line: None)
    world.next_process()


def files(world: UndoWorld) -> list[str]:
    return sorted(os.listdir(Path(world.checkpoints.store.place) / "sessions"))


def tear(file: str) -> None:
    Path(file).write_text("{")


@pytest.mark.parametrize("kind", ["command", "write"])
async def test_the_first_change_of_a_session_can_be_undone(world: UndoWorld, kind: Kind) -> None:
    (world.root / "a").write_text("old")
    await killed_in(world, a_call(world, kind))
    assert "-old" in world.diff()
    assert "+new" in world.diff()
    outcome = world.undo()
    assert (outcome.turns, outcome.restored, outcome.left) == (1, ("a",), ())
    assert outcome.uncovered == (undoing.BROKEN_OFF,)
    assert (world.root / "a").read_text() == "old"
    assert (world.undo().turns, files(world)) == (0, ["the%20session.jsonl"])


async def test_what_it_created_goes_with_its_directories(world: UndoWorld) -> None:
    await killed_in(world, world.writes("new/deep/a", "new"))
    assert world.undo().restored == ("new", "new/deep", "new/deep/a")
    assert list(world.root.iterdir()) == []


async def test_a_command_with_files_that_were_just_written_or_are_left_out_harms_neither(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen must come back from the disk whole: a path that it lacks would count as created."""
    monkeypatch.setattr(scanning, "MOST_REMADE", 1)
    place = world.root / "node_modules"
    place.mkdir()
    for name in ("x", "y", "z"):
        (place / name).write_text("theirs")
    (world.root / "a").write_text("old")
    (world.root / "link").symlink_to("a")

    def act() -> None:
        (place / "x").unlink()
        (place / "y").unlink()
        (world.root / "b").write_text("new")

    await killed_in(world, world.runs(act))
    assert world.undo().restored == ("b",)
    assert (place / "z").exists()
    assert (world.root / "link").is_symlink()


async def test_if_what_was_seen_cannot_be_read_nothing_is_taken_for_created(world: UndoWorld) -> None:
    (world.root / "a").write_text("old")
    await killed_in(world, a_call(world, "command"))
    tear(world.checkpoints.record(SESSION).calls.manifest)
    outcome = world.undo()
    assert (outcome.turns, outcome.restored) == (1, ())
    assert outcome.uncovered[0] == "What was there before cannot be read."
    assert (world.root / "a").read_text() == "new"


@pytest.mark.parametrize("kind", ["command", "write"])
async def test_the_next_process_records_it_before_it_changes_anything(world: UndoWorld, kind: Kind) -> None:
    (world.root / "a").write_text("old")
    await killed_in(world, a_call(world, kind))
    await world.turn(a_call(world, "command", "newer"))
    assert world.undo().restored == ("a",)
    assert (world.root / "a").read_text() == "new"
    assert world.undo().restored == ("a",)
    assert (world.root / "a").read_text() == "old"


@pytest.mark.parametrize("kind", ["command", "write"])
async def test_what_cannot_be_recorded_yet_since_the_store_is_in_use_is_not_lost(
    world: UndoWorld, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "a").write_text("old")
    await killed_in(world, a_call(world, "command"))
    monkeypatch.setattr(checkpoints, "PATIENCE_SECONDS", 0.0)
    with world.checkpoints.store.locked(0.0):
        await world.turn(world.writes("b", "1") if kind == "write" else world.runs(lambda: None))
    await world.turn(world.writes("b", "2"))
    assert [turn.is_undone for turn in world.checkpoints.record(SESSION).read()] == [False, False, False]
    outcome = world.undo(3)
    assert "a" in outcome.restored
    assert (world.root / "a").read_text() == "old"


async def test_a_process_that_goes_on_with_the_turn_has_it_in_that_turn(world: UndoWorld) -> None:
    (world.root / "a").write_text("old")
    await killed_in(world, a_call(world, "write"))
    world.recorder.go_on()
    await world.call(world.writes("b", "new"))
    await world.recorder.end()
    outcome = world.undo()
    assert (outcome.turns, outcome.restored, outcome.uncovered) == (1, ("a", "b"), ())


async def test_several_that_were_under_way_are_undone_together(world: UndoWorld) -> None:
    (world.root / "a").write_text("0")
    world.recorder.begin()
    first = world.runs(lambda: (world.root / "b").write_text("1"))
    second, third = a_call(world, "write", "2"), a_call(world, "command", "3")
    await world.recorder.before(first)
    await first.run(lambda line: None)
    await world.call(second)
    await world.recorder.settled()
    await world.recorder.before(third)
    await third.run(lambda line: None)
    world.next_process()
    assert world.undo().restored == ("a", "b")
    assert (world.root / "a").read_text() == "0"


async def test_nothing_is_left_open_by_calls_that_came_to_their_end(world: UndoWorld) -> None:
    await world.turn(world.writes("a", "1"), world.runs(lambda: None), world.runs(lambda: None, run_in_background=True))
    assert files(world) == ["the%20session.before", "the%20session.jsonl"]
    await world.recorder.close()
    assert files(world) == ["the%20session.jsonl"]


@pytest.mark.parametrize("kind", ["command", "write"])
async def test_a_call_that_is_stopped_before_it_runs_is_not_under_way(
    world: UndoWorld, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, go_on = threading.Event(), threading.Event()
    begin = OpenCalls.begin

    def begin_slowly(calls: OpenCalls, call: OpenCall) -> None:
        begin(calls, call)
        written.set()
        go_on.wait()

    (world.root / "a").write_text("old")
    await world.turn(world.writes("b", "1"))
    world.recorder.begin()
    monkeypatch.setattr(OpenCalls, "begin", begin_slowly)
    looking = asyncio.ensure_future(world.recorder.before(a_call(world, kind)))
    await asyncio.to_thread(written.wait)
    looking.cancel()
    await asyncio.wait({looking})
    go_on.set()
    await world.recorder.end()
    assert not world.checkpoints.record(SESSION).calls.exists
    # Whoever changes it now is not the turn.
    (world.root / "a").write_text("theirs")
    world.next_process()
    await world.turn()
    assert "a" not in world.undo(3).restored


async def test_a_turn_that_was_stopped_is_recorded_after_the_next_began_and_before_it(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "a").write_text("old")
    world.recorder.begin()
    monkeypatch.setattr(checkpoints, "PATIENCE_SECONDS", 60.0)
    call = a_call(world, "command")
    before = await world.recorder.before(call)
    with world.checkpoints.store.locked(0.0):
        await call.run(lambda line: None)
        world.recorder.after(before, call)
        ending = asyncio.ensure_future(world.recorder.end())
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending})
        world.recorder.begin()
    await world.call(world.writes("b", "new"))
    await world.recorder.end()
    turns = world.checkpoints.record(SESSION).read()
    assert [(len(turn.changes), turn.is_over) for turn in turns] == [(1, True), (1, True)]
    assert world.undo().restored == ("b",)
    assert world.undo().restored == ("a",)


async def test_what_was_there_before_a_call_under_way_stays_when_the_store_is_put_in_order(world: UndoWorld) -> None:
    (world.root / "a").write_text("old")
    await killed_in(world, a_call(world, "command"))
    # Another session has seen the workspace since.
    scanning.save(scanning.Manifest({}), world.checkpoints.manifest)
    for file in (Path(world.checkpoints.store.place) / "git").rglob("*"):
        os.utime(file, (1, 1))
    world.checkpoints.tidy()
    assert world.undo().restored == ("a",)
    assert (world.root / "a").read_text() == "old"
