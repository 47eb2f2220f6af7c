"""The client end as a library: a program is started, talked to and ended, whatever it does. Real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import acp_agent
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, RemoteProtocolError
from trunkline.wires.acp import drive, drive_prompt
from trunkline.wires.acp.codec import JsonRpcError
from trunkline.wires.acp.drive import AcpProgram, AcpPrompt, AcpSession, PermissionAsked
from trunkline.wires.acp.messages_content import TextBlock
from trunkline.wires.acp.messages_updates import AgentMessageChunk, SessionUpdate, UserMessageChunk

pytestmark = pytest.mark.process

Item = SessionUpdate | PermissionAsked


def argv(*habits: str) -> list[str]:
    """The command of the scripted agent."""
    return [sys.executable, "-S", "-E", str(acp_agent.__file__), *habits]


@asynccontextmanager
async def started(tmp_path: Path, *habits: str, **more: Any) -> AsyncIterator[AcpProgram]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with await AcpProgram.start(argv(*habits), cwd=str(tmp_path), name="scripted", **more) as program:
            yield program


@asynccontextmanager
async def talking(tmp_path: Path, *habits: str) -> AsyncIterator[AcpSession]:
    async with started(tmp_path, *habits) as program:
        yield await program.new_session(str(tmp_path))


async def said(prompt: AcpPrompt, decide: Callable[[PermissionAsked], None] | None = None) -> str:
    """The text of an answer, with the questions decided."""
    text = ""
    async for item in prompt:
        if isinstance(item, PermissionAsked) and decide is not None:
            decide(item)
        if isinstance(item, AgentMessageChunk) and isinstance(item.content, TextBlock):
            text += item.content.text
    return text


def words(text: str) -> list[TextBlock]:
    return [TextBlock(text)]


async def test_a_message_is_answered_in_pieces(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        prompt = session.prompt(words("echo one two"))
        assert await said(prompt) == "one two "
        assert prompt.response is not None
        assert prompt.response.stop_reason == "end_turn"
        assert prompt.response.usage is not None
        assert prompt.response.usage.input_tokens == 20
        assert await said(session.prompt(words("echo three"))) == "three "


async def test_what_the_program_can_do_is_known(tmp_path: Path) -> None:
    async with started(tmp_path) as program:
        assert program.about.agent_info is not None
        assert program.about.agent_info.name == "scripted"
        assert program.about.agent_capabilities.load_session
        assert program.pid > 0


async def test_a_question_is_answered_by_one_of_its_options(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        asked: list[PermissionAsked] = []

        def decide(question: PermissionAsked) -> None:
            asked.append(question)
            question.answer("yes")
            # The first answer counts.
            question.answer("no")

        assert await said(session.prompt(words('ask execute {"command": "ls"}')), decide) == "yes"
        assert [option.kind for option in asked[0].request.options] == [
            "allow_once", "allow_always", "reject_once", "reject_always",
        ]  # fmt: skip


async def test_a_cancel_answers_the_questions_that_are_open(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        prompt = session.prompt(words("ask execute"))
        assert await said(prompt, lambda question: session.cancel()) == "cancelled"
        assert prompt.response is not None
        assert prompt.response.stop_reason == "cancelled"


async def test_a_question_that_is_taken_back_is_given_out_once_more_and_not_open(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        seen: list[bool] = []
        assert await said(session.prompt(words("withdraw")), lambda question: seen.append(question.is_open)) == "-32800"
        assert seen[-1] is False


async def test_a_cancel_ends_a_prompt(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        prompt = session.prompt(words("hang"))
        await anext(prompt)
        session.cancel()
        await said(prompt)
        assert prompt.response is not None
        assert prompt.response.stop_reason == "cancelled"


async def test_a_program_that_crashes_is_noticed_at_once_with_its_last_words(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        with pytest.raises(AgentFailed, match=r"exit code 3(.|\n)*it broke"):
            await said(session.prompt(words("crash")))


async def test_the_end_of_a_program_that_nobody_talks_to_is_noticed(tmp_path: Path) -> None:
    async with started(tmp_path) as program:
        session = await program.new_session(str(tmp_path))
        assert await said(session.prompt(words("echo then-die"))) == "then-die "
        assert (await program.ended).code == 0
        with pytest.raises(AgentFailed, match="has ended"):
            await program.new_session(str(tmp_path))


async def test_what_is_no_message_is_passed_over_and_what_was_not_offered_is_refused(tmp_path: Path) -> None:
    async with started(tmp_path) as program:
        session = await program.new_session(str(tmp_path))
        assert await said(session.prompt(words("garbage"))) == "-32601"
        assert program.broken_lines >= 3


async def test_an_agent_that_floods_waits_for_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive_prompt, "AHEAD", 8)
    async with talking(tmp_path) as session:
        prompt = session.prompt(words("flood 20000"))
        await anext(prompt)
        await asyncio.sleep(0.05)
        # What one read brought, and not all of it.
        assert len(prompt._items) < 5000
        assert (await said(prompt)).count("word") == 19999


async def test_a_second_answer_to_the_same_prompt_changes_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        await said(session.prompt(words("answers-twice")))
        assert await said(session.prompt(words("echo next"))) == "next "


async def test_a_refusal_has_the_agents_words(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        with pytest.raises(JsonRpcError, match="Internal error") as caught:
            await said(session.prompt(words("fail out of credit")))
        assert caught.value.data == {"details": "out of credit"}


async def test_an_answer_that_is_none_is_a_fault(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        with pytest.raises(RemoteProtocolError, match="session/prompt"):
            await said(session.prompt(words("odd-answer")))
        assert await said(session.prompt(words("echo next"))) == "next "


# Sessions


async def test_a_session_is_loaded_with_what_was_said_in_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        await said(session.prompt(words("echo one")))
    async with started(tmp_path) as program:
        heard: list[SessionUpdate] = []
        again = await program.load_session(session.id, str(tmp_path), hear=heard.append)
        assert [type(update) for update in heard] == [UserMessageChunk, AgentMessageChunk]
        assert '"said": ["echo one"]' in await said(again.prompt(words("recall")))


async def test_a_session_is_resumed_without_what_was_said_in_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        await said(session.prompt(words("echo one")))
    async with started(tmp_path) as program:
        again = await program.resume_session(session.id, str(tmp_path))
        assert again.heard_between() == []
        assert again.modes is not None
        assert '"said": ["echo one"]' in await said(again.prompt(words("recall")))
        with pytest.raises(JsonRpcError, match="No session"):
            await program.resume_session("nothing", str(tmp_path))


async def test_sessions_are_listed_page_by_page_forked_and_closed(tmp_path: Path) -> None:
    async with started(tmp_path) as program:
        assert [each.session_id async for each in program.sessions()] == ["l0", "l1", "l2"]
        session = await program.new_session(str(tmp_path))
        forked = await program.fork_session(session.id, str(tmp_path))
        assert forked.id == f"{session.id}f"
        await program.close_session(forked)


async def test_modes_and_options_are_set(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        await session.set_mode("yolo")
        await session.set_option("model", "large")
        assert session.modes is not None
        assert session.modes.current_mode_id == "yolo"
        assert '"current": "yolo", "model": "large"' in await said(session.prompt(words("recall")))
        with pytest.raises(JsonRpcError, match="no such mode"):
            await session.set_mode("odd")


async def test_what_is_told_before_the_session_is_known_is_kept(tmp_path: Path) -> None:
    async with talking(tmp_path) as session:
        assert [type(update).__name__ for update in session.heard_between()] == ["AvailableCommandsUpdate"]


# Starting


@pytest.mark.parametrize(
    ("habit", "fault", "told"),
    [
        ("quits", AgentFailed, r"(?s)ended before it answered `initialize`.*exit code 3.*there is no model here"),
        ("blurts", AgentFailed, r"(?s)exit code 1.*Error: it is not configured"),
        ("version:2", ConfigError, "speaks version 2"),
    ],
)
async def test_a_program_that_cannot_begin_says_why(
    tmp_path: Path, habit: str, fault: type[Exception], told: str
) -> None:
    with pytest.raises(fault, match=f"(?i){told}"):
        async with started(tmp_path, habit):
            pass


async def test_a_program_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(AgentTimeout, match="did not answer `initialize` within"):
        async with started(tmp_path, "mute", ready_seconds=0.2):
            pass


async def test_a_banner_on_standard_output_is_passed_over(tmp_path: Path) -> None:
    async with talking(tmp_path, "chatty") as session:
        assert await said(session.prompt(words("echo hello"))) == "hello "


async def test_a_program_that_is_not_there_is_a_mistake_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-agent"):
        await AcpProgram.start(["no-such-agent"], cwd=str(tmp_path))


async def test_a_request_that_is_not_answered_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "OPEN_SECONDS", 0.1)
    async with talking(tmp_path) as session:
        prompt = session.prompt(words("deaf"))
        await anext(prompt)
        with pytest.raises(AgentTimeout, match="did not answer `session/new` within"):
            await session._program.new_session(str(tmp_path))  # type: ignore[attr-defined]


async def test_nothing_is_left_of_a_program_that_was_closed_in_the_middle(tmp_path: Path) -> None:
    async with started(tmp_path) as program:
        session = await program.new_session(str(tmp_path))
        prompt = session.prompt(words("deaf"))
        await anext(prompt)
        await program.close(0.1)
        with pytest.raises(AgentFailed, match="has been closed"):
            await said(prompt)
        await until(lambda: not os.path.exists(f"/proc/{program.pid}"))
