"""Programs that speak the Agent Client Protocol, as agents: what they ask, tell, forget and break. Real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import acp_agent
from tests.support.asked_turn import asked_turn
from tests.support.loop import until
from tests.support.misbehaving import end, notices, said, talk
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.external import acp_turn
from trunkline.agents.external.acp import AcpAgent, AcpConversation, AcpTiming
from trunkline.core import events as core
from trunkline.core.agent import (
    AddHistory,
    AddMcpServer,
    Agent,
    Approve,
    Decision,
    Deny,
    OpenRequest,
    SetMode,
    SetOptions,
)
from trunkline.core.approvals import Policy
from trunkline.core.events import Event, UserMessage
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, Unsupported
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import Usage

pytestmark = pytest.mark.process

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


class Journal:
    """An agent's records, kept in memory."""

    def __init__(self, *records: Any) -> None:
        self.records: Sequence[Any] = records

    def append(self, record: Any) -> None:
        self.records = (*self.records, record)

    def replace(self, records: Sequence[Any]) -> None:
        self.records = records


def agent(*habits: str, **options: Any) -> AcpAgent:
    return AcpAgent([sys.executable, "-S", "-E", str(acp_agent.__file__), *habits], name="scripted", **options)


@asynccontextmanager
async def opened(
    tmp_path: Path, *habits: str, options: dict[str, Any] | None = None, **request: Any
) -> AsyncIterator[AcpConversation]:
    """A conversation with the scripted agent, opened as a session opens it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        asked: dict[str, Any] = {"session_id": "ours", "journal": Journal(), "workspace": str(tmp_path)} | request
        conversation = await agent(*habits, **(options or {})).open(OpenRequest(**asked))
        try:
            yield conversation
        finally:
            await conversation.close()


async def decided(conversation: AcpConversation, text: str, decision: Decision) -> list[Event]:
    """The events of a turn in which everything is decided alike."""
    events: list[Event] = []
    async for event in conversation.turn(UserMessage(text)):
        events.append(event)
        if isinstance(event, core.ToolRequested):
            await conversation.decide(event.call_id, decision)
    return events


def of(kind: type[Event], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def recalled(conversation: AcpConversation) -> Any:
    """What the agent knows of its session."""
    return json.loads(said(await talk(conversation, "recall")))


def test_it_is_an_agent() -> None:
    made: Agent = AcpAgent(["x"], name="opencode", hint="Install it with `npm`.")
    assert made.name == "opencode"
    assert made.capabilities.approval
    problem = AcpAgent(["no-such-program"], hint="Install it with `npm`.").problem()
    assert problem == "There is no program `no-such-program` on `PATH`. Install it with `npm`."
    assert AcpAgent(["sh"]).problem() is None


async def test_a_program_that_is_missing_is_told_with_how_to_get_it(tmp_path: Path) -> None:
    missing = AcpAgent(["no-such-program"], hint="Install it with `npm`.")
    with pytest.raises(ConfigError, match=r"no program `no-such-program` on `PATH`\. Install it with `npm`\."):
        await missing.open(OpenRequest(session_id="s1", journal=Journal(), workspace=str(tmp_path)))


async def test_a_message_is_answered_with_what_it_used(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "echo one two")
        assert said(events) == "one two "
        assert core.SessionIdentified("s1") in events
        assert events[-1] == core.TurnEnded("success", Usage(20, 10, 5, None))
        assert conversation.session_id == "s1"


async def test_what_came_from_a_cache_counts_as_input_however_the_program_counts_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        assert (await talk(conversation, "echo cached-beside"))[-1] == core.TurnEnded("success", Usage(25, 10, 5, None))


# Tools


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("read", "info"), ("search", "info"), ("think", "info"), ("fetch", "info"),
        ("edit", "edit"), ("delete", "edit"), ("move", "edit"),
        ("execute", "exec"), ("switch_mode", "exec"), ("other", "exec"), ("never_heard_of", "exec"),
    ],
)  # fmt: skip
async def test_the_category_of_a_call_follows_its_kind_and_its_arguments_are_its_raw_input(
    tmp_path: Path, kind: str, category: str
) -> None:
    async with opened(tmp_path) as conversation:
        events = await decided(conversation, f'ask {kind} {{"command": "ls", "deep": [1, {{"a": null}}]}}', Deny())
        (request,) = of(core.ToolRequested, events)
        assert (request.category, request.args) == (category, {"command": "ls", "deep": [1, {"a": None}]})
        assert (request.name, request.description, request.outside) == (kind, "Do it", False)


async def test_an_approved_call_is_done_and_told_of(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await decided(conversation, 'ask execute {"command": "ls"}', Approve())
        assert (tmp_path / "done.txt").exists()
        kinds = [type(event).__name__ for event in events if isinstance(event, core.ToolStarted | core.ToolRequested)]
        # Not before it was asked about, although the agent said that it runs.
        assert kinds == ["ToolRequested", "ToolStarted"]
        assert of(core.ToolFinished, events) == [core.ToolFinished("c1", "execute", "success", "it is completed")]
        assert said(events) == "yes"


async def test_a_denied_call_is_not_done(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await decided(conversation, "ask execute", Deny("no"))
        assert said(events) == "no"
        assert not (tmp_path / "done.txt").exists()
        assert of(core.ToolStarted, events) == []


@pytest.mark.parametrize(
    ("offered", "decision", "chosen"),
    [
        ("allow_once allow_always", Approve(), "yes"),
        ("allow_once allow_always", Approve("always"), "all"),
        ("allow_once", Approve("always"), "yes"),
        ("allow_always reject_once", Approve(), "no"),
        ("allow_always", Approve(), "cancelled"),
        ("reject_once reject_always", Deny(), "no"),
        ("reject_always", Deny(), "never"),
        ("allow_once", Deny(), "cancelled"),
        ("", Approve(), "cancelled"),
    ],
)
async def test_a_decision_is_the_agents_own_option_that_says_so_or_the_nearest_that_allows_no_more(
    tmp_path: Path, offered: str, decision: Decision, chosen: str
) -> None:
    async with opened(tmp_path, options={"pass_always": True}) as conversation:
        events = await decided(conversation, f"offers {offered}", decision)
        assert said(events) == chosen
        if isinstance(decision, Approve) and chosen not in ("yes", "all"):
            (cancelled,) = of(core.ToolCancelled, events)
            assert "no way to allow it" in cancelled.reason


async def test_a_grant_is_not_passed_down_unless_that_is_wanted(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        assert said(await decided(conversation, "ask execute", Approve("always"))) == "yes"


async def test_a_question_about_a_call_that_was_never_told_of_is_one_all_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await decided(conversation, "unknown", Approve())
        (request,) = of(core.ToolRequested, events)
        assert (request.category, request.args, request.description) == ("edit", {"file_path": "a.txt"}, "Write a.txt")
        assert said(events) == "yes"


async def test_a_command_without_arguments_is_known_by_its_title(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        (command,) = of(core.ToolRequested, await decided(conversation, "ask execute", Deny()))
        (other,) = of(core.ToolRequested, await decided(conversation, "ask other", Deny()))
        assert (command.args, other.args) == ({"command": "Do it"}, {})


async def test_what_an_edit_changes_is_told_before_it_is_decided(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        (bare,) = of(core.ToolRequested, await decided(conversation, "diff", Deny()))
        assert "-two\n+2" in bare.args["diff"]
        (named,) = of(core.ToolRequested, await decided(conversation, 'diff {"file": "a.txt"}', Deny()))
        assert named.args == {"file": "a.txt"}
        assert "-two\n+2" in named.description
        (told,) = of(core.ToolRequested, await decided(conversation, 'diff {"content": "one\\n2\\n"}', Deny()))
        assert told.description == "Change a.txt"


async def test_what_the_agent_shows_of_a_call_comes_before_the_question_about_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await decided(conversation, 'diff {"file": "a.txt"}', Deny())
        (asked,) = of(core.ToolRequested, events)
        before = events[events.index(asked) - 1]
        assert isinstance(before, core.Extension)
        assert (before.kind, before.data["call_id"], before.data["title"]) == (
            core.CALL_SHOWN,
            asked.call_id,
            "Change a.txt",
        )
        (changed,) = before.data["changes"]
        assert changed["path"].endswith("a.txt")
        assert ("two" in changed["old"], "2" in changed["new"]) == (True, True)


async def test_what_leads_out_of_the_workspace_is_marked(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        (inside,) = of(core.ToolRequested, await decided(conversation, 'ask edit {"path": "a/b.txt"}', Deny()))
        (outside,) = of(core.ToolRequested, await decided(conversation, 'ask edit {"path": "/etc/passwd"}', Deny()))
        assert (inside.outside, outside.outside) == (False, True)


async def test_a_second_question_about_a_call_is_another_one(tmp_path: Path) -> None:
    session = await Session.open(agent(), MemoryLog("s1"), Policy(), workspace=str(tmp_path))
    try:
        events = await asked_turn(session, "twice", lambda session, asked: session.answer(asked.call_id, Approve()))
        assert [asked.call_id for asked in of(core.ToolRequested, events)] == ["c1", "c1#2"]
        assert said(events) == "yes yes"
        assert of(core.Failed, events) == []
    finally:
        await session.close()


async def test_a_question_that_is_taken_back_waits_for_nobody(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "withdraw")
        assert said(events) == "-32800"
        requests = of(core.ToolRequested, events)
        assert len(of(core.ToolCancelled, events)) == len(requests)


async def test_tools_that_nobody_is_asked_about_begin_and_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "tool")
        assert [event.name for event in of(core.ToolStarted, events)] == ["view", "mcp__web__shot", "Edit"]
        look, shot, edit = of(core.ToolFinished, events)
        assert (look.status, look.output, look.metadata) == ("success", "seen", {"file_path": "/tmp/x"})
        assert (shot.output, shot.output_type) == ("cG5n", "image")
        assert (edit.status, edit.output_type) == ("error", "diff")
        assert "+x" in edit.output


async def test_a_tool_that_takes_long_is_shown_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_turn, "HOLD_SECONDS", 0.01)
    async with opened(tmp_path) as conversation:
        async for event in conversation.turn(UserMessage("long-tool")):
            if isinstance(event, core.ToolStarted):
                await conversation.cancel()
        assert isinstance(event, core.TurnEnded)
        assert event.outcome == "cancelled"


async def test_thoughts_plans_commands_and_the_rest_are_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "news")
        assert core.ThinkingDelta("hm") in events
        entries = (core.PlanEntry("look", "high", "completed"), core.PlanEntry("do"))
        assert of(core.Plan, events) == [core.Plan(entries)]
        told = {event.kind: event.data for event in of(core.Extension, events)}
        assert told == {
            "commands": {"commands": [{"name": "init", "description": "Begin", "hint": "where"}]},
            "agent_mode": {"mode": "yolo"},
            "context": {"used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}},
        }
        assert said(events) == "[a](file:///a)"
        assert len(notices(events)) == 1


async def test_what_is_told_between_turns_is_announced(tmp_path: Path) -> None:
    announced: list[Event] = []
    async with opened(tmp_path, announce=announced.append):
        pass
    assert [event.data for event in of(core.Extension, announced)] == [
        {"commands": [{"name": "early", "description": "First", "hint": ""}]}
    ]


# What it is told


async def test_instructions_and_history_go_ahead_of_the_first_message(tmp_path: Path) -> None:
    async with opened(tmp_path, instructions="Be brief.", history=("We spoke of cats.",)) as conversation:
        await talk(conversation, "/init")
        await talk(conversation, "echo hello")
        await conversation.configure(AddHistory("And of dogs."))
        await talk(conversation, "echo again")
        first, second, third = (await recalled(conversation))["said"]
        assert first == "/init"
        assert [block["text"] for block in json.loads(second)] == [
            "[Assistant System Rules]\nBe brief.", "We spoke of cats.", "echo hello",
        ]  # fmt: skip
        assert [block["text"] for block in json.loads(third)] == ["And of dogs.", "echo again"]


async def test_files_are_blocks_as_the_agent_takes_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text of a")
    (tmp_path / "b.png").write_bytes(PNG)
    (tmp_path / "c.bin").write_bytes(b"\0\1")
    (tmp_path / "d").mkdir()
    files = ("a.txt", "b.png", "c.bin", "d", "missing.txt")
    kinds: dict[str, list[str]] = {}
    for habit in ("rich", "plain"):
        async with opened(tmp_path, habit) as conversation:
            events = [event async for event in conversation.turn(UserMessage("echo x", files))]
            assert "missing.txt" in notices(events)[0]
            blocks = json.loads((await recalled(conversation))["said"][0])
            kinds[habit] = [block["type"] for block in blocks]
            if habit == "rich":
                assert blocks[1]["resource"]["text"] == "text of a"
                assert blocks[3]["uri"] == f"file://{tmp_path}/c.bin"
    assert kinds["rich"] == ["text", "resource", "image", "resource_link", "resource_link"]
    assert kinds["plain"] == ["text", *["resource_link"] * 4]


async def test_mcp_servers_are_handed_to_the_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        await conversation.configure(AddMcpServer("files", "stdio", command="mcp-files", args=("-r",), env={"A": "b"}))
        found = await recalled(conversation)
        files = {"name": "files", "command": "mcp-files", "args": ["-r"], "env": [{"name": "A", "value": "b"}]}
        assert found["servers"] == [files]
        # In the middle of a session, too, if it can be gone on with.
        await conversation.configure(AddMcpServer("web", "streamable-http", url="http://127.0.0.1:1/mcp"))
        again = await recalled(conversation)
        web = {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": []}
        assert again["servers"] == [files, web]
        assert (again["session"], again["said"]) == (found["session"], ["recall"])
        with pytest.raises(Unsupported, match="sse"):
            await conversation.configure(AddMcpServer("old", "sse", url="http://127.0.0.1:1"))


async def test_modes_and_options_reach_the_agent(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        await conversation.configure(SetMode("auto_edit"))
        await conversation.configure(SetOptions({"model": "large"}))
        found = await recalled(conversation)
        assert (found["current"], found["model"]) == ("auto-edit", "large")
        with pytest.raises(Unsupported, match="`temperature`"):
            await conversation.configure(SetOptions({"temperature": 1}))


async def test_an_agent_that_would_decide_by_itself_is_told_to_ask(tmp_path: Path) -> None:
    async with opened(tmp_path, "decides") as conversation:
        assert (await recalled(conversation))["current"] == "default"
    async with opened(tmp_path, "decides", options={"mode": "auto-edit"}) as conversation:
        assert (await recalled(conversation))["current"] == "auto-edit"
    async with opened(tmp_path, "decides", options={"mode": "it-has-none-like-that"}) as conversation:
        assert (await recalled(conversation))["current"] == "yolo"


# Ends


async def test_a_stop_ends_the_turn_and_the_session_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        pid = said(await talk(conversation, "pid"))
        async for event in conversation.turn(UserMessage("hang")):
            if isinstance(event, core.TextDelta):
                await conversation.cancel()
        assert event == core.TurnEnded("cancelled", Usage(20, 10, 5, None))
        events = await talk(conversation, "pid")
        assert (said(events), notices(events)) == (pid, [])


async def test_a_stop_while_it_asks_withdraws_the_question(tmp_path: Path) -> None:
    session = await Session.open(agent(), MemoryLog("s1"), Policy(), workspace=str(tmp_path))
    try:
        events = await asked_turn(session, "ask execute", lambda session, asked: session.stop())
        assert end(events).outcome == "cancelled"
        assert said(await asked_turn(session, "echo next", lambda session, asked: None)) == "next "
        assert not (tmp_path / "done.txt").exists()
    finally:
        await session.close()


async def test_a_program_that_ignores_a_stop_is_killed_and_started_again_with_its_session(tmp_path: Path) -> None:
    async with opened(tmp_path, options={"timing": AcpTiming(stop=0.1)}) as conversation:
        pid = int(said(await talk(conversation, "pid")))
        async for event in conversation.turn(UserMessage("deaf")):
            if isinstance(event, core.TextDelta):
                await conversation.cancel()
        assert end([event]).outcome == "cancelled"
        events = await talk(conversation, "recall")
        assert (
            "ignored a stop and was killed; it was started again and continues the same session" in notices(events)[0]
        )
        assert json.loads(said(events))["said"] == ["pid", "deaf"]
        assert not (Path("/proc") / str(pid)).exists()


@pytest.mark.parametrize("habit", ["resumes", "loads"])
async def test_an_agent_that_crashed_is_started_again_with_the_next_message_and_its_session(
    tmp_path: Path, habit: str
) -> None:
    async with opened(
        tmp_path, habit, history=("cats",), options={"env": {"SOME_API_KEY": "sk-very-secret-1"}}
    ) as conversation:
        await talk(conversation, "echo one")
        crashed = await talk(conversation, "crash now")
        (failed,) = of(core.Failed, crashed)
        assert "exit code 3" in failed.message
        assert "it broke" in failed.message
        assert "sk-very-secret-1" not in failed.message
        assert end(crashed).outcome == "unknown"
        events = await talk(conversation, "recall")
        assert "it was started again and continues the same session" in notices(events)[0]
        assert "a replayed answer" not in said(events)
        assert len(json.loads(said(events))["said"]) == 2


async def test_one_that_ended_between_messages_is_started_again(tmp_path: Path) -> None:
    async with opened(tmp_path, "no-load", history=("cats",)) as conversation:
        os.kill(int(said(await talk(conversation, "pid"))), signal.SIGKILL)
        program = conversation._line.opened
        assert program is not None
        await until(program.program.ended.done)
        events = await talk(conversation, "recall")
        told = notices(events)
        assert any("SIGKILL" in notice and "does not remember what was said before" in notice for notice in told)
        assert len(json.loads(said(events))["said"]) == 0
        # It was told what it cannot know.
        assert "cats" in (tmp_path / ".acp-s2.json").read_text()


async def test_a_session_of_ours_that_is_resumed_goes_on_with_the_agents_own(tmp_path: Path) -> None:
    journal = Journal()
    async with opened(tmp_path, journal=journal, instructions="Be brief.") as conversation:
        await talk(conversation, "echo one")
    async with opened(tmp_path, journal=journal, resumed=True, instructions="Be brief.") as conversation:
        found = await recalled(conversation)
        assert found["session"] == "s1"
        assert len(found["said"]) == 1
    async with opened(tmp_path, "forgets", journal=journal, resumed=True, instructions="Be brief.") as conversation:
        events = await talk(conversation, "recall")
        assert "could not resume session `s1` and began a new one: No session s1" in notices(events)[0]
        assert json.loads(said(events))["session"] == "s2"
        assert "Be brief." in (tmp_path / ".acp-s2.json").read_text()
    assert journal.records == ({"acp_session": "s1"}, {"acp_session": "s2"})


async def test_a_session_of_ours_without_one_of_the_agents_says_what_that_means(tmp_path: Path) -> None:
    async with opened(tmp_path, resumed=True) as conversation:
        assert "does not remember" in notices(await talk(conversation, "echo x"))[0]


async def test_lines_that_are_no_messages_are_told_of_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "garbage")
        assert said(events) == "-32601"
        assert len(notices(events)) == 1
        assert end(events).outcome == "success"


async def test_an_agent_that_cannot_answer_says_why_and_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "fail out of credit")
        (failed,) = of(core.Failed, events)
        assert failed.message == "The agent could not answer: Internal error (out of credit)"
        assert end(events).outcome == "error"
        assert end(await talk(conversation, "odd-answer")).outcome == "error"
        assert said(await talk(conversation, "echo next")) == "next "


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", "success"),
        ("max_tokens", "success"),
        ("refusal", "error"),
        ("cancelled", "cancelled"),
        ("odd", "success"),
    ],
)
async def test_why_it_stopped_is_how_the_turn_came_out(tmp_path: Path, reason: str, outcome: str) -> None:
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, f"reason {reason}")
        assert end(events).outcome == outcome
        assert bool(notices(events)) == (reason == "max_tokens")


async def test_more_open_calls_than_anybody_could_follow_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp_turn, "MAX_OPEN_CALLS", 0)
    async with opened(tmp_path) as conversation:
        events = await talk(conversation, "ask execute")
        assert "tool calls open at once" in of(core.Failed, events)[0].message
        assert end(events).outcome == "unknown"


@pytest.mark.parametrize(
    ("habit", "fault", "told"),
    [
        ("quits", AgentFailed, "there is no model here"),
        ("version:2", ConfigError, "speaks version 2"),
        ("refuses", AgentFailed, "no model is configured"),
        ("login", ConfigError, r"wants to be logged in: Authentication required.* Use a key \(Set SOME_API_KEY\)"),
    ],
)
async def test_a_program_that_cannot_begin_is_reported_when_it_is_opened(
    tmp_path: Path, habit: str, fault: type[Exception], told: str
) -> None:
    with pytest.raises(fault, match=told):
        async with opened(tmp_path, habit):
            pass


async def test_a_program_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(AgentTimeout):
        async with opened(tmp_path, "mute", options={"ready_seconds": 0.2}):
            pass


async def test_what_it_can_do_is_what_it_says(tmp_path: Path) -> None:
    made = agent("no-load", "plain")
    conversation = await made.open(OpenRequest(session_id="x", journal=Journal(), workspace=str(tmp_path)))
    assert (made.capabilities.resume, made.capabilities.images) == (False, False)
    await talk(conversation, "echo x")
    with pytest.raises(Unsupported):
        await conversation.configure(AddMcpServer("files", "stdio", command="mcp-files"))
    await conversation.close()
