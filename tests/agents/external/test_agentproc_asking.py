"""Claude Code and Codex through the hub ask before they act: with processes that play them, as agents in a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.asked_turn import Decide, asked_turn
from tests.support.fake_cli import EXIT_CRASHED, install_fake
from tests.support.fake_cli_plays import answer_to
from tests.support.fake_dialogue import COMMAND, SECOND_COMMAND
from trunkline.agents.external.agentproc import AgentProcAgent
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Event,
    Failed,
    Granted,
    Notice,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.agentproc import hub
from trunkline.wires.agentproc.drive import run
from trunkline.wires.agentproc.messages import Ignored, Said, TurnRequest

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("name", ["claude-code", "codex"])

Kind = TypeVar("Kind", bound=Event)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    for name in ("claude-code", "codex"):
        install_fake(tmp_path, name)
    return {"PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}


class Chat:
    """A session with one of them, and all that was heard of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events: list[Event] = []

    async def turn(self, text: str, decide: Decide) -> list[Event]:
        """The events of one turn."""
        return await asked_turn(self.session, text, decide)


async def chat(name: str, environ: dict[str, str], workspace: Path) -> Chat:
    agent = AgentProcAgent(hub.load(name).replace(kill_grace_secs=1.0), environ=environ)
    assert agent.capabilities.approval
    return Chat(await Session.open(agent, MemoryLog("s1"), Policy(), workspace=str(workspace)))


def saying(decision: Decision) -> Decide:
    return lambda session, asked: session.answer(asked.call_id, decision)


def of(kind: type[Kind], events: list[Event]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


def text(events: list[Event]) -> str:
    return "".join(event.text for event in of(TextDelta, events))


@both
async def test_a_yes_lets_it_act_and_a_no_does_not(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    talk = await chat(name, environ, tmp_path)
    allowed = await talk.turn("ask", saying(Approve()))
    (asked,) = of(ToolRequested, allowed)
    assert (asked.name, asked.category, asked.args["command"]) == ("Bash", "exec", COMMAND)
    assert asked.description
    assert [event.call_id for event in of(ToolStarted, allowed)] == [asked.call_id]
    assert of(ToolFinished, allowed) == [ToolFinished(asked.call_id, "Bash", "success", "(no output)")]
    assert text(allowed) == answer_to("allowed")
    denied = await talk.turn("ask", saying(Deny("rather not")))
    (cancelled,) = of(ToolCancelled, denied)
    assert cancelled.reason == "rather not"
    assert not of(ToolStarted, denied)
    # Codex has no place for a reason.
    assert text(denied) == answer_to("denied (rather not)" if name == "claude-code" else "denied")
    assert of(TurnEnded, denied)[0].outcome == "success"
    assert talk.session.status.value == "idle"
    await talk.session.close()


async def test_always_at_a_terminal_is_for_that_command_of_theirs_and_no_other(
    environ: dict[str, str], tmp_path: Path
) -> None:
    talk = await chat("claude-code", environ, tmp_path)
    events = await talk.turn("ask twice", saying(Approve("always", narrow=True)))
    assert [event.args["command"] for event in of(ToolRequested, events)] == [COMMAND, SECOND_COMMAND]
    granted = [(event.tool, event.command) for event in of(Granted, events)]
    assert granted == [("Bash", COMMAND), ("Bash", SECOND_COMMAND)]
    later = await talk.turn("ask", saying(Deny()))
    assert not of(ToolRequested, later)
    await talk.session.close()


@both
async def test_always_is_asked_once_and_holds_for_the_session(
    name: str, environ: dict[str, str], tmp_path: Path
) -> None:
    talk = await chat(name, environ, tmp_path)
    events = await talk.turn("ask twice", saying(Approve("always")))
    assert [event.args["command"] for event in of(ToolRequested, events)] == [COMMAND]
    assert of(Granted, events) == [Granted("exec", workspace=str(tmp_path))]
    assert text(events) == answer_to("allowed, allowed")
    later = await talk.turn("ask", saying(Deny()))
    assert not of(ToolRequested, later)
    assert text(later) == answer_to("allowed")
    # It was said about commands.
    edit = await talk.turn("ask edit", saying(Deny("no")))
    assert [event.category for event in of(ToolRequested, edit)] == ["edit"]
    await talk.session.close()


@both
async def test_each_request_is_asked_by_itself(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    talk = await chat(name, environ, tmp_path)

    def decide(session: Session, asked: ToolRequested) -> None:
        session.answer(asked.call_id, Deny("x") if asked.args["command"] == SECOND_COMMAND else Approve())

    events = await talk.turn("ask twice", decide)
    assert len(of(ToolRequested, events)) == 2
    assert text(events).startswith(answer_to("allowed, denied"))
    await talk.session.close()


@both
async def test_an_edit_is_asked_about_with_its_whole_text_and_stays_in_the_workspace(
    name: str, environ: dict[str, str], tmp_path: Path
) -> None:
    talk = await chat(name, environ, tmp_path)
    events = await talk.turn("ask edit", saying(Approve()))
    (asked,) = of(ToolRequested, events)
    # What is written is no path, however it begins.
    assert (asked.category, asked.outside) == ("edit", False)
    if name == "claude-code":
        assert asked.args["new_string"] == "/three" * 2000
    else:
        assert asked.args == {"add new.txt": "/hello\nthere\n"}
    await talk.session.close()


async def test_the_tool_of_an_mcp_server_is_a_category_of_its_own(environ: dict[str, str], tmp_path: Path) -> None:
    talk = await chat("codex", environ, tmp_path)
    events = await talk.turn("ask mcp", saying(Approve()))
    (asked,) = of(ToolRequested, events)
    assert (asked.name, asked.category, asked.args) == ("mcp__notes__write_note", "mcp", {"text": "hello"})
    assert text(events) == answer_to("allowed")
    await talk.session.close()


@both
async def test_a_stop_while_it_asks_ends_the_turn_and_the_session_goes_on(
    name: str, environ: dict[str, str], tmp_path: Path
) -> None:
    talk = await chat(name, environ, tmp_path)
    stopped = await talk.turn("ask", lambda session, asked: session.stop())
    assert of(TurnEnded, stopped)[0].outcome == "cancelled"
    assert [event.reason for event in of(ToolCancelled, stopped)] == ["Stopped by user"]
    # It goes on with the same session: the fake insists on the arguments for it.
    after = await talk.turn("hi", saying(Deny()))
    assert text(after) == answer_to("hi")
    await talk.session.close()


@both
async def test_a_program_that_dies_while_it_asks_leaves_no_question_behind(
    name: str, environ: dict[str, str], tmp_path: Path
) -> None:
    talk = await chat(name, environ, tmp_path)
    events = await talk.turn("ask die", lambda session, asked: None)
    assert len(of(ToolRequested, events)) == len(of(ToolCancelled, events)) == 1
    assert of(TurnEnded, events)[0].outcome == "error"
    assert str(EXIT_CRASHED) in of(Failed, events)[0].message
    assert text(await talk.turn("hi", saying(Deny()))) == answer_to("hi")
    await talk.session.close()


@both
async def test_a_request_that_is_taken_back_is_closed_and_the_turn_goes_on(
    name: str, environ: dict[str, str], tmp_path: Path
) -> None:
    talk = await chat(name, environ, tmp_path)
    events = await talk.turn("ask leave", lambda session, asked: None)
    (cancelled,) = of(ToolCancelled, events)
    assert "no longer waiting" in cancelled.reason
    assert text(events) == answer_to("left")
    assert of(TurnEnded, events)[0].outcome == "success"
    await talk.session.close()


@both
async def test_what_nobody_can_answer_is_refused_and_told(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    talk = await chat(name, environ, tmp_path)
    events = await talk.turn("ask odd", saying(Approve()))
    assert not of(ToolRequested, events)
    assert "cannot be answered here" in of(Notice, events)[0].message
    assert text(events) == answer_to("error odd-1" if name == "claude-code" else "error -32601")
    await talk.session.close()


async def test_a_question_of_claude_is_sent_back_to_be_asked_in_words(environ: dict[str, str], tmp_path: Path) -> None:
    talk = await chat("claude-code", environ, tmp_path)
    events = await talk.turn("ask question", saying(Approve()))
    assert not of(ToolRequested, events)
    assert "Ask it in your answer" in text(events)
    await talk.session.close()


@both
@pytest.mark.parametrize("permission", [True, False])
def test_where_nobody_can_be_asked_the_answer_is_no(name: str, permission: bool, environ: dict[str, str]) -> None:
    heard: list[Said] = []
    profile = hub.load(name).replace(permission=permission)
    outcome = run(profile, TurnRequest("ask"), hear=heard.append, environ=environ)
    assert outcome.exit_code == 0
    assert "denied" in "".join(outcome.partials)
    notes = [each.why for each in heard if isinstance(each, Ignored)]
    assert any("permission: true" in note for note in notes) is not permission


def test_codex_is_logged_in_with_a_key_of_the_environment(environ: dict[str, str]) -> None:
    outcome = run(hub.load("codex"), TurnRequest("hi"), environ={**environ, "CODEX_API_KEY": "sk-own"})
    assert (outcome.exit_code, "".join(outcome.partials)) == (0, answer_to("hi"))


@both
def test_the_message_is_neither_an_argument_nor_a_variable(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / hub.PROGRAMS[name].command
    program.write_text('#!/bin/sh\nenv > "$HOME/seen"; echo "$@" >> "$HOME/seen"\n')
    long = "secret words " * 20_000
    run(hub.load(name), TurnRequest(long), environ=environ)
    assert "secret words" not in (tmp_path / "seen").read_text()
