"""What turns have changed is put back: contents, permissions, links, what came and what went; and nobody else's."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.support.undone import UndoWorld
from trunkline.agents.coder.undo import undoing
from trunkline.agents.coder.undo.recorder import ChangeRecorder


def tree(root: Path) -> dict[str, tuple[int, object]]:
    """Everything below a directory, as anybody sees it."""
    found: dict[str, tuple[int, object]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content: object = (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "directory"
        )
        found[str(path.relative_to(root))] = (0 if path.is_symlink() else stat.S_IMODE(status.st_mode), content)
    return found


async def test_a_file_that_was_written_is_as_before(world: UndoWorld) -> None:
    (world.root / "a").write_text("old")
    await world.turn(world.writes("a", "new"), world.writes("new/deep/b", "created"))
    outcome = world.undo()
    assert outcome.restored == ("a", "new", "new/deep", "new/deep/b")
    assert (outcome.turns, outcome.left) == (1, ())
    assert tree(world.root) == {"a": (0o644, b"old")}


async def test_all_that_a_command_did_in_the_workspace_is_undone(world: UndoWorld) -> None:
    root = world.root
    (root / ".gitignore").write_text("ignored*\n")
    (root / "ignored.txt").write_text("ignored")
    (root / "script").write_text("#!/bin/sh\n")
    (root / "script").chmod(0o640)
    (root / "gone").mkdir()
    (root / "gone" / "inner").write_bytes(b"\0binary\xff")
    (root / "gone" / "empty").mkdir(mode=0o750)
    (root / "link").symlink_to("script")
    (root / "becomes a directory").write_text("file")
    (root / "becomes a file").mkdir()
    (root / "becomes a file" / "x").write_text("x")
    before = tree(root)

    def act() -> None:
        (root / "ignored.txt").write_text("overwritten")
        (root / "ignored too").write_text("created")
        (root / "script").chmod(0o4755)
        shutil.rmtree(root / "gone")
        (root / "link").unlink()
        (root / "link").symlink_to("/etc")
        (root / "becomes a directory").unlink()
        (root / "becomes a directory" / "deep").mkdir(parents=True)
        shutil.rmtree(root / "becomes a file")
        (root / "becomes a file").write_text("file")
        (root / "empty").mkdir()
        os.mkfifo(root / "pipe")

    await world.turn(world.runs(act))
    assert world.undo().left == ()
    assert tree(root) == before


async def test_names_may_be_anything_that_the_system_allows(world: UndoWorld) -> None:
    names = [b"two\nlines", b"not utf-8 \xff\xfe", b'"quoted"', b" spaces ", b"-rf", b":0:a"]
    for name in names:
        (world.root / os.fsdecode(name)).write_text("old")
    before = tree(world.root)

    def act() -> None:
        for name in names:
            (world.root / os.fsdecode(name)).write_text("new")
            (world.root / os.fsdecode(name + b"2")).write_text("created")

    await world.turn(world.runs(act))
    assert len(world.undo().restored) == 2 * len(names)
    assert tree(world.root) == before


async def test_what_somebody_else_changed_since_is_left_and_named(world: UndoWorld) -> None:
    for name in ("content", "mode", "removed", "ours"):
        (world.root / name).write_text("old")

    def act() -> None:
        for name in ("content", "mode", "removed", "ours", "created"):
            (world.root / name).write_text("new")
        (world.root / "folder").mkdir()

    await world.turn(world.runs(act))
    (world.root / "content").write_text("theirs")
    (world.root / "mode").chmod(0o600)
    (world.root / "removed").unlink()
    (world.root / "created").write_text("theirs")
    (world.root / "folder" / "theirs").write_text("theirs")
    outcome = world.undo()
    assert outcome.restored == ("ours",)
    assert world.left(outcome) == {
        **dict.fromkeys(("content", "mode", "removed", "created"), undoing.CHANGED_SINCE),
        "folder": undoing.NOT_EMPTY,
    }
    assert (world.root / "content").read_text() == "theirs"
    assert (world.root / "ours").read_text() == "old"


async def test_what_somebody_else_changed_between_two_turns_is_left(world: UndoWorld) -> None:
    (world.root / "a").write_text("0")
    await world.turn(world.writes("a", "1"))
    (world.root / "a").write_text("theirs")
    await world.turn(world.writes("a", "2"))
    assert world.left(world.undo(2)) == {"a": undoing.CHANGED_SINCE}
    assert (world.root / "a").read_text() == "2"


async def test_what_somebody_else_changes_while_the_agent_is_at_work_is_not_the_turns(world: UndoWorld) -> None:
    (world.root / "theirs").write_text("old")
    world.recorder.begin()
    await world.call(world.runs(lambda: (world.root / "a").write_text("1")))
    await world.recorder.settled()
    (world.root / "theirs").write_text("new")
    await world.call(world.runs(lambda: (world.root / "a").write_text("2")))
    await world.recorder.end()
    assert world.undo().restored == ("a",)
    assert tree(world.root) == {"theirs": (0o644, b"new")}


async def test_several_turns_are_undone_together_or_one_by_one(world: UndoWorld) -> None:
    (world.root / "a").write_text("0")
    for number in range(1, 5):
        await world.turn(world.writes("a", str(number)))
    assert world.undo().turns == 1
    assert (world.root / "a").read_text() == "3"
    assert world.undo(2).turns == 2
    assert (world.root / "a").read_text() == "1"
    assert world.undo(9).turns == 1
    assert (world.root / "a").read_text() == "0"
    assert world.undo().turns == 0


async def test_a_turn_that_changed_nothing_counts_as_one(world: UndoWorld) -> None:
    (world.root / "a").write_text("0")
    await world.turn()
    assert not world.checkpoints.record("the session").exists
    await world.turn(world.writes("a", "1"))
    await world.turn()
    assert world.undo() == undoing.UndoOutcome(1)
    assert (world.root / "a").read_text() == "1"
    assert world.undo().restored == ("a",)


async def test_write_and_edit_are_undone_outside_of_the_workspace_too(world: UndoWorld, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere" / "file"
    await world.turn(world.writes(outside, "new"))
    assert world.undo().restored == (str(outside.parent), str(outside))
    assert not outside.parent.exists()


async def test_nothing_is_written_through_a_link_that_stands_in_the_way_by_now(
    world: UndoWorld, tmp_path: Path
) -> None:
    (world.root / "folder").mkdir()
    for name in ("a", "b"):
        (world.root / "folder" / name).write_text("old")

    def act() -> None:
        (world.root / "folder" / "a").write_text("new")
        (world.root / "folder" / "b").unlink()

    await world.turn(world.runs(act))
    other = tmp_path / "other"
    other.mkdir()
    (other / "a").write_text("new")
    shutil.rmtree(world.root / "folder")
    (world.root / "folder").symlink_to(other)
    outcome = world.undo()
    assert world.left(outcome) == {
        "folder/a": undoing.CHANGED_SINCE,
        "folder/b": "a directory on the way is a link or a file by now",
    }
    assert {file.name: file.read_text() for file in other.iterdir()} == {"a": "new"}


async def test_permissions_that_keep_a_directory_closed_are_no_obstacle(world: UndoWorld) -> None:
    folder = world.root / "folder"
    folder.mkdir(mode=0o755)
    (folder / "a").write_text("old")

    def act() -> None:
        (folder / "a").write_text("new")
        (folder / "b").write_text("new")
        folder.chmod(0o555)

    await world.turn(world.runs(act))
    assert world.undo().left == ()
    assert tree(world.root) == {"folder": (0o755, "directory"), "folder/a": (0o644, b"old")}


async def test_of_a_large_file_it_is_said_that_it_cannot_be_put_back(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.agents.coder.undo.states.LARGEST_KEPT", 10)
    (world.root / "large").write_text("x" * 11)

    def act() -> None:
        (world.root / "large").write_text("y" * 12)
        (world.root / "new").write_text("z" * 13)

    await world.turn(world.runs(act))
    outcome = world.undo()
    assert (outcome.restored, world.left(outcome)) == (("new",), {"large": undoing.NOT_KEPT})


async def test_a_large_file_that_was_moved_is_moved_back(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.agents.coder.undo.states.LARGEST_KEPT", 10)
    (world.root / "data").mkdir()
    (world.root / "data" / "large").write_text("x" * 11)
    (world.root / "data" / "large").chmod(0o600)
    before = tree(world.root)

    def act() -> None:
        (world.root / "new").mkdir()
        (world.root / "data" / "large").rename(world.root / "new" / "large")
        (world.root / "new" / "large").chmod(0o644)
        (world.root / "data").rmdir()
        (world.root / "data").write_text("a file")

    await world.turn(world.runs(act))
    assert world.undo().left == ()
    assert tree(world.root) == before


async def test_what_came_from_elsewhere_and_is_not_kept_is_not_removed(
    world: UndoWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.agents.coder.undo.states.LARGEST_KEPT", 10)
    (tmp_path / "film").write_text("x" * 11)
    os.utime(tmp_path / "film", (1, 1))

    def act() -> None:
        (tmp_path / "film").rename(world.root / "film")
        (world.root / "made").write_text("x" * 12)

    await world.turn(world.runs(act))
    outcome = world.undo()
    assert (outcome.restored, world.left(outcome)) == (("made",), {"film": undoing.OLDER})
    assert (world.root / "film").exists()


async def test_what_another_session_may_have_changed_at_the_same_time_is_left(world: UndoWorld) -> None:
    other = ChangeRecorder(str(world.root), "another session", world.said.append)
    other.begin()
    world.recorder.begin()
    theirs = world.runs(lambda: None)
    before = await other.before(theirs)
    await world.call(world.runs(lambda: (world.root / "who knows").write_text("new")))
    await world.call(world.writes("ours", "new"))
    await world.recorder.end()
    other.after(before, theirs)
    await other.end()
    outcome = world.undo()
    assert outcome.restored == ("ours",)
    assert world.left(outcome) == {"who knows": undoing.AT_THE_SAME_TIME}
    # The other one has only seen both; of what was undone it has no claim any more.
    assert undoing.undo(world.checkpoints, "another session", list).restored == ("who knows",)


async def test_a_workspace_that_was_removed_is_made_again(world: UndoWorld) -> None:
    (world.root / "deep").mkdir()
    (world.root / "deep" / "a").write_text("old")
    before = tree(world.root)
    await world.turn(world.runs(lambda: shutil.rmtree(world.root)))
    assert world.undo().left == ()
    assert tree(world.root) == before


async def test_a_diff_says_what_turns_have_changed(world: UndoWorld) -> None:
    (world.root / "a file").write_text("".join(f"{line}\n" for line in range(20)))
    (world.root / "script").write_text("same\n")
    (world.root / "gone").write_text("last words")

    def act() -> None:
        (world.root / "a file").write_text("".join(f"{line}\n" for line in range(20) if line != 10))
        (world.root / "script").chmod(0o755)
        (world.root / "gone").unlink()
        (world.root / "binary").write_bytes(b"\0")
        (world.root / "folder").mkdir()

    await world.turn(world.writes("new", "one\ntwo\n"))
    await world.turn(world.runs(act))
    assert world.diff(1) == (
        "diff --git a/a file b/a file\n--- a/a file\t\n+++ b/a file\t\n"
        "@@ -8,7 +8,6 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n"
        "diff --git a/binary b/binary\nnew file mode 100644\nBinary files a/binary and b/binary differ\n"
        "new directory folder\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-last words\n\\ No newline at end of file\n"
        "diff --git a/script b/script\nold mode 100644\nnew mode 100755\n"
    )
    assert "+one\n+two\n" in world.diff(2)
    world.undo(2)
    assert world.diff(2) == ""
