"""A call is read once: what is judged and shown is what runs, and what is of the wrong type is the model's error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import FakeModel, calls, words
from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.compaction import Compaction
from trunkline.agents.coder.history import History, NoJournal
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.turn_runner import TurnRunner
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import Approve
from trunkline.core.approvals import Decisions
from trunkline.core.events import Event, ToolFinished, ToolRequested
from trunkline.models.messages import Text, ToolUse
from trunkline.tools.bash import BashTool
from trunkline.tools.files import FileMemory
from trunkline.tools.spawn import SpawnTool, SubAgentOutcome, Task
from trunkline.tools.tool import Report, Tool
from trunkline.tools.toolbox import Toolbox, standard_tools
from trunkline.tools.workspace import Workspace

SECRET = "the secret of the neighbour"


class Nobody:
    """Spawns nobody."""

    async def spawn(self, tasks: Any, report: Report) -> list[SubAgentOutcome]:
        raise AssertionError("it was to be refused before")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A directory with links out of it, whose names are numbers."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "s.txt").write_text(SECRET)
    (tmp_path / "away").mkdir()
    (inside / "5").symlink_to("../s.txt")
    (inside / "6").symlink_to("../away")
    (inside / "7").symlink_to("../written.txt")
    return inside


async def played(workspace: Path, name: str, args: dict[str, Any]) -> list[Event]:
    """The events of a turn in which a model makes one call, and all that is asked is approved."""
    tools: list[Tool] = [*standard_tools(Workspace(workspace), FileMemory()), BashTool(str(workspace))]
    decisions, history = Decisions(), History(NoJournal())
    history.user((Text("go"),))
    made = Calls(Toolbox([*tools, SpawnTool(Nobody())]), decisions)
    client = ModelClient(FakeModel(calls(ToolUse("t1", name, args)), words("ok")), lambda: "")
    tell = TurnStream(TurnRunner(client, history, made, Compaction(client, history, made.specs)).run)
    events = []
    async for event in tell:
        events.append(event)
        if isinstance(event, ToolRequested):
            decisions.resolve(event.call_id, Approve())
    return events


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        ("Read", {"file_path": 5}, "Parameter `file_path` must be a string."),
        ("Read", {"path": 5}, "Parameter `file_path` must be a string."),
        ("Read", {"file_path": 5.0}, "Parameter `file_path` must be a string."),
        ("Grep", {"pattern": "s", "path": 6}, "Parameter `path` must be a string."),
        ("Grep", {"pattern": 5}, "Parameter `pattern` must be a string."),
        ("Glob", {"pattern": "*", "path": 6}, "Parameter `path` must be a string."),
        ("Glob", {"pattern": 6}, "Parameter `pattern` must be a string."),
        ("Write", {"file_path": 7, "content": "x"}, "Parameter `file_path` must be a string."),
        ("Edit", {"file_path": 7, "old_string": "", "new_string": "x"}, "Parameter `file_path` must be a string."),
        ("Bash", {"command": 5}, "Parameter `command` must be a string."),
        ("Bash", {"cmd": ["rm", "5"]}, "Parameter `command` must be a string."),
        ("Spawn", {"tasks": "read 5"}, "Parameter `tasks` must be an array."),
        ("Spawn", {"tasks": [{"name": 5, "prompt": "x"}]}, "The `name` of task 1 must be a string."),
    ],
)
async def test_a_value_of_the_wrong_type_is_the_models_error_and_nothing_runs(
    workspace: Path, name: str, args: dict[str, Any], problem: str
) -> None:
    events = await played(workspace, name, args)
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert (finished.status, finished.output) == ("error", problem)
    assert not (workspace.parent / "written.txt").exists()
    if name != "Spawn" or args["tasks"] == "read 5":
        assert not [event for event in events if isinstance(event, ToolRequested)]


async def test_a_link_is_judged_by_where_it_leads(workspace: Path) -> None:
    events = await played(workspace, "Read", {"file_path": "5"})
    assert [event.outside for event in events if isinstance(event, ToolRequested)] == [True]


async def test_what_is_asked_about_is_the_very_object_that_the_tool_gets(workspace: Path) -> None:
    """An argument that the tool does not know is not shown, since it does nothing; nor is another name for one."""
    events = await played(workspace, "Bash", {"cmd": "echo hi", "content": "harmless", "timeout": "9000"})
    (request,) = [event for event in events if isinstance(event, ToolRequested)]
    assert request.args == {"command": "echo hi", "timeout": 9000}


async def test_a_tool_that_was_replaced_meanwhile_is_not_run_in_place_of_the_one_that_was_approved() -> None:
    class Named:
        """One of two tools of one name."""

        name, category, description, limit, concurrent = "T", "mcp", "", 100, False

        def __init__(self, word: str) -> None:
            self.parameters: dict[str, Any] = {}
            self.word = word

        def describe(self, args: Any) -> str:
            return self.word

        def outside(self, args: Any) -> bool:
            return False

        async def run(self, args: Any, report: Report) -> Any:
            from trunkline.tools.tool import ToolOutput

            return ToolOutput(self.word)

    first: Any = Named("first")
    second: Any = Named("second")
    box = Toolbox([first])
    reading = box.read("T", {})
    box.remove("T")
    box.add(second)
    assert (await reading.run(lambda text: None)).text == "first"


def test_tasks_are_told_by_the_names_that_they_will_have() -> None:
    tool = SpawnTool(Nobody())
    assert tool.describe({"tasks": [{"name": "a", "prompt": "x"}, {"prompt": "y"}]}) == "Spawn: a, task 2"
    assert Task("a", "x").name == "a"
