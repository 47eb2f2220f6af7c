"""How a chat opens its session, and what it is shown."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from trunkline.base.programs import own_command_here
from trunkline.cli import opening as cli
from trunkline.cli import shelf
from trunkline.cli.chat_session import MAX_WAITING, ChatOptions, EventQueue, TerminalSession, opening, resume_command
from trunkline.core.events import Envelope, TextDelta, ToolJudged, UserMessage
from trunkline.core.faults import ConfigError, SessionHeld
from trunkline.core.usage import Usage


def ignore(event: ToolJudged) -> None:
    """Nobody wants to know."""


async def opened(options: ChatOptions) -> TerminalSession:
    return await TerminalSession.open(options, await opening(options), interactive=True, on_judged=ignore, tell=print)


async def test_a_session_in_which_nothing_was_said_is_not_kept() -> None:
    talk = await opened(ChatOptions(agent="echo"))
    assert len(shelf.sessions()) == 1
    await talk.close()
    assert shelf.sessions() == []
    talk = await opened(ChatOptions(agent="echo"))
    talk.session.submit(UserMessage("hello"))
    await talk.session.at_rest()
    await talk.close()
    assert len(shelf.sessions()) == 1


async def test_what_decides_who_answers_is_kept_for_whoever_goes_on_and_no_key(tmp_path: Path) -> None:
    script = tmp_path / "talk.yaml"
    script.write_text("turns: [{steps: [{text: Hi}]}]")
    options = ChatOptions(agent="scripted", script=str(script), base_url="https://me:s3cret@models.example/v1")
    talk = await opened(options)
    talk.session.submit(UserMessage("hello"))
    await talk.session.at_rest()
    await talk.close()
    (info,) = shelf.sessions()
    assert info.given == {"script": str(script)}


@pytest.mark.parametrize(
    ("agent", "kept"),
    [
        ("echo", {}),
        ("scripted:tour", {"agent": "scripted:tour"}),
        ("scripted:talk.yaml", {"agent": "scripted:{here}/talk.yaml"}),
        ("acp:one --config two", {"agent": "acp:one --config two"}),
        ("jsonstream:one --api-key zebra", {}),
        ("jsonstream:one https://me:s3cret@models.example/v1", {}),
        ("jsonstream:one sk-0123456789abcdefghijklmnop", {}),
    ],
)
def test_so_is_what_an_agents_name_does_not_say_and_no_key(
    agent: str, kept: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.yaml").touch()
    (tmp_path / "tour").touch()
    here = {name: value.format(here=Path.cwd()) for name, value in kept.items()}
    assert cli.said_again(ChatOptions(agent=agent)) == here


async def test_a_resumed_session_is_kept_whatever_is_said(tmp_path: Path) -> None:
    options = ChatOptions(agent="echo", session_id="mine", workspace=str(tmp_path))
    talk = await opened(options)
    talk.session.submit(UserMessage("hello"))
    await talk.session.at_rest()
    await talk.close()
    talk = await opened(options.replace(session_id=None, resume="latest"))
    assert talk.session.id == "mine"
    await talk.close()
    assert [info.id for info in shelf.sessions()] == ["mine"]


async def test_a_session_that_is_being_closed_is_waited_for_and_it_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    session_log = cli.session_log

    def take(*args: Any, **how: Any) -> cli.OpenedLog:
        if told:
            return session_log(*args, **how)
        held = SessionHeld("It is in use.")
        held.ending = True
        raise held

    monkeypatch.setattr(cli, "session_log", take)
    options = ChatOptions(agent="echo")
    talk = await TerminalSession.open(
        options, await opening(options), interactive=True, on_judged=ignore, tell=told.append
    )
    await talk.close()
    assert told == ["It is in use. Waiting for it to be released."]


async def test_a_start_that_fails_leaves_no_session_behind() -> None:
    with pytest.raises(ConfigError):
        await opened(ChatOptions(agent="jsonstream:/nowhere/at/all"))
    assert shelf.sessions() == []


async def test_calls_that_the_policy_answers_are_heard_of() -> None:
    heard: list[ToolJudged] = []
    options = ChatOptions(script="tour", auto_approve=True)
    talk = await TerminalSession.open(
        options, await opening(options), interactive=True, on_judged=heard.append, tell=print
    )
    talk.session.submit(UserMessage("delete the build folder"))
    await talk.session.at_rest()
    await talk.close()
    assert [(event.name, event.verdict) for event in heard] == [("Bash", "allow")]


async def test_what_a_turn_costs_is_told_only_where_the_price_is_known() -> None:
    talk = await opened(ChatOptions(agent="coder", provider="mock", model="claude-sonnet-4-20250514"))
    assert talk.cost(Usage(1_000_000, 0)) == pytest.approx(3.0)
    assert talk.cost(Usage()) is None
    assert talk.cost(None) is None
    talk.model = "nobody-knows-me"
    assert talk.cost(Usage(1, 1)) is None
    await talk.close()


def test_the_command_to_go_on_names_what_the_session_needs() -> None:
    options = ChatOptions(agent="scripted", script="my script.yaml", model="m")
    own = own_command_here()
    assert resume_command(options, "abc") == f"{own} chat scripted --script 'my script.yaml' --model m --resume abc"
    assert resume_command(ChatOptions(sandbox="on"), "abc") == f"{own} chat --sandbox on --resume abc"
    attached = ChatOptions(agent="helper", model="m", attach=True)
    assert resume_command(attached, "abc") == f"{own} chat helper --attach --resume abc"


def test_the_command_to_go_on_can_be_typed_where_the_program_is_not_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "bin" / "trunkline"
    own.parent.mkdir()
    own.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(own.with_name("python")))
    monkeypatch.chdir(tmp_path)
    assert resume_command(ChatOptions(agent="echo"), "abc") == "bin/trunkline chat echo --resume abc"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://ann:not-for-you-1234@127.0.0.1:8080/v1", "URL"),
        ("http://127.0.0.1:8080/v1?api_key=not-for-you-1234", "URL"),
    ],
)
def test_the_command_to_go_on_does_not_repeat_a_key_in_an_address(url: str, told: str) -> None:
    assert (
        resume_command(ChatOptions(base_url=url), "abc") == f"{own_command_here()} chat --base-url {told} --resume abc"
    )


async def test_an_agent_waits_for_a_screen_that_is_behind() -> None:
    inbox = EventQueue()
    inbox.show([Envelope("s", number, 1, 0.0, TextDelta("x")) for number in range(1, MAX_WAITING + 2)])
    assert inbox.congested
    waiting = asyncio.create_task(inbox.drain())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert len(inbox.take()) == MAX_WAITING + 1
    await waiting
    assert not inbox.congested
