"""Sub-agents of one's own: who they are, what they may use, and how they go on."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.agents.coder.test_conversation import Talk, notices, talking
from tests.agents.coder.test_history import Notebook
from tests.support import coding
from tests.support.conversations import read
from tests.support.fake_model import USED, Reply, call, calls, words
from tests.support.undone import Act
from trunkline.agents.coder import subagents_kept
from trunkline.agents.coder.extending.own_agents import OwnAgent
from trunkline.core.events import Progress, ToolRequested, TurnEnded
from trunkline.core.usage import Usage
from trunkline.models.messages import Message, Text, ToolResultBlock
from trunkline.models.model import Request
from trunkline.models.providers import ModelSettings
from trunkline.tools.toolbox import Toolbox

REVIEWER = """---
name: reviewer
description: Looks for mistakes.
tools: Read, Grep, Bash(git log:*)
model: small-one
---
You are strict. Count the mistakes.
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    return place


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


def spawn(*tasks: dict[str, Any], call_id: str = "t1") -> Reply:
    return calls(call("Spawn", call_id, tasks=list(tasks)))


def task(**more: str) -> dict[str, Any]:
    return {"name": "look", "prompt": "Look at it.", **more}


def result(talk: Talk) -> str:
    (block,) = talk.model.asked[-1].content
    assert isinstance(block, ToolResultBlock)
    return block.text


def agent_id(text: str) -> str:
    found = re.search(r"^agent_id: (\w+)$", text, re.MULTILINE)
    assert found
    return found[1]


def names(request: Request) -> list[str]:
    return [tool.name for tool in request.tools]


def spawn_schema(talk: Talk) -> dict[str, Any]:
    (spec,) = [tool for tool in talk.models[0].requests[0].tools if tool.name == "Spawn"]
    found: dict[str, Any] = spec.schema["properties"]["tasks"]["items"]["properties"]
    return found


async def test_an_agent_of_the_workspace_has_its_own_words_and_fewer_tools(place: Path) -> None:
    write(place / ".trunkline" / "agents", "reviewer", REVIEWER)
    async with talking(place, spawn(task(agent="reviewer")), words("Two."), words("ok")) as talk:
        events = await talk.say("review it")
        assert "- reviewer: Looks for mistakes." in spawn_schema(talk)["agent"]["description"]
        theirs = talk.model.requests[1]
        assert sorted(names(theirs)) == ["Bash", "Grep", "Read"]
        assert "You are strict. Count the mistakes." in theirs.system
        assert "You are strict" not in talk.model.requests[0].system
        # Nobody trusts this workspace: which model is asked is not for its files to say.
        assert len(talk.models) == 1
        assert "## look [OK]\nTwo." in result(talk)
        said = [event.message for event in events if isinstance(event, Progress)]
        assert said == ["look (agent reviewer): at work", "look: done after 0 rounds of tools"]
        assert events[-1] == TurnEnded("success", USED + USED + USED)


async def test_the_model_of_an_agent_counts_where_the_workspace_is_trusted(place: Path) -> None:
    write(place / ".trunkline" / "agents", "reviewer", REVIEWER)
    wanted: list[ModelSettings] = []
    replies = (spawn(task(agent="reviewer")), words("Two."), words("ok"))
    async with talking(place, *replies, wanted=wanted, trusted=True) as talk:
        await talk.say("review it")
        assert [settings.model for settings in wanted] == [None, "small-one"]
        assert "You are strict." in talk.models[1].requests[0].system
        assert len(talk.models[0].requests) == 2


@pytest.mark.parametrize("folder", [".trunkline/agents", ".claude/agents"])
async def test_the_users_own_agents_are_found_and_may_choose_their_model(home: Path, place: Path, folder: str) -> None:
    write(home / folder, "helper", "---\ndescription: Helps.\nmodel: big-one\ntools:\n---\nHelp well.")
    wanted: list[ModelSettings] = []
    async with talking(place, spawn(task(agent="helper")), words("x"), words("ok"), wanted=wanted) as talk:
        await talk.say("go")
        assert wanted[-1].model == "big-one"
        request = talk.models[1].requests[0]
        assert "Help well." in request.system
        # Nothing named is everything, except more sub-agents and the list that people watch.
        assert set(names(request)) == set(names(talk.models[0].requests[0])) - {"Spawn", "TodoWrite"}


@pytest.mark.parametrize(("tools", "told"), [("[]", "## look [OK]"), ("Reed, [Grip]", "none of the tools `Reed`")])
async def test_an_agent_without_tools_has_none_and_one_with_slips_is_an_error(
    place: Path, tools: str, told: str
) -> None:
    write(place / ".trunkline" / "agents", "bare", f"---\ndescription: Thinks.\ntools: {tools}\n---\nThink.")
    async with talking(place, spawn(task(agent="bare")), words("x"), words("ok")) as talk:
        await talk.say("go")
        assert told in result(talk)
        if tools == "[]":
            assert names(talk.model.requests[1]) == []


@pytest.mark.parametrize("named", ["Fetch", "mcp__web__fetch", "mcp__web", "mcp__web__*", "mcp__*"])
def test_an_agent_may_name_the_tools_of_servers_as_rules_do(named: str) -> None:
    class Served(Act):
        rule_name = "mcp__web__fetch"

    ours, theirs = Act(print, "Read", "info"), Served(print, "fetch", "mcp")
    toolbox = Toolbox([ours, theirs])
    OwnAgent("x", "", (named,), "", "").narrow(toolbox)
    assert toolbox.names == ("fetch",)


async def test_a_workspace_that_nobody_trusts_has_no_agents_elsewhere(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "diary", "---\ndescription: Private.\n---\nDear diary.")
    (place / ".claude" / "agents").mkdir(parents=True)
    (place / ".claude" / "agents" / "diary.md").symlink_to(tmp_path / "elsewhere" / "diary.md")
    for trusted in (False, True):
        async with talking(place, words("ok"), trusted=trusted) as talk:
            told = notices(await talk.say("hello"))
            assert any("link" in note for note in told) is not trusted
            assert ("agent" in spawn_schema(talk)) is trusted


async def test_an_agent_that_is_not_there_is_an_error_that_names_those_that_are(place: Path) -> None:
    write(place / ".claude" / "agents", "reviewer", REVIEWER)
    async with talking(place, spawn(task(agent="revewer")), words("ok")) as talk:
        await talk.say("go")
        assert result(talk) == "There is no agent `revewer`. Did you mean `reviewer`? There are: `reviewer`."


async def test_without_agents_the_model_hears_of_none(place: Path) -> None:
    async with talking(place, spawn(task(agent="x")), words("ok")) as talk:
        await talk.say("go")
        assert sorted(spawn_schema(talk)) == ["name", "prompt", "resume"]
        assert "There are: none." in result(talk)


async def test_a_file_that_cannot_be_used_is_told_once_and_changes_count(place: Path) -> None:
    write(place / ".trunkline" / "agents", "broken", "---\nname: [broken\n")
    async with talking(place, words("ok"), words("ok"), words("ok")) as talk:
        (told,) = notices(await talk.say("one"))
        assert told.startswith("Agents that cannot be used: ")
        assert "broken.md`: " in told
        assert notices(await talk.say("two")) == []
        write(place / ".trunkline" / "agents", "broken", REVIEWER)
        await talk.say("three")
        (spec,) = [tool for tool in talk.model.requests[-1].tools if tool.name == "Spawn"]
        assert "reviewer" in str(spec.schema)


async def test_their_calls_are_asked_about_like_all_others(place: Path) -> None:
    write(place / ".trunkline" / "agents", "reviewer", REVIEWER)
    replies = (
        spawn(task(agent="reviewer")),
        calls(call("Bash", "b1", command="true"), call("Write", "w1", file_path="x", content="y")),
        words("Done."),
        words("ok"),
    )
    async with talking(place, *replies) as talk:
        events = await talk.say("go")
        asked = [event.call_id for event in events if isinstance(event, ToolRequested)]
        assert asked == ["t1", "sub1.b1"]
        results = talk.model.requests[2].messages[-1].content
        assert [block.text for block in results if isinstance(block, ToolResultBlock)][1] == "Unknown tool: Write"


async def test_sub_agents_work_side_by_side_and_all_of_them_count(place: Path) -> None:
    met = [asyncio.Event(), asyncio.Event()]

    def meeting(mine: int) -> Reply:
        def reply(request: Request) -> Any:
            met[mine].set()
            return [met[1 - mine], *words("here")]

        return reply

    both = spawn(task(), {"name": "other", "prompt": "Look, too."})
    async with talking(place, both, meeting(0), meeting(1), words("ok")) as talk:
        events = await talk.say("go")
        assert events[-1] == TurnEnded("success", Usage(40, 20))
        assert len(set(re.findall(r"^agent_id: (\w+)$", result(talk), re.MULTILINE))) == 2


async def test_a_sub_agent_goes_on_with_what_it_knows_also_in_a_resumed_session(place: Path) -> None:
    write(place / ".trunkline" / "agents", "reviewer", REVIEWER)
    async with talking(place, spawn(task(agent="reviewer")), words("Two."), words("ok"), words("Short.")) as talk:
        await talk.say("review it")
        first = agent_id(result(talk))
        await talk.say("/compact")
        notebook = Notebook(*talk.notebook.kept)
    again = spawn({"name": "again", "prompt": "And now?", "resume": first}, call_id="t2")
    async with talking(place, again, words("Three."), words("ok"), notebook=notebook) as talk:
        await talk.say("and now?")
        theirs = talk.model.requests[1]
        assert theirs.messages == (
            Message("user", (Text("Look at it."),)),
            Message("assistant", (Text("Two."),)),
            Message("user", (Text("And now?"),)),
        )
        assert "You are strict." in theirs.system
        assert agent_id(result(talk)) == first


async def test_whoever_is_unknown_cannot_go_on_nor_anybody_twice_at_once(place: Path) -> None:
    replies = (
        spawn(task(resume="feedbeef")),
        spawn(task(resume="a"), task(resume="a"), call_id="t2"),
        words("ok"),
    )
    async with talking(place, *replies) as talk:
        await talk.say("go")
        (unknown,) = talk.model.requests[1].messages[-1].content
        assert isinstance(unknown, ToolResultBlock)
        assert unknown.text == "There is no sub-agent `feedbeef` that could go on. There are: none."
        assert "one task at a time" in result(talk)


async def test_what_is_kept_of_them_is_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subagents_kept, "MOST_KEPT", 2)
    monkeypatch.setattr(subagents_kept, "MOST_CHARS", 400)
    replies: list[Reply] = []
    for number in range(3):
        replies += [spawn(task(), call_id=f"t{number}")]
        if number == 2:
            replies += [calls(call("Bash", "b", command="seq 1000"))]
        replies += [words(f"Answer {number}.")]
    async with talking(place, *replies, words("ok")) as talk:
        await talk.say("go")
        notebook = Notebook(*talk.notebook.kept)
        last = agent_id(result(talk))
    async with talking(place, notebook=notebook) as talk:
        kept = talk.conversation._history.aside  # type: ignore[attr-defined]  # what a resumed session knows
        assert len(kept) == 2
        assert list(kept)[-1] == last
        assert [message["role"] for message in kept[last]["messages"]] == ["user", "assistant"]


async def test_forgetting_the_conversation_forgets_them_too(place: Path) -> None:
    async with talking(place, spawn(task()), words("x"), words("ok")) as talk:
        await talk.say("go")
        await talk.say("/clear")
        assert not [record for record in talk.notebook.kept if record["role"] == "subagent"]


@pytest.mark.process
@pytest.mark.parametrize("provider", coding.PROVIDERS)
def test_over_the_wire_each_is_shown_by_name_and_goes_on_by_its_id(place: Path, provider: str) -> None:
    write(place / ".trunkline" / "agents", "reviewer", REVIEWER)
    (place / "a.txt").write_text("alpha")

    def again(request: Any) -> Any:
        found = agent_id(read(request.json).results[0])
        return coding.calls(("Spawn", {"tasks": [{"name": "again", "prompt": "Now?", "resume": found}]}))(request)

    replies = (
        coding.calls(("Spawn", {"tasks": [task(agent="reviewer")]})),
        coding.calls(("Bash", {"command": "cat a.txt"})),
        coding.says("It is alpha."),
        again,
        coding.says("Still alpha."),
        coding.says("Done."),
    )
    with coding.coding(place, *replies, provider=provider) as agent:
        lines = agent.ask("Review it.")
        asked = [line["tool"]["description"] for line in coding.of(lines, "tool_request")]
        assert asked[1].startswith("look: ")
        assert coding.text_of(lines) == "Done."
        assert "Still alpha." in agent.asked.results[-1]
        assert len(agent.requests) == 6
