"""The echo agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.helpers import play, request, text_of
from trunkline.agents.echo import EchoAgent, EchoConversation
from trunkline.core.agent import AddHistory, AddMcpServer, Agent, Approve, Conversation, SetOptions
from trunkline.core.events import Notice, TextDelta, TurnEnded, UserMessage
from trunkline.core.faults import Unsupported
from trunkline.core.usage import Usage


async def opened(workspace: str = ".") -> EchoConversation:
    return await EchoAgent().open(request(workspace=workspace))


async def test_it_fulfils_the_protocols_of_the_core() -> None:
    agent: Agent = EchoAgent()
    conversation: Conversation = await agent.open(request())
    assert agent.name == "echo"
    assert agent.capabilities.resume
    assert conversation.session_id is None
    await conversation.close()


async def test_each_word_is_one_delta_and_nothing_was_used() -> None:
    events = await play(await opened(), "Is anybody  there?\n")
    assert events == [
        TextDelta("Is "),
        TextDelta("anybody  "),
        TextDelta("there?\n"),
        TurnEnded("success", Usage(input_tokens=0, output_tokens=0)),
    ]


@given(st.text(st.characters(exclude_categories=()), max_size=200))
async def test_the_deltas_joined_are_the_text(text: str) -> None:
    events = await play(await opened(), text)
    assert text_of(events) == text
    assert [type(event) for event in events] == [TextDelta] * (len(events) - 1) + [TurnEnded]


async def test_each_file_that_is_missing_gets_a_notice(tmp_path: Path) -> None:
    (tmp_path / "here.txt").touch()
    (tmp_path / "folder").mkdir()
    files = ("here.txt", str(tmp_path / "folder"), "gone.txt", str(tmp_path / "gone.png"), "nul\0", "\ud800", "")
    conversation = await opened(str(tmp_path))
    events = [event async for event in conversation.turn(UserMessage("hello", files))]
    notices = [event.message for event in events if isinstance(event, Notice)]
    assert len(notices) == 5
    assert "`gone.txt`" in notices[0]
    assert events[-2:] == [TextDelta("hello"), TurnEnded("success", Usage(0, 0))]


async def test_cancel_ends_the_answer_and_the_next_turn_is_whole() -> None:
    conversation = await opened()
    events = []
    async for event in conversation.turn(UserMessage("one two three")):
        events.append(event)
        await conversation.cancel()
    assert events == [TextDelta("one "), TurnEnded("cancelled", Usage(0, 0))]
    assert text_of(await play(conversation, "four")) == "four"


async def test_a_cancel_before_the_first_event_counts() -> None:
    conversation = await opened()
    stream = conversation.turn(UserMessage("one"))
    await conversation.cancel()
    assert [event async for event in stream] == [TurnEnded("cancelled", Usage(0, 0))]


async def test_it_takes_history_and_options_and_refuses_a_tool_server() -> None:
    conversation = await opened()
    await conversation.configure(AddHistory("before"))
    await conversation.configure(SetOptions({"model": "any"}))
    await conversation.decide("none", Approve())
    with pytest.raises(Unsupported, match="echo"):
        await conversation.configure(AddMcpServer("files", "stdio"))


async def test_a_message_of_files_alone_is_answered_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").touch()
    conversation = await opened(str(tmp_path))
    events = [event async for event in conversation.turn(UserMessage("", ("a b.txt", "/nowhere/c.png")))]
    assert text_of(events) == "a b.txt\nc.png"
    assert events[-1] == TurnEnded("success", Usage(0, 0))
