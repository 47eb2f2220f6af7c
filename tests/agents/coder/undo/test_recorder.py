"""What is recorded, what it costs, and what goes wrong without anybody's work going wrong."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.undone import SESSION, UndoWorld
from trunkline.agents.coder.undo import checkpoints, scanning, shadow, states, undoing
from trunkline.agents.coder.undo.faults import NoCheckpoint
from trunkline.agents.coder.undo.states import PathState
from trunkline.base.replacing import draft
from trunkline.tools.spawn import SpawnTool
from trunkline.tools.web_fetch import WebFetch
from trunkline.tools.web_search import WebSearch


def git(directory: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    named = ("-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always")
    return subprocess.run(
        ["git", *named, *words], cwd=directory, env=env, capture_output=True, text=True, check=True
    ).stdout


def everything(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


async def test_the_users_own_repository_is_never_touched_nor_obeyed(world: UndoWorld, tmp_path: Path) -> None:
    """Filters, attributes, hooks, submodules, a `.git` that is a file: git is given bytes alone."""
    root = world.root
    witness = tmp_path / "ran"
    git(root, "init", "-q")
    git(root, "config", "filter.evil.clean", f"touch {witness}; cat")
    git(root, "config", "filter.evil.smudge", f"touch {witness}; cat")
    (root / ".gitattributes").write_text("* filter=evil text eol=crlf working-tree-encoding=UTF-16\n")
    for hook in ("pre-commit", "post-commit", "post-index-change", "reference-transaction", "post-checkout"):
        (root / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {witness}\n")
        (root / ".git" / "hooks" / hook).chmod(0o755)
    (root / "file").write_bytes(b"one\r\ntwo\n")
    inner = root / "module"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "file").write_text("of the module\n")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    linked = root / "linked"
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {inner}/.git\n")
    (linked / "file").write_text("linked\n")
    before = everything(root)

    def act() -> None:
        for file in (root / "file", inner / "file", linked / "file"):
            file.write_text("changed\n")

    await world.turn(world.runs(act))
    assert world.undo().restored == ("file", "linked/file", "module/file")
    assert everything(root) == before
    assert not witness.exists()


async def test_the_users_variables_for_git_do_not_count(
    world: UndoWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(world.root, "init", "-q")
    before = everything(world.root)
    for name, value in (
        ("GIT_DIR", str(world.root / ".git")),
        ("GIT_OBJECT_DIRECTORY", str(world.root / ".git" / "objects")),
        ("GIT_INDEX_FILE", str(world.root / ".git" / "index")),
        ("GIT_CONFIG_GLOBAL", str(tmp_path / "none")),
        ("GIT_DEFAULT_HASH", "sha256"),
    ):
        monkeypatch.setenv(name, value)
    await world.turn(world.writes("a", "new"))
    assert world.undo().restored == ("a",)
    assert everything(world.root) == before


async def test_a_turn_without_changes_leaves_nothing_and_starts_no_process(
    world: UndoWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    await world.turn()
    assert not (tmp_path / "home").exists()
    # A command in a workspace without files has nothing to keep, either.
    await world.turn(world.runs(lambda: None))
    assert not world.checkpoints.record(SESSION).exists
    assert world.said == []


@pytest.mark.parametrize("tool", [SpawnTool, WebFetch, WebSearch])
async def test_nothing_is_looked_at_for_tools_that_change_no_file(world: UndoWorld, tool: Any) -> None:
    call = world.runs(lambda: None)
    assert call.tool.category == tool.category
    call.tool.changes_no_file = tool.changes_no_file  # type: ignore[attr-defined]  # what some have
    world.recorder.begin()
    assert await world.recorder.before(call) is None


async def test_files_that_did_not_change_are_not_read_again(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def look(path: str, status: os.stat_result | None = None) -> tuple[PathState | None, bytes]:
        looked.append(os.path.basename(path))
        return states.look(path, status)

    for name in ("a", "b"):
        (world.root / name).write_text(name)
        os.utime(world.root / name, (1, 1))
    # The clock is ahead of the files: their times can be relied on.
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 10**9)
    monkeypatch.setattr(scanning, "look", look)
    await world.turn(world.runs(lambda: None))
    assert sorted(looked) == ["a", "b"]
    await world.turn(world.runs(lambda: (world.root / "a").write_text("c")))
    assert sorted(looked) == ["a", "a", "b"]
    # Another process knows it from this one.
    world.next_process()
    await world.turn(world.runs(lambda: None))
    assert sorted(looked) == ["a", "a", "b"]


async def test_a_change_within_one_tick_of_the_clock_is_seen(world: UndoWorld) -> None:
    file = world.root / "a"
    file.write_text("one")
    status = file.stat()

    def act() -> None:
        file.write_text("two")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    await world.turn(world.runs(lambda: None), world.runs(act))
    assert world.undo().restored == ("a",)
    assert file.read_text() == "one"


@pytest.mark.parametrize(("milliseconds", "is_relied_on"), [(10, False), (1000, True)])
def test_the_times_of_a_file_that_changed_right_before_a_look_are_not_relied_on(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, milliseconds: int, is_relied_on: bool
) -> None:
    """The clock of the file system may be behind: what changes right after it would look the same."""
    (world.root / "a").write_text("one")
    changed = (world.root / "a").stat().st_ctime_ns
    monkeypatch.setattr(time, "time_ns", lambda: changed + milliseconds * 1_000_000)
    kept = world.checkpoints
    kept.make()
    found = scanning.scan(kept.root, scanning.Manifest({}), kept.store, kept.excluded, lambda: None)
    assert bool(found.paths["a"].signature) is is_relied_on


@pytest.mark.parametrize("folder", ["node_modules", "cache", "environment"])
async def test_what_a_command_makes_anew_is_left_out_unless_write_touches_it(
    world: UndoWorld, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MOST_REMADE", 1)
    place = world.root / folder
    place.mkdir()
    marks = {"cache": "CACHEDIR.TAG", "environment": "pyvenv.cfg"}
    if folder in marks:
        (place / marks[folder]).write_text("")
    (place / "a").write_text("old")
    (place / "b").write_text("old")
    await world.turn(world.runs(lambda: (place / "a").write_text("new")), world.writes(place / "b", "new"))
    assert world.undo().restored == (f"{folder}/b",)
    assert ((place / "a").read_text(), (place / "b").read_text()) == ("new", "old")


async def test_little_of_it_is_taken_in_until_it_has_become_much(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MOST_REMADE", 3)
    place = world.root / "node_modules"
    place.mkdir()
    (place / "a").write_text("old")
    (world.root / "b").write_text("old")

    def grow() -> None:
        (world.root / "b").write_text("new")
        for number in range(9):
            (place / str(number)).write_text("new")

    await world.turn(world.runs(lambda: (place / "a").write_text("new")))
    assert world.undo().restored == ("node_modules/a",)
    await world.turn(world.runs(grow))
    outcome = world.undo()
    assert (outcome.restored, outcome.left) == (("b",), ())
    assert (place / "8").exists()


@pytest.mark.parametrize("closed", [1, 2])
async def test_a_directory_that_cannot_be_listed_before_or_after_is_left_alone(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, closed: int
) -> None:
    folder = world.root / "folder"
    folder.mkdir()
    (folder / "theirs").write_text("old")
    looks = 0

    def list_some(path: str) -> Any:
        nonlocal looks
        looks += path == str(folder)
        if path == str(folder) and looks == closed:
            raise PermissionError
        return listed(path)

    def act() -> None:
        (folder / "theirs").write_text("new")
        (world.root / "ours").write_text("new")

    listed = os.scandir
    monkeypatch.setattr(os, "scandir", list_some)
    await world.turn(world.runs(act))
    monkeypatch.undo()
    monkeypatch.setenv("TRUNKLINE_HOME", str(world.root.parent / "home"))
    outcome = world.undo()
    assert (outcome.restored, outcome.left) == (("ours",), ())
    assert outcome.uncovered == ("`folder` could not be listed.",)
    assert (folder / "theirs").read_text() == "new"


@pytest.mark.parametrize("closed", [1, 2, 3])
async def test_a_workspace_that_could_not_be_listed_for_a_while_keeps_its_files(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, closed: int
) -> None:
    (world.root / "theirs").write_text("old")
    looks = 0

    def list_some(path: str) -> Any:
        nonlocal looks
        if Path(path) == world.root:
            looks += 1
            if looks == closed:
                raise PermissionError(errno.EACCES, "Permission denied")
        return listed(path)

    listed = os.scandir
    monkeypatch.setattr(os, "scandir", list_some)
    for _ in range(2):
        await world.turn(world.runs(lambda: None))
    why = "The workspace could not be listed: Permission denied."
    assert world.said == [f"Undo covers what Write and Edit change, but not what commands do: {why}"]
    outcome = world.undo(2)
    assert (outcome.restored, outcome.left, outcome.uncovered) == ((), (), (why,))
    assert (world.root / "theirs").read_text() == "old"


async def test_our_own_state_is_no_part_of_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "work" / ".home"))
    world = UndoWorld(tmp_path)
    await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
    await world.turn(world.runs(lambda: (world.root / "b").write_text("new")))
    assert world.undo(2).restored == ("a", "b")


async def test_without_git_it_is_said_once_and_work_goes_on(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    await world.turn(world.writes("a", "1"), world.runs(lambda: (world.root / "b").write_text("1")))
    await world.turn(world.writes("a", "2"))
    assert world.said == ["Undo is not available: `git` was not found. Install it to have changes kept."]
    assert (world.root / "a").read_text() == "2"
    assert world.undo().turns == 0


async def test_a_workspace_that_is_too_large_leaves_write_and_edit(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MOST_PATHS", 3)
    for name in "abcd":
        (world.root / name).write_text("old")
    touch = world.runs(lambda: (world.root / "b").write_text("new"))
    await world.turn(world.writes("a", "new"), touch)
    await world.turn(touch)
    why = "The workspace has more than 3 files."
    assert world.said == [f"Undo covers what Write and Edit change, but not what commands do: {why}"]
    outcome = world.undo(2)
    assert (outcome.turns, outcome.restored, outcome.uncovered) == (2, ("a",), (why,))


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 3), ("SCAN_SECONDS", -1.0)])
async def test_so_does_one_that_takes_too_much_room_or_time(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    monkeypatch.setattr(scanning, limit, value)
    (world.root / "a").write_text("old content")
    await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
    assert len(world.said) == 1
    assert (world.root / "a").read_text() == "new"


async def test_a_store_in_use_is_waited_for_and_then_done_without_once(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.agents.coder.undo.checkpoints.PATIENCE_SECONDS", 0.05)
    await world.turn(world.writes("a", "1"))
    with world.checkpoints.store.locked(0.0):
        await world.turn(world.runs(lambda: (world.root / "b").write_text("1")))
    await world.turn(world.runs(lambda: (world.root / "b").write_text("2")))
    assert "keeping what it changes" in world.said[0]
    outcome = world.undo(2)
    assert (outcome.restored, len(outcome.uncovered)) == (("b",), 1)
    assert (world.root / "b").read_text() == "1"


def tear(file: str) -> None:
    """As if a process had died while it wrote a line."""
    with open(file, "ab") as record:
        record.write(b'{"change":"t","paths":{"a":[["f"')


async def test_a_process_that_is_killed_while_it_keeps_something_is_in_nobodys_way(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "a").write_text("old")
    store = world.checkpoints.store
    world.checkpoints.make()
    keeper = shadow.Keeper(store._start)
    keeper.keep("0" * 40, b"half of it")
    keeper.drop()
    for lock in ("index.lock", "HEAD.lock", "packed-refs.lock", "shallow.lock", "config.lock"):
        (Path(store.place) / "git" / lock).touch()
    world.checkpoints.record(SESSION).begin("t", 0)
    tear(world.checkpoints.record(SESSION).file)
    await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
    outcome = world.undo(2)
    assert outcome.restored == ("a",)
    assert outcome.uncovered == (undoing.BROKEN_OFF,)


async def test_what_a_call_has_changed_is_recorded_before_the_next_begins(world: UndoWorld) -> None:
    world.recorder.begin()
    for number in range(3):
        await world.call(world.writes(str(number), "new"))
    await world.recorder.before(world.runs(lambda: None))
    # Here the process is killed.
    assert world.undo().restored == ("0", "1", "2")


async def test_a_call_that_is_stopped_has_its_changes_recorded(world: UndoWorld) -> None:
    world.recorder.begin()
    call = world.runs(lambda: None)
    before = await world.recorder.before(call)
    (world.root / "a").write_text("half done")
    world.recorder.after(before, call)
    await asyncio.gather(world.recorder.end())
    assert world.undo().restored == ("a",)


async def test_a_command_left_running_belongs_to_the_turn_up_to_its_end(world: UndoWorld) -> None:
    world.recorder.begin()
    await world.call(world.runs(lambda: None, run_in_background=True))
    await world.recorder.settled()
    (world.root / "a").write_text("from the background")
    await world.recorder.end()
    assert world.undo().restored == ("a",)


async def test_commands_that_run_at_the_same_time_may_both_see_a_change(world: UndoWorld) -> None:
    (world.root / "a").write_text("0")
    world.recorder.begin()
    slow = world.runs(lambda: (world.root / "a").write_text("2"))
    before = await world.recorder.before(slow)
    await world.call(world.writes("a", "1"))
    await world.recorder.settled()
    await slow.run(lambda line: None)
    world.recorder.after(before, slow)
    await world.recorder.end()
    assert world.undo().restored == ("a",)
    assert (world.root / "a").read_text() == "0"


async def test_a_turn_that_another_process_goes_on_with_stays_one(world: UndoWorld) -> None:
    world.recorder.begin()
    await world.call(world.writes("a", "1"))
    await world.recorder.settled()
    world.next_process().go_on()
    await world.call(world.writes("b", "1"))
    await world.recorder.end()
    assert world.undo().restored == ("a", "b")


async def test_the_model_is_to_be_told_once_of_what_was_undone(world: UndoWorld) -> None:
    await world.turn(world.writes("a", "1"))
    assert not world.recorder.untold()
    world.undo()
    assert world.recorder.untold()
    assert not world.recorder.untold()
    assert not world.next_process().untold()


async def test_what_is_old_goes_and_what_can_be_undone_stays(world: UndoWorld) -> None:
    (world.root / "a").write_text("old")
    await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
    other = world.checkpoints.record("another")
    other.begin("t", 0)
    other.change("t", [("b", None, PathState("file", 0o644, "0" * 40))])
    os.utime(other.file, (1, 1))
    refs = Path(world.checkpoints.store.place) / "git" / "refs" / "kept"
    for ref in refs.iterdir():
        os.utime(ref, (1, 1))
    world.checkpoints.tidy()
    assert not other.exists
    assert len(list(refs.iterdir())) == 1
    assert world.undo().restored == ("a",)
    assert (world.root / "a").read_text() == "old"


async def test_what_a_process_left_that_was_killed_while_it_wrote_goes_and_is_no_session(world: UndoWorld) -> None:
    await world.turn(world.writes("a", "new"))
    record = world.checkpoints.record(SESSION)
    left = [Path(draft(path)) for path in (record.calls.manifest, record.file, world.checkpoints.manifest)]
    for file in left:
        file.write_text("half")
    assert not list(world.checkpoints.others(SESSION, 0.0))
    world.checkpoints.tidy()
    # Somebody may be at it.
    assert all(file.exists() for file in left)
    for file in left:
        os.utime(file, (1, 1))
    world.checkpoints.tidy()
    assert not any(file.exists() for file in left)
    assert world.undo().restored == ("a",)


@pytest.mark.parametrize("step", ["cat-file", "fast-import", "repack", "prune"])
async def test_putting_in_order_loses_nothing_when_git_dies_at_any_step(
    world: UndoWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (world.root / "a").write_text("old")
    await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
    for file in (Path(world.checkpoints.store.place) / "git").rglob("*"):
        os.utime(file, (1, 1))
    dying = tmp_path / "bin" / "git"
    dying.parent.mkdir()
    real = shutil.which("git")
    dying.write_text(f'#!/bin/sh\ncase " $* " in *" {step} "*) kill -9 $$ ;; esac\nexec {real} "$@"\n')
    dying.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(dying.parent), prepend=os.pathsep)
        with pytest.raises(NoCheckpoint):
            world.checkpoints.tidy()
    world.checkpoints.tidy()
    assert world.undo().restored == ("a",)
    assert (world.root / "a").read_text() == "old"


def test_what_came_in_within_the_last_day_stays_although_nothing_names_it_yet(world: UndoWorld) -> None:
    kept = world.checkpoints
    kept.make()
    # So many that git makes a pack of them: single ones it leaves alone by itself.
    contents = {states.blob_name(data): data for data in (b"%d" % number for number in range(200))}
    with kept.store.keeping() as keeper:
        for name, data in contents.items():
            keeper.keep(name, data)
    kept.store.hold_only(())
    with kept.store.reading() as read:
        assert {name: read(name) for name in contents} == contents


async def test_putting_in_order_ends_when_it_is_stopped_between_two_steps(world: UndoWorld) -> None:
    (world.root / "a").write_text("old")
    await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
    kept = world.checkpoints
    kept.store.stop()
    with pytest.raises(NoCheckpoint):
        kept.tidy()
    assert world.undo().restored == ("a",)


async def test_a_store_that_is_too_large_loses_its_oldest_turns(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await world.turn(world.writes("a", str(number)))
    monkeypatch.setattr(checkpoints, "MOST_STORED", 1)
    world.checkpoints.tidy()
    assert world.undo(9).turns == 2
    assert (world.root / "a").read_text() == "1"
