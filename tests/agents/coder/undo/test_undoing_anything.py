"""Whatever turns do to the files of a workspace, undoing them leaves what was there before."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.coder.undo.test_undoing import tree
from tests.support.undone import UndoWorld

names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)
#: What is done, to which path, and what with: another path, or some text.
steps = st.tuples(st.sampled_from(("write", "make", "remove", "move", "permit", "link")), names, names)
commands = st.lists(steps, min_size=1, max_size=6)
Command: TypeAlias = list[tuple[str, str, str]]


def do(root: Path, what: str, name: str, other: str) -> None:
    """One step of a command; what cannot be done is not."""
    path = root / name
    with suppress(OSError):
        match what:
            case "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(other)
            case "make":
                path.mkdir(parents=True)
            case "remove":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "move":
                (root / other).parent.mkdir(parents=True, exist_ok=True)
                path.rename(root / other)
            case "permit":
                path.chmod(0o700 if len(other) > 1 else 0o755)
            case "link":
                path.symlink_to(f"to/{other}")


def run(root: Path, command: Command) -> None:
    for step in command:
        do(root, *step)


@pytest.mark.process
@settings(max_examples=25)
@given(st.lists(st.lists(commands, min_size=1, max_size=3), min_size=1, max_size=4), st.integers(1, 5))
def test_whatever_turns_have_done_is_undone(
    tmp_path_factory: pytest.TempPathFactory, turns: list[list[Command]], count: int
) -> None:
    world = UndoWorld(tmp_path_factory.mktemp("place"))
    before = [tree(world.root)]

    async def work() -> None:
        # From now on there is a record, in which every turn counts.
        await world.turn(world.writes("a/first", "old"))
        for turn in turns:
            before.append(tree(world.root))
            await world.turn(*(world.runs(partial(run, world.root, command)) for command in turn))

    asyncio.run(work())
    assert world.undo(count).left == ()
    assert tree(world.root) == before[-min(count, len(before))]
