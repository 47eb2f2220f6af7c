"""Chat Completions, as clients send and read them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.keeper import FAKE
from tests.support.loop import until
from tests.support.openai_world import ECHO, MODEL, error_of, events_in, openai_world
from trunkline.core import events as core
from trunkline.core.agent import AddHistory
from trunkline.core.usage import Usage
from trunkline.wires.openai.messages import MAX_MESSAGES, MAX_PARTS, MAX_STOP_CHARS, MAX_STOPS, MAX_TOOLS


async def test_an_agent_answers_as_a_model_does() -> None:
    async with openai_world() as world:
        response = await world.chat("Hello there")
        found = response.json()
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        assert found["object"] == "chat.completion"
        assert isinstance(found["created"], int)
        assert found["model"] == ECHO
        message = {"role": "assistant", "content": "Hello there", "refusal": None}
        assert found["choices"] == [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]
        assert found["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


async def streamed(body: dict[str, Any], *said: core.Event) -> list[Any]:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stream": True, **body})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(*said)
        await caller.whole()
        assert caller.status == 200
        assert caller.headers["content-type"].startswith("text/event-stream")
        assert caller.ended
        return caller.events


async def test_a_stream_has_a_role_first_one_id_a_reason_and_the_mark_of_the_end() -> None:
    said = (core.TextDelta("Hel"), core.TextDelta('lo "ä\ud800"\n'), core.TurnEnded("success", Usage(10, 2)))
    *chunks, last = await streamed({}, *said)
    assert last is None
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert chunks[0]["object"] == "chat.completion.chunk"
    assert isinstance(chunks[0]["created"], int)
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": 'lo "ä\ud800"\n'}, {},
    ]  # fmt: skip
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert all("usage" not in chunk for chunk in chunks)


async def test_with_include_usage_the_last_chunk_has_the_usage_and_no_choices_and_all_others_null() -> None:
    said = (core.TextDelta("Hello"), core.TurnEnded("success", Usage(10, 2, 4)))
    *chunks, usage, last = await streamed({"stream_options": {"include_usage": True}}, *said)
    assert last is None
    assert [chunk["usage"] for chunk in chunks] == [None] * len(chunks)
    assert usage["choices"] == []
    assert usage["id"] == chunks[0]["id"]
    assert usage["usage"] == {
        "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4},
    }  # fmt: skip


async def test_tokens_of_reasoning_are_part_of_the_usage() -> None:
    ended = core.TurnEnded("success", Usage(10, 8, reasoning_tokens=7))
    *_, usage, _ = await streamed({"stream_options": {"include_usage": True}}, ended)
    assert usage["usage"]["completion_tokens_details"] == {"reasoning_tokens": 7}
    async with openai_world() as world:
        caller = world.call("responses", {})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(ended)
        await caller.whole()
        assert '"output_tokens_details":{"reasoning_tokens":7}' in caller.text


async def test_usage_that_nobody_knows_is_not_made_up() -> None:
    *_, usage, _ = await streamed({"stream_options": {"include_usage": True}}, core.TurnEnded("success"))
    assert (usage["choices"], usage["usage"]) == ([], None)
    async with openai_world() as world:
        caller = world.call("chat/completions", {})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.TextDelta("x"), core.TurnEnded("success", Usage(10)))
        await caller.whole()
        assert "usage" not in caller.text


async def test_thoughts_and_tools_are_reasoning_and_what_follows_a_tool_is_a_paragraph_of_its_own() -> None:
    said = (
        core.ThinkingDelta("Hm"),
        core.TextDelta("First."),
        core.ToolStarted("c1", "Grep"),
        core.ToolFinished("c1", "Grep", "success", "found"),
        core.TextDelta("Then."),
        core.TurnEnded("success"),
    )
    chunks = await streamed({}, *said)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[1:-2]]
    assert deltas == [
        {"reasoning_content": "Hm"},
        {"content": "First."},
        {"reasoning_content": "\nUsing the tool Grep.\n"},
        {"reasoning_content": "The tool Grep has finished.\n"},
        {"content": "\n\nThen."},
    ]


async def test_a_failed_turn_is_an_error_in_the_stream_with_the_words_of_the_fault() -> None:
    said = (core.TextDelta("x"), core.Failed("provider", "The key is wrong"), core.TurnEnded("error"))
    *_, error, last = await streamed({}, *said)
    assert last is None
    assert error == {
        "error": {"message": "The key is wrong", "type": "server_error", "param": None, "code": "provider"}
    }


@pytest.mark.parametrize("kind", ["provider", "config", "unsupported", "crashed", "model", "remote_protocol"])
async def test_a_failed_turn_is_5xx_and_not_tried_again_by_itself(kind: str) -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {}, headers={"X-Trunkline-Session": "s1"})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.Failed(kind, "It went wrong", False), core.TurnEnded("error"))
        await caller.whole()
        assert caller.status >= 500
        assert caller.headers["x-should-retry"] == "false"
        said = "Its log says why" if kind == "crashed" else "It went wrong"
        assert said in caller.text
        assert caller.headers["x-trunkline-session"] == "s1"


async def test_a_spent_budget_is_429_also_in_the_middle_of_a_turn() -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.Failed("budget", "Nothing left"), core.TurnEnded("error"))
        await caller.whole()
        assert caller.status == 429


async def test_a_turn_that_somebody_else_stopped_is_an_error() -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.keeper.seats[0].session.stop()
        await caller.whole()
        assert caller.status == 500
        assert '"code":"cancelled"' in caller.text


async def test_the_messages_before_the_last_are_the_history_and_system_messages_are_instructions() -> None:
    async with openai_world() as world:
        messages = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "more"}]},
            {"role": "assistant", "content": "Two"},
            {"role": "user", "content": "Three"},
        ]
        caller = world.call("chat/completions", {"messages": messages})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        said = "What was said before:\n\nUser: One\n\nmore\n\nAssistant: Two"
        text = f"Instructions for this conversation:\nBe brief.\n\n{said}"
        assert world.fake.changes == [AddHistory(text)]
        assert [message.text for message in world.fake.heard] == ["Three"]


async def test_in_a_named_session_only_the_last_message_counts() -> None:
    async with openai_world() as world:
        headers = {"X-Trunkline-Session": "my chat"}
        for text in ("One", "Two"):
            earlier = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Zero"}]
            messages = [*earlier, {"role": "assistant", "content": "?"}, {"role": "user", "content": text}]
            caller = world.call("chat/completions", {"messages": messages}, headers=headers)
            await until(lambda: world.keeper.fakes and world.fake.busy)
            world.fake.say(core.TurnEnded("success"))
            await caller.whole()
            assert caller.headers["x-trunkline-session"] == "my chat"
        assert list(world.keeper.held) == ["my chat"]
        assert [message.text for message in world.fake.heard] == ["One", "Two"]
        # What stands before the first message of a new session is new to it.
        assert len(world.fake.changes) == 1


async def test_a_stateless_turn_leaves_nothing_behind() -> None:
    async with openai_world() as world:
        response = await world.chat()
        assert "x-trunkline-session" not in response.headers
        assert list(world.keeper.held) == []


STOPPED = [
    (["END"], ["one EN", "D two"], "one "),
    (["END"], ["one E", "N", "x"], "one ENx"),
    ("\n\n", ["one\n", "two\n", "\nthree"], "one\ntwo"),
    (["b", "ab"], ["xab"], "x"),
    (["END"], ["one EN"], "one EN"),
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("stop", "pieces", "expected"), STOPPED)
async def test_a_stop_sequence_cuts_an_agents_text_also_across_deltas(
    stop: Any, pieces: list[str], expected: str, stream: bool
) -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stop": stop, "stream": stream})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(*map(core.TextDelta, pieces), core.TurnEnded("success", Usage(1, 2)))
        await caller.whole()
        if stream:
            *chunks, _ = caller.events
            text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
            reason = chunks[-1]["choices"][0]["finish_reason"]
        else:
            import json

            choice = json.loads(caller.text)["choices"][0]
            text, reason = choice["message"]["content"], choice["finish_reason"]
        assert (text, reason) == (expected, "stop")


async def test_a_turn_whose_text_was_cut_is_stopped() -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stop": "END", "stream": True})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.TextDelta("one END two"))
        await caller.whole()
        assert world.keeper.seats[0].stopped == [1]
        assert caller.events[-2]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("told", "reason"),
    [("length", "length"), ("max_turns", "length"), ("refusal", "content_filter"), ("tired", "stop"), (5, "stop")],
)
async def test_why_an_answer_ended_is_told_in_openais_words(told: Any, reason: str) -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stream": True})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.Extension(core.FINISH, {"reason": told}), core.TurnEnded("success"))
        await caller.whole()
        assert caller.events[-2]["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_max_tokens_cuts_an_agents_text_at_four_characters_for_each(name: str) -> None:
    limit: dict[str, Any] = {name: 2}
    async with openai_world() as world:
        cut = (await world.chat("123456789", **limit)).json()["choices"][0]
        assert (cut["message"]["content"], cut["finish_reason"]) == ("12345678", "length")
        whole = (await world.chat("12345678", **limit)).json()["choices"][0]
        assert (whole["message"]["content"], whole["finish_reason"]) == ("12345678", "stop")


TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}

REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"n": 2}, "n", "unsupported_value"),
    ({"tools": [TOOL]}, "tools", "unsupported_parameter"),
    ({"functions": [TOOL["function"]]}, "tools", "unsupported_parameter"),
    ({"logprobs": True}, "logprobs", "unsupported_parameter"),
    ({"top_logprobs": 3}, "logprobs", "unsupported_parameter"),
    ({"logit_bias": {"1": 2}}, "logit_bias", "unsupported_parameter"),
    ({"modalities": ["text", "audio"]}, "modalities", "unsupported_parameter"),
    ({"audio": {"voice": "alloy"}}, "audio", "unsupported_parameter"),
    ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        "response_format",
        "unsupported_parameter",
    ),
    ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
    ({"response_format": {"type": "json_schema"}}, "response_format.schema", "missing_required_parameter"),
    ({"messages": []}, "messages", "missing_required_parameter"),
    ({"messages": "Hello"}, "messages", "invalid_type"),
    ({"messages": ["Hello"]}, "messages[0]", "invalid_type"),
    ({"messages": [{"content": "Hello"}]}, "messages[0].role", "missing_required_parameter"),
    ({"messages": [{"role": "boss", "content": "Hello"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content", "invalid_type"),
    ({"messages": [{"role": "user", "content": " "}]}, "messages", "invalid_value"),
    ({"messages": [{"role": "user"}]}, "messages", "invalid_value"),
    ({"messages": [{"role": "assistant", "content": "Hello"}]}, "messages", "invalid_value"),
    ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]}, "messages", "invalid_value"),
    ({"messages": [{"role": "user", "content": [{"type": "film"}]}]}, "messages[0].content[0].type", "invalid_value"),
    ({"messages": [{"role": "user", "content": [7]}]}, "messages[0].content[0]", "invalid_type"),
    (
        {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
        "messages[0].content[0]",
        "unsupported_parameter",
    ),
    ({"model": None}, "model", "missing_required_parameter"),
    ({"model": 7}, "model", "invalid_type"),
    ({"stream": "yes"}, "stream", "invalid_type"),
    ({"stream_options": []}, "stream_options", "invalid_type"),
    ({"temperature": 3}, "temperature", "invalid_value"),
    ({"temperature": "hot"}, "temperature", "invalid_type"),
    ({"temperature": True}, "temperature", "invalid_type"),
    ({"top_p": -1}, "top_p", "invalid_value"),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    ({"max_tokens": 1.5}, "max_tokens", "invalid_type"),
    ({"stop": 7}, "stop", "invalid_type"),
    ({"stop": [7]}, "stop", "invalid_type"),
    ({"stop": ["x"] * (MAX_STOPS + 1)}, "stop", "array_above_max_length"),
    ({"stop": "x" * (MAX_STOP_CHARS + 1)}, "stop", "string_above_max_length"),
]


@pytest.mark.parametrize(("body", "param", "code"), REFUSED)
async def test_what_cannot_be_had_is_400_and_names_the_parameter(
    body: dict[str, Any], param: str | None, code: str
) -> None:
    async with openai_world() as world:
        found = error_of(await world.chat(**body), 400)
        assert (found["param"], found["code"]) == (param, code)
        assert world.keeper.seats == []


HARMLESS: list[dict[str, Any]] = [
    {"temperature": 0.5, "top_p": 1, "seed": -7, "presence_penalty": 1, "frequency_penalty": -1},
    {"n": 1, "user": "ana", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "reasoning_effort": "low"},
    {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "logprobs": False, "logit_bias": {}},
    {"tools": [TOOL], "tool_choice": "none"},
    {"response_format": {"type": "text"}, "modalities": ["text"], "stop": None, "max_tokens": None},
    {"stop": ["x"] * MAX_STOPS},
    {"stop": "x" * MAX_STOP_CHARS},
]


@pytest.mark.parametrize("body", HARMLESS)
async def test_what_does_not_change_an_agents_answer_is_ignored(body: dict[str, Any]) -> None:
    async with openai_world() as world:
        response = await world.chat("Hello", **body)
        assert response.json()["choices"][0]["message"]["content"] == "Hello"


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 400)])
async def test_messages_and_parts_have_limits(more: int, status: int) -> None:
    async with openai_world() as world:
        said = {"role": "user", "content": "x"}
        assert (await world.chat(messages=[said] * (MAX_MESSAGES + more))).status_code == status
        parts = [{"type": "text", "text": "x"}] * (MAX_PARTS + more)
        assert (await world.chat(messages=[{"role": "user", "content": parts}])).status_code == status


async def test_a_plain_model_gets_the_clients_tools_and_its_calls_come_back() -> None:
    async with openai_world() as world:
        ask = {"tools": [TOOL], "tool_choice": "required"}
        choice = (await world.chat("What is the weather?", MODEL, **ask)).json()["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        (call,) = choice["message"]["tool_calls"]
        assert (call["type"], call["function"]["name"]) == ("function", "weather")
        assert isinstance(call["function"]["arguments"], str)
        response = await world.chat("What is the weather?", MODEL, stream=True, **ask)
        *chunks, last = events_in(response.text)
        assert last is None
        (delta,) = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"][0]["delta"].get("tool_calls")]
        assert delta["tool_calls"][0]["index"] == 0
        assert delta["tool_calls"][0]["function"]["name"] == "weather"
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
        messages = [
            {"role": "user", "content": "What is the weather?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "Rain", "tool_call_id": call["id"]},
        ]
        after = await world.chat(model=MODEL, tools=[TOOL], messages=messages)
        assert after.json()["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(("count", "status"), [(MAX_TOOLS, 200), (MAX_TOOLS + 1, 400)])
async def test_a_client_may_have_so_many_tools_and_no_more(count: int, status: int) -> None:
    async with openai_world() as world:
        tools = [{"type": "function", "function": {"name": f"tool{number}"}} for number in range(count)]
        assert (await world.chat("Hello", MODEL, tools=tools)).status_code == status


async def test_a_tool_that_is_no_function_is_refused() -> None:
    async with openai_world() as world:
        found = error_of(await world.chat("Hello", MODEL, tools=[{"type": "web_search"}]), 400)
        assert (found["param"], found["code"]) == ("tools", "unsupported_parameter")


async def test_what_a_plain_model_refuses_is_400() -> None:
    async with openai_world() as world:
        choice = {"type": "function", "function": {"name": "other"}}
        found = error_of(await world.chat("Hello", MODEL, tools=[TOOL], tool_choice=choice), 400)
        assert found["param"] == "tool_choice"


async def test_an_agent_that_cannot_be_told_what_was_before_says_so() -> None:
    async with openai_world() as world:
        from trunkline.core.faults import Unsupported

        caller = world.call("chat/completions", {}, headers={"X-Trunkline-Session": "s1"})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert list(world.keeper.held) == ["s1"]
        world.fake.refuses = Unsupported("It cannot")
        forked = await world.keeper.open(FAKE, "s2")
        await forked.leave()
        world.fake.refuses = Unsupported("It cannot")
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        caller = world.call("chat/completions", {"messages": messages}, headers={"X-Trunkline-Session": "s2"})
        await until(lambda: world.fake.busy)
        world.fake.refuses = None
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert "hears the last message only" in caller.text
