"""A plain model as an agent: what it says, remembers, and is told of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from tests.agents.helpers import MemoryJournal, play, request, text_of
from trunkline.agents import plain_options, registry
from trunkline.agents.plain_model import MOST_COMING, NO_RESULT, PlainConversation, PlainModel
from trunkline.core.agent import AddHistory, AddMcpServer, Meter, SetOptions
from trunkline.core.events import Event, Extension, Failed, TextDelta, ThinkingDelta, TurnEnded, UserMessage
from trunkline.core.faults import BudgetExceeded, ConfigError, ProviderError, SessionDamaged, Unsupported
from trunkline.core.usage import Usage
from trunkline.models.messages import Message, Text, ToolResultBlock, ToolUse
from trunkline.models.model import Answer, AnswerOptions, Chunk, Request, TextChunk, ThinkingChunk

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class ScriptedModel:
    """Gives these chunks, and keeps what it was asked."""

    provider = "mock"
    name = "scripted"
    context_window = 1000
    images = False

    def __init__(self, *chunks: Chunk | Exception, waits: bool = False) -> None:
        self.chunks = chunks
        self.waits = waits
        self.asked: list[Request] = []
        self.closed = 0

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.asked.append(request)
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
        if self.waits:
            await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed += 1


def said(text: str, stop: Any = "end") -> Sequence[Chunk]:
    return TextChunk(text), Answer((Text(text),), stop, Usage(3, 2))


def with_model(model: ScriptedModel, **changes: Any) -> PlainConversation:
    return PlainConversation(request(**changes), model, None)


async def mock_conversation(**changes: Any) -> PlainConversation:
    return await PlainModel("mock").open(request(**changes))


def finish(events: Sequence[Event]) -> Any:
    told = [event.data["reason"] for event in events if isinstance(event, Extension) and event.kind == "finish"]
    return told[0] if told else "stop"


def called(events: Sequence[Event]) -> list[Any]:
    return [event.data for event in events if isinstance(event, Extension) and event.kind == "client_tool_call"]


async def test_it_streams_words_and_thoughts_and_tells_what_it_used() -> None:
    model = ScriptedModel(ThinkingChunk("Hm."), *said("Hello."))
    events = await play(with_model(model), "hi")
    assert events == [
        ThinkingDelta("Hm."),
        TextDelta("Hello."),
        TurnEnded("success", Usage(3, 2)),
    ]
    assert model.asked[0].system == ""
    assert model.asked[0].tools == ()


async def test_the_registry_makes_it_by_its_name() -> None:
    agent = registry.make("model:mock", {})
    assert agent.name == "model:mock"
    assert not registry.runs_code("model:mock")
    conversation = await agent.open(request())
    assert text_of(await play(conversation, "one two")) == "one two"
    await conversation.close()


def test_one_that_is_not_here_says_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match="needs a model"):
        registry.make("model:", {})
    assert "trunkline models pull smollm2-135m" in str(registry.problem(registry.make("model:smollm2-135m", {}), "."))
    assert registry.problem(registry.make("model:mock", {}), ".") is None


def test_models_of_servers_on_this_machine_have_the_name_of_the_server_in_front(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1234")
    found = PlainModel("ollama/qwen3:8b").model_settings
    assert (found.provider, found.model, found.base_url) == ("openai", "qwen3:8b", "http://127.0.0.1:1234/v1")
    assert PlainModel("owner/name").model_settings.provider == "local"


async def test_what_was_said_is_remembered_and_resumed() -> None:
    journal = MemoryJournal()
    first = ScriptedModel(*said("Hello."))
    await play(with_model(first, journal=journal), "hi")
    second = ScriptedModel(*said("Again."))
    await play(with_model(second, journal=journal, resumed=True), "and now?")
    assert second.asked[0].messages == (
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("Hello."),)),
        Message("user", (Text("and now?"),)),
    )


async def test_another_agents_session_is_refused() -> None:
    journal = MemoryJournal()
    journal.append({"exchange": ["a", "b"]})
    with pytest.raises(SessionDamaged, match="not written by a plain model"):
        await mock_conversation(journal=journal)


async def test_options_reach_the_model_and_none_puts_them_back() -> None:
    model = ScriptedModel(*said("x"))
    conversation = with_model(model, instructions="Be brief.")
    schema = {"type": "object"}
    await conversation.configure(
        SetOptions(
            {
                "stop": "END",
                "max_tokens": 5,
                "temperature": 0,
                "top_p": 0.5,
                "seed": -1,
                "schema": schema,
                "instructions": "Sing.",
                "unknown": 1,
            }
        )
    )
    await play(conversation, "a")
    asked = model.asked[-1]
    assert asked.options == AnswerOptions(0, 0.5, 2**32 - 1, ("END",), False, schema)
    assert (asked.max_tokens, asked.system) == (5, "Sing.")
    await conversation.configure(SetOptions({"schema": None, "stop": None, "max_tokens": None, "instructions": None}))
    await play(conversation, "b")
    assert model.asked[-1].options == AnswerOptions(0, 0.5, 2**32 - 1)
    assert (model.asked[-1].max_tokens, model.asked[-1].system) == (None, "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temperature": 3}, "`temperature`: a number from 0 to 2"),
        ({"temperature": True}, "`temperature`"),
        ({"top_p": "x"}, "`top_p`"),
        ({"max_tokens": 0}, "`max_tokens`"),
        ({"seed": 1.5}, "`seed`"),
        ({"stop": ["x"] * (plain_options.MAX_STOPS + 1)}, "`stop`: at most"),
        ({"stop": "x" * (plain_options.MAX_STOP_CHARS + 1)}, "`stop`: at most"),
        ({"stop": [1]}, "`stop`"),
        ({"schema": []}, "`schema`"),
        ({"schema": {"const": "x" * plain_options.MAX_SCHEMA_BYTES}}, "`schema`: it has more than"),
        ({"tools": {}}, "`tools`: a list"),
        ({"tools": [WEATHER, WEATHER]}, "two have the same name"),
        ({"tools": [{"type": "web_search"}]}, "of the type `function`"),
        ({"tools": [{"type": "function", "function": {}}]}, "needs a `name`"),
        ({"tools": [{"name": "x", "parameters": [1]}]}, "must be a JSON Schema"),
        ({"tools": [{"name": f"t{n}"} for n in range(plain_options.MAX_TOOLS + 1)]}, "at most 128"),
        ({"tool_choice": "required"}, "there is no tool to call"),
        ({"tool_choice": "other"}, "there is no tool `other`"),
        ({"tool_choice": 1}, "`tool_choice`"),
        ({"instructions": 1}, "`instructions`: a text"),
        ({"messages": "x"}, "`messages`: a list"),
        ({"messages": [{"role": "judge"}]}, r"`messages\[0\]`: its role"),
        ({"messages": ["x"]}, r"`messages\[0\]`"),
        ({"messages": [{"role": "user", "content": 1}]}, "a text or a list of parts"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "of the type `video`"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]}]}, "`image_url`"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "each has an `id`"),
        ({"messages": [{"role": "assistant", "tool_calls": 1}]}, "a list is needed"),
        ({"messages": [{"role": "user"}] * (plain_options.MAX_MESSAGES + 1)}, "at most 10000"),
        ({"tool_outputs": 1}, "`tool_outputs`"),
        ({"tool_outputs": [{}]}, "the `id` of its call"),
    ],
)
async def test_an_option_that_means_nothing_is_refused_and_changes_nothing(options: Any, told: str) -> None:
    model = ScriptedModel(*said("x"))
    conversation = with_model(model)
    with pytest.raises(ConfigError, match=told):
        await conversation.configure(SetOptions({"instructions": "not this", **options}))
    await play(conversation, "a")
    assert model.asked[0].system == ""
    assert len(model.asked[0].messages) == 1


async def test_messages_take_the_place_of_the_conversation_and_of_what_is_kept_of_it() -> None:
    journal = MemoryJournal()
    model = ScriptedModel(*said("x"))
    conversation = with_model(model, journal=journal)
    await play(conversation, "forget this")
    await conversation.configure(
        SetOptions(
            {
                "messages": [
                    {"role": "system", "content": "Be kind."},
                    {"role": "developer", "content": [{"type": "text", "text": "And brief."}]},
                    {"role": "user", "content": "weather?"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "c1",
                                "type": "function",
                                "function": {"name": "w", "arguments": '{"city": "Oslo"}'},
                            },
                            {"id": "c2", "type": "function", "function": {"name": "w", "arguments": "{broken"}},
                        ],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
                    {"role": "tool", "tool_call_id": "c2", "content": "sun"},
                ]
            }
        )
    )
    await play(conversation, "")
    expected = (
        Message("user", (Text("weather?"),)),
        Message("assistant", (ToolUse("c1", "w", {"city": "Oslo"}), ToolUse("c2", "w", None, raw="{broken"))),
        Message("user", (ToolResultBlock("c1", "rain"),)),
        Message("user", (ToolResultBlock("c2", "sun"),)),
    )
    assert model.asked[-1].messages == expected
    assert model.asked[-1].system == "Be kind.\n\nAnd brief."
    again = ScriptedModel(*said("y"))
    await play(with_model(again, journal=journal), "thanks")
    assert again.asked[0].messages[:4] == expected
    assert again.asked[0].system == "Be kind.\n\nAnd brief."


async def test_a_clients_tool_is_told_and_not_run_and_its_result_comes_with_the_next_turn() -> None:
    conversation = await mock_conversation()
    await conversation.configure(SetOptions({"tools": [WEATHER]}))
    events = await play(conversation, 'tool: get_weather {"city": "Oslo"}')
    (call,) = called(events)
    assert call["name"] == "get_weather"
    assert json.loads(call["arguments"]) == {"city": "Oslo"}
    assert finish(events) == "tool_calls"
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].outcome == "success"
    await conversation.configure(SetOptions({"tool_outputs": [{"id": call["id"], "output": "rain"}]}))
    events = await play(conversation, "")
    assert text_of(events) == "Result: rain"
    assert finish(events) == "stop"


async def test_a_call_without_a_result_gets_one_before_the_next_message() -> None:
    model = ScriptedModel(Answer((ToolUse("c1", "get_weather", {}),), "tool_use", Usage(1, 1)))
    conversation = with_model(model)
    await conversation.configure(SetOptions({"tools": [WEATHER]}))
    await play(conversation, "weather?")
    await play(conversation, "never mind")
    assert model.asked[1].messages[2:] == (
        Message("user", (ToolResultBlock("c1", NO_RESULT),)),
        Message("user", (Text("never mind"),)),
    )


async def test_tool_choice_decides_which_tools_the_model_sees_and_whether_it_must_call() -> None:
    other = {"type": "function", "name": "other", "parameters": None}
    conversation = await mock_conversation()
    await conversation.configure(SetOptions({"tools": [WEATHER, other], "tool_choice": "required"}))
    (call,) = called(await play(conversation, "Oslo"))
    assert call["name"] == "get_weather"
    assert json.loads(call["arguments"]) == {"city": "Oslo"}
    named = {"type": "function", "function": {"name": "other"}}
    await conversation.configure(SetOptions({"tool_choice": named}))
    (call,) = called(await play(conversation, "Oslo"))
    assert (call["name"], call["arguments"]) == ("other", "{}")
    await conversation.configure(SetOptions({"tool_choice": "none"}))
    assert text_of(await play(conversation, "tool: other {}")) == "tool: other {}"


async def test_the_mock_honours_the_length_the_stop_and_the_schema() -> None:
    conversation = await mock_conversation()
    await conversation.configure(SetOptions({"max_tokens": 2}))
    events = await play(conversation, "one two three")
    assert (text_of(events), finish(events)) == ("one two", "length")
    await conversation.configure(SetOptions({"max_tokens": None, "stop": ["three", "two "]}))
    events = await play(conversation, "one two three")
    assert (text_of(events), finish(events)) == ("one ", "stop")
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    await conversation.configure(SetOptions({"stop": None, "schema": schema}))
    assert json.loads(text_of(await play(conversation, "Ann Lee"))) == {"name": "Ann Lee", "age": 1}


async def test_a_call_that_was_cut_off_is_not_told() -> None:
    model = ScriptedModel(Answer((ToolUse("c", "x", None, raw="{"),), "max_tokens", Usage(1, 1)))
    events = await play(with_model(model), "go")
    assert called(events) == []
    assert finish(events) == "length"


async def test_a_failure_keeps_what_was_said_and_the_conversation_lives_on() -> None:
    model = ScriptedModel(TextChunk("Half"), ProviderError("It broke.", retryable=True))
    conversation = with_model(model)
    events = await play(conversation, "go")
    assert events == [TextDelta("Half"), Failed("provider", "It broke.", True), TurnEnded("error", Usage())]
    model.chunks = tuple(said("Whole."))
    assert text_of(await play(conversation, "again")) == "Whole."
    assert model.asked[1].messages[1] == Message("assistant", (Text("Half"),))


async def test_a_refusal_and_an_answer_without_an_end_are_failures() -> None:
    for chunks, told in (((Answer((), "refusal"),), "refused"), ((), "without an end")):
        *_, failed, ended = await play(with_model(ScriptedModel(*chunks)), "go")
        assert isinstance(failed, Failed)
        assert told in failed.message
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "error"


async def test_cancel_ends_the_turn_and_keeps_what_was_said() -> None:
    model = ScriptedModel(TextChunk("Half"), waits=True)
    conversation = with_model(model)
    events = []
    async for event in conversation.turn(UserMessage("go")):
        events.append(event)
        await conversation.cancel()
    assert events == [TextDelta("Half"), TurnEnded("cancelled", Usage())]
    model.chunks, model.waits = tuple(said("x")), False
    await play(conversation, "on")
    assert model.asked[1].messages[1] == Message("assistant", (Text("Half"),))


async def test_a_spent_budget_is_told_and_what_is_used_is_counted() -> None:
    class Budget(Meter):
        left = 1

        def __init__(self) -> None:
            self.told: list[Any] = []

        def admit(self) -> None: ...

        def check(self) -> None:
            if not self.left:
                raise BudgetExceeded("Nothing is left.")
            self.left -= 1

        def spent(self, usage: Usage, model: str) -> None:
            self.told.append((usage, model))

    budget = Budget()
    conversation = with_model(ScriptedModel(*said("x")), meter=budget)
    await play(conversation, "a")
    assert budget.told == [(Usage(3, 2), "scripted")]
    failed, _ = await play(conversation, "b")
    assert isinstance(failed, Failed)
    assert failed.kind == "budget"


async def test_what_is_said_for_a_message_is_taken_up_with_it_and_not_before() -> None:
    model = ScriptedModel(*said("yes"))
    talk = with_model(model)
    for number in (1, 2):
        await talk.configure(SetOptions({"instructions": f"Rule {number}.", "seed": number}, f"m{number}"))
    with pytest.raises(ConfigError):
        await talk.configure(SetOptions({"seed": "x"}, "m2"))
    for id in ("m1", "m2", None):
        assert [event async for event in talk.turn(UserMessage("hi", id=id))]
    assert [asked.system for asked in model.asked] == ["Rule 1.", "Rule 2.", "Rule 2."]
    assert [asked.options and asked.options.seed for asked in model.asked] == [1, 2, 2]


async def test_of_messages_that_never_come_no_more_is_kept_than_anybody_sends_ahead() -> None:
    model = ScriptedModel(*said("yes"))
    talk = with_model(model)
    for number in range(MOST_COMING + 1):
        await talk.configure(SetOptions({"seed": number}, f"m{number}"))
    for number in (0, 1):
        assert [event async for event in talk.turn(UserMessage("hi", id=f"m{number}"))]
    assert [asked.options and asked.options.seed for asked in model.asked] == [None, 1]


async def test_history_from_before_comes_first_and_tool_servers_are_refused() -> None:
    model = ScriptedModel(*said("x"))
    conversation = with_model(model, history=("Ann said hi.",), instructions="Be brief.")
    await conversation.configure(AddHistory("Bob left."))
    await play(conversation, "a")
    assert model.asked[0].system == "Ann said hi.\n\nBob left.\n\nBe brief."
    with pytest.raises(Unsupported, match="no tools of its own"):
        await conversation.configure(AddMcpServer("x", "stdio"))


async def test_closing_lets_the_model_go_once() -> None:
    model = ScriptedModel()
    conversation = with_model(model)
    await conversation.close()
    await conversation.close()
    assert model.closed == 1
