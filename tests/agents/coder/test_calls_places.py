"""What was approved is where the tool works: paths that lead elsewhere by then, and files that run programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.coder.test_conversation import talking
from tests.support.fake_model import call, calls, words
from trunkline.agents.coder.calls import MOVED
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import ToolFinished, ToolRequested
from trunkline.models.messages import ToolUse


@pytest.mark.parametrize("tool", ["Write", "Edit", "Read"])
@pytest.mark.parametrize("way", ["link", "directory", "elsewhere"])
async def test_a_path_that_leads_elsewhere_after_the_answer_is_left_alone(tmp_path: Path, way: str, tool: str) -> None:
    workspace, away = tmp_path / "work", tmp_path / "away"
    (workspace / "d").mkdir(parents=True)
    away.mkdir()
    (away / "n.txt").write_text("precious\n")

    def swap(request: ToolRequested) -> Approve:
        assert not request.outside
        if way == "link":
            (workspace / "d" / "n.txt").symlink_to(away / "n.txt")
        else:
            (workspace / "d").rmdir()
            if way == "elsewhere":
                (workspace / "other").mkdir()
            (workspace / "d").symlink_to(away if way == "directory" else workspace / "other")
        return Approve()

    more = {"Write": {"content": "new"}, "Edit": {"old_string": "", "new_string": "new"}, "Read": {}}[tool]
    async with talking(workspace, calls(call(tool, file_path="d/n.txt", **more)), words("Oh.")) as talk:
        events = await talk.say("do it", swap)
    (end,) = [event for event in events if isinstance(event, ToolFinished)]
    assert (end.status, end.output) == ("error", MOVED)
    assert (away / "n.txt").read_text() == "precious\n"
    assert not (workspace / "other" / "n.txt").exists()


async def test_so_is_a_search_of_several_places_of_which_one_leads_out_by_then(tmp_path: Path) -> None:
    workspace, away = tmp_path / "work", tmp_path / "away"
    (workspace / "d").mkdir(parents=True)
    away.mkdir()
    (away / "precious.txt").touch()

    def swap(request: ToolRequested) -> Approve:
        assert not request.outside
        (workspace / "d").rmdir()
        (workspace / "d").symlink_to(away)
        return Approve()

    async with talking(workspace, calls(call("Glob", pattern="{d,e}/*.txt")), words("Oh.")) as talk:
        events = await talk.say("do it", swap)
    (end,) = [event for event in events if isinstance(event, ToolFinished)]
    assert (end.status, end.output) == ("error", MOVED)


async def test_a_change_of_a_file_that_makes_programs_run_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    wanted: list[ToolRequested] = []

    def keep(request: ToolRequested) -> Approve:
        wanted.append(request)
        return Approve()

    replies = [
        calls(call("Write", file_path=".git/config", content="[core]\n"), call("Read", "t2", file_path=".git/config")),
        words("Done."),
    ]
    async with talking(tmp_path, *replies) as talk:
        await talk.say("do it", keep)
    assert [(request.name, request.outside) for request in wanted] == [("Write", True), ("Read", False)]
    assert wanted[0].description == "Write to .git/config (to a file that makes programs run)"


@pytest.mark.parametrize(
    "asks",
    [call("Read", file_path="~/.ssh/id_rsa"), call("Grep", pattern="KEY", path="~/.ssh")],
    ids=["Read", "Grep"],
)
async def test_reading_such_a_file_elsewhere_is_said_to_be_outside(tmp_path: Path, asks: ToolUse) -> None:
    async with talking(tmp_path, calls(asks), words("Done.")) as talk:
        events = await talk.say("do it", lambda request: Deny("no"))
    (request,) = [event for event in events if isinstance(event, ToolRequested)]
    assert request.description.endswith(" (outside the workspace)")
