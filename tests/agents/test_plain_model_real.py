"""A plain model as an agent, with the real engine and the real small model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest

from tests.agents.helpers import play, request, text_of
from tests.support.local_model import TIMEOUT_SECONDS, model_path
from trunkline.agents import plain_model
from trunkline.agents.plain_model import PlainConversation, PlainModel
from trunkline.core.agent import SetOptions
from trunkline.core.events import Extension, TextDelta, TurnEnded, UserMessage

pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def gguf() -> str:
    return model_path()


@pytest.fixture
async def conversation(gguf: str) -> AsyncIterator[PlainConversation]:
    conversation = await PlainModel(gguf).open(request())
    await conversation.configure(SetOptions({"temperature": 0, "seed": 1, "max_tokens": 60}))
    yield conversation
    await conversation.close()
    for kept in list(plain_model._kept.values()):
        await kept.close()


def reason(events: Any) -> str:
    told = [event.data["reason"] for event in events if isinstance(event, Extension) and event.kind == "finish"]
    return str(told[0]) if told else "stop"


async def test_the_answer_fits_the_schema(conversation: PlainConversation) -> None:
    await conversation.configure(SetOptions({"schema": PERSON}))
    events = await play(conversation, "Ann is 30 years old.")
    assert reason(events) == "stop"
    jsonschema.validate(json.loads(text_of(events)), PERSON)
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.usage is not None
    assert ended.usage.input_tokens
    assert ended.usage.output_tokens


async def test_a_tool_of_the_clients_is_called_and_its_result_read(conversation: PlainConversation) -> None:
    await conversation.configure(SetOptions({"tools": [WEATHER], "tool_choice": "required"}))
    events = await play(conversation, "What is the weather in Oslo?")
    (call,) = (event.data for event in events if isinstance(event, Extension) and event.kind == "client_tool_call")
    jsonschema.validate(json.loads(call["arguments"]), WEATHER["parameters"])
    assert reason(events) == "tool_calls"
    await conversation.configure(
        SetOptions({"tool_choice": "none", "tool_outputs": [{"id": call["id"], "output": "It rains in Oslo."}]})
    )
    events = await play(conversation, "")
    assert text_of(events)
    assert not [event for event in events if isinstance(event, Extension) and event.kind == "client_tool_call"]


async def test_a_schema_or_a_call_where_both_are_possible(conversation: PlainConversation) -> None:
    await conversation.configure(SetOptions({"tools": [WEATHER], "schema": PERSON}))
    events = await play(conversation, "Ann is 30 years old.")
    if reason(events) == "stop":
        jsonschema.validate(json.loads(text_of(events)), PERSON)
    else:
        assert reason(events) == "tool_calls"


async def test_length_and_stop_end_the_answer_and_say_so(conversation: PlainConversation) -> None:
    await conversation.configure(SetOptions({"max_tokens": 3}))
    events = await play(conversation, "Tell me a long story about a fox.")
    assert reason(events) == "length"
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.usage is not None
    assert ended.usage.output_tokens == 3
    await conversation.configure(SetOptions({"max_tokens": 60, "stop": [" ", "\n"]}))
    events = await play(conversation, "Count to ten.")
    assert reason(events) == "stop"
    assert " " not in text_of(events)


async def test_the_same_seed_says_the_same(conversation: PlainConversation) -> None:
    await conversation.configure(SetOptions({"temperature": 1.5, "seed": 7, "max_tokens": 12}))
    said = []
    for _ in range(2):
        await conversation.configure(SetOptions({"messages": []}))
        said.append(text_of(await play(conversation, "Invent a name for a ship.")))
    assert said[0] == said[1]


async def test_a_cancelled_answer_leaves_the_model_ready_for_the_next(conversation: PlainConversation) -> None:
    await conversation.configure(SetOptions({"max_tokens": 500}))
    ended = None
    async for event in conversation.turn(UserMessage("Tell me a long story about a fox.")):
        if isinstance(event, TextDelta):
            await conversation.cancel()
        ended = event
    assert isinstance(ended, TurnEnded)
    assert ended.outcome == "cancelled"
    await conversation.configure(SetOptions({"max_tokens": 5}))
    assert reason(await play(conversation, "Hello.")) in ("length", "stop")


async def test_conversations_share_one_loaded_model(conversation: PlainConversation) -> None:
    agent = PlainModel(model_path())
    other = await agent.open(request())
    assert other._model is conversation._model
    await other.close()
    assert text_of(await play(conversation, "Hello."))
