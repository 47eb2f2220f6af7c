"""Responses, as clients send and read them: items, events, and sessions that go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.keeper import FAKE
from tests.support.loop import until
from tests.support.openai_world import ECHO, MODEL, OpenAIWorld, error_of, events_in, openai_world
from trunkline.core import events as core
from trunkline.core.agent import AddHistory
from trunkline.core.usage import Usage
from trunkline.models.answers import AnswerReader
from trunkline.models.messages import Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Answer, Request, TextChunk, ToolSpec
from trunkline.models.openai_responses import ResponsesFormat
from trunkline.models.openai_responses_decoder import ResponsesDecoder
from trunkline.wires.openai.codec import response_id, split_id
from trunkline.wires.openai.messages import MAX_MESSAGES


def text_of(response: Any) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


async def test_an_agent_answers_and_the_response_names_its_session_and_turn() -> None:
    async with openai_world() as world:
        response = await world.respond("Hello there", metadata={"a": "b"}, temperature=0.5)
        found = response.json()
        assert response.status_code == 200
        session = response.headers["x-trunkline-session"]
        assert found["id"] == f"resp_1_{session}"
        assert (found["object"], found["status"], found["model"]) == ("response", "completed", ECHO)
        assert isinstance(found["created_at"], int)
        assert found["conversation"] == {"id": session}
        (item,) = found["output"]
        assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
        assert item["content"] == [{"type": "output_text", "text": "Hello there", "annotations": [], "logprobs": []}]
        assert (found["error"], found["incomplete_details"]) == (None, None)
        assert (found["metadata"], found["temperature"], found["store"]) == ({"a": "b"}, 0.5, True)
        assert found["usage"]["total_tokens"] == 0
        # It is kept.
        assert list(world.keeper.held) == [session]


async def asked(world: OpenAIWorld, body: dict[str, Any], *said: core.Event) -> Any:
    caller = world.call("responses", body)
    await until(lambda: world.keeper.fakes and world.fake.busy)
    world.fake.say(*said)
    await caller.whole()
    return caller


async def test_the_events_of_a_stream_are_complete_numbered_and_in_order() -> None:
    said = (
        core.ThinkingDelta("Hm. "),
        core.ToolStarted("c1", "Grep"),
        core.ToolFinished("c1", "Grep", "error", "no"),
        core.TextDelta("Hel"),
        core.TextDelta("lo"),
        core.TurnEnded("success", Usage(10, 2, 4, 1)),
    )
    async with openai_world() as world:
        caller = await asked(world, {"stream": True}, *said)
        *events, done = caller.events
        assert done is None
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added",
        "reasoning_summary_text.delta", "reasoning_summary_text.delta", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    first, last = events[0]["response"], events[-1]["response"]
    assert (first["id"], first["status"], first["output"], first["usage"]) == (last["id"], "in_progress", [], None)
    assert last["status"] == "completed"
    assert last["usage"] == {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12,
    }  # fmt: skip
    reasoning, message = last["output"]
    assert reasoning["summary"] == [
        {"type": "summary_text", "text": "Hm. \nUsing the tool Grep.\nThe tool Grep has failed.\n"}
    ]
    assert message["content"][0]["text"] == "Hello"
    for item in (reasoning, message):
        own = [event for event in events if event.get("item_id") == item["id"]]
        assert own
        assert {event["output_index"] for event in own} == {last["output"].index(item)}
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == last["output"]


async def test_a_failed_turn_is_response_failed_in_a_stream_and_5xx_else() -> None:
    said = (core.TextDelta("x"), core.Failed("provider", "The key is wrong"), core.TurnEnded("error"))
    async with openai_world() as world:
        last = (await asked(world, {"stream": True}, *said)).events[-2]
        assert last["type"] == "response.failed"
        assert last["response"]["status"] == "failed"
        assert last["response"]["error"] == {"code": "server_error", "message": "The key is wrong"}
        assert last["response"]["output"][0]["status"] == "incomplete"
    async with openai_world() as world:
        caller = await asked(world, {}, *said)
        assert caller.status == 502
        assert "The key is wrong" in caller.text


async def test_a_text_that_was_cut_is_incomplete() -> None:
    async with openai_world() as world:
        found = (await world.respond("123456789", max_output_tokens=2)).json()
        assert (found["status"], text_of(found)) == ("incomplete", "12345678")
        assert found["incomplete_details"] == {"reason": "max_output_tokens"}
        *_, last, _ = events_in((await world.respond("123456789", max_output_tokens=2, stream=True)).text)
        assert last["type"] == "response.incomplete"


async def test_a_response_can_be_followed_and_an_older_one_forks_its_session() -> None:
    async with openai_world() as world:
        one = (await world.respond("One")).json()
        two = (await world.respond("Two", previous_response_id=one["id"])).json()
        assert split_id(two["id"]) == (one["conversation"]["id"], 2)
        assert two["previous_response_id"] == one["id"]
        other = (await world.respond("Other", previous_response_id=one["id"])).json()
        session, turn = split_id(other["id"]) or ("", 0)
        assert (turn, session != one["conversation"]["id"]) == (2, True)
        records = [item.event for item in await world.keeper.read(session) if isinstance(item, core.Envelope)]
        assert [event.message.text for event in records if isinstance(event, core.TurnStarted)] == ["One", "Other"]
        three = (await world.respond("Three", previous_response_id=two["id"])).json()
        assert split_id(three["id"]) == (one["conversation"]["id"], 3)


@pytest.mark.parametrize(
    "id", ["resp_1_nobody", "resp_9_{}", "resp_x", "resp_0_{}", "abc", "resp_1_", "resp_" + "1" * 99]
)
async def test_a_response_that_there_is_not_cannot_be_followed_or_found(id: str) -> None:
    async with openai_world() as world:
        await world.respond("One", conversation="known")
        id = id.format("known")
        found = error_of(await world.respond("Two", previous_response_id=id), 400)
        assert (found["param"], found["code"]) == ("previous_response_id", "previous_response_not_found")
        for path in (f"responses/{id}", f"responses/{id}/input_items"):
            assert error_of(await world.get(path), 404)["code"] == "not_found"
        for method, path in (("DELETE", f"responses/{id}"), ("POST", f"responses/{id}/cancel")):
            error_of(await world.ask(method, path), 404)


async def test_a_response_cannot_be_followed_by_another_model() -> None:
    async with openai_world() as world:
        one = (await world.respond("One")).json()
        found = error_of(await world.respond("Two", FAKE, previous_response_id=one["id"]), 409)
        assert found["code"] == "model_mismatch"


async def test_a_conversation_is_a_session_of_that_id_which_is_opened_if_it_is_unknown() -> None:
    async with openai_world() as world:
        one = await world.respond("One", conversation="s1")
        two = await world.respond("Two", conversation={"id": "s1"})
        three = await world.respond("Three", headers={"X-Trunkline-Session": "s1"})
        four = await world.chat("Four", headers={"X-Trunkline-Session": "s1"})
        assert [each.headers["x-trunkline-session"] for each in (one, two, three, four)] == ["s1"] * 4
        assert [each.json()["id"] for each in (one, two, three)] == [response_id("s1", turn) for turn in (1, 2, 3)]
        error_of(await world.respond("One", FAKE, conversation="s1"), 409)


async def test_a_session_is_named_once() -> None:
    async with openai_world() as world:
        one = (await world.respond("One")).json()["id"]
        error_of(await world.respond(conversation="a", previous_response_id=one), 400)
        error_of(await world.respond(conversation="a", headers={"X-Trunkline-Session": "b"}), 400)
        error_of(await world.respond(previous_response_id=one, headers={"X-Trunkline-Session": "b"}), 400)
        same = await world.respond(conversation="ä", headers={"X-Trunkline-Session": "ä".encode()})
        assert same.headers["x-trunkline-session"] == "ä"


async def test_what_is_not_stored_leaves_nothing_behind() -> None:
    async with openai_world() as world:
        response = await world.respond(store=False)
        found = response.json()
        assert (found["store"], found["conversation"], list(world.keeper.held)) == (False, None, [])
        assert "x-trunkline-session" not in response.headers
        error_of(await world.get(f"responses/{found['id']}"), 404)


async def test_a_stored_response_can_be_read_again_and_deleted() -> None:
    async with openai_world() as world:
        one = (await world.respond("One")).json()
        again = (await world.get(f"responses/{one['id']}")).json()
        assert isinstance(one["completed_at"], int)
        times = {"created_at": 0, "completed_at": 0}
        assert again | times == one | times
        items = (await world.get(f"responses/{one['id']}/input_items")).json()
        assert [item["content"] for item in items["data"]] == [[{"type": "input_text", "text": "One"}]]
        assert items["has_more"] is False
        two = (await world.respond("Two", previous_response_id=one["id"])).json()
        found = error_of(await world.ask("DELETE", f"responses/{two['id']}"), 409)
        assert "DELETE /v1/conversations/" in found["message"]
        other = (await world.respond("Other")).json()
        deleted = (await world.ask("DELETE", f"responses/{other['id']}")).json()
        assert deleted == {"id": other["id"], "object": "response", "deleted": True}
        error_of(await world.get(f"responses/{other['id']}"), 404)


@pytest.mark.parametrize(
    ("limit", "said", "status"),
    [({"stop": ["END"]}, "one ", "completed"), ({"max_output_tokens": 1}, "one ", "incomplete")],
)
async def test_an_answer_that_was_cut_is_the_same_when_it_is_read_again(
    limit: dict[str, Any], said: str, status: str
) -> None:
    async with openai_world() as world:
        caller = await asked(world, {"conversation": "s1", **limit}, core.TextDelta("one E"), core.TextDelta("ND two"))
        answered = json.loads(caller.text)
        assert (answered["status"], text_of(answered)) == (status, said)
        await world.keeper.seats[0].session.at_rest()
        again = (await world.get("responses/resp_1_s1")).json()
        for name in ("status", "output", "error", "incomplete_details"):
            assert again[name] == answered[name]
        items = (await world.get("conversations/s1/items")).json()["data"]
        assert items[0]["content"] == answered["output"][0]["content"]
        found = error_of(await world.ask("POST", "responses/resp_1_s1/cancel"), 400)
        assert found["code"] == "response_not_cancellable"


async def test_a_response_in_the_background_goes_on_alone_and_can_be_cancelled() -> None:
    async with openai_world() as world:
        begun = (await world.respond("One", FAKE, background=True, conversation="s1")).json()
        assert (begun["status"], begun["background"]) == ("in_progress", True)
        await until(lambda: world.fake.busy)
        world.fake.say(core.TextDelta("Hello"))
        await until(lambda: world.keeper.seats[0].session.seq > 1)
        assert (await world.get(f"responses/{begun['id']}")).json()["status"] == "in_progress"
        stopped = (await world.ask("POST", f"responses/{begun['id']}/cancel")).json()
        assert (stopped["status"], text_of(stopped)) == ("cancelled", "Hello")
        again = (await world.ask("POST", f"responses/{begun['id']}/cancel")).json()
        assert again["status"] == "cancelled"
        other = (await world.respond("Two", FAKE, background=True, conversation="s1")).json()
        await until(lambda: world.fake.busy)
        world.fake.say(core.TurnEnded("success"))
        await until(lambda: not world.fake.busy)
        await world.keeper.seats[0].session.at_rest()
        assert (await world.get(f"responses/{other['id']}")).json()["status"] == "completed"
        found = error_of(await world.ask("POST", f"responses/{other['id']}/cancel"), 400)
        assert found["code"] == "response_not_cancellable"


async def test_a_response_that_waits_behind_another_is_queued_and_can_be_cancelled() -> None:
    async with openai_world() as world:
        for text in ("One", "Two"):
            await world.respond(text, FAKE, background=True, conversation="s1")
        await until(lambda: world.fake.busy)
        assert (await world.get("responses/resp_1_s1")).json()["status"] == "in_progress"
        assert (await world.get("responses/resp_2_s1")).json()["status"] == "queued"
        error_of(await world.get("responses/resp_3_s1"), 404)
        assert (await world.ask("POST", "responses/resp_2_s1/cancel")).json()["status"] == "cancelled"
        world.fake.say(core.TurnEnded("success"))
        await world.keeper.seats[0].session.at_rest()
        assert [message.text for message in world.fake.heard] == ["One"]
        assert (await world.get("responses/resp_2_s1")).json()["status"] == "cancelled"


async def test_who_waits_for_a_response_that_another_cancels_gets_it_as_cancelled() -> None:
    async with openai_world() as world:
        caller = world.call("responses", {"conversation": "s1"})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        await world.ask("POST", "responses/resp_1_s1/cancel")
        await caller.whole()
        assert caller.status == 200
        assert '"status":"cancelled"' in caller.text


async def test_items_before_the_last_message_are_the_history() -> None:
    async with openai_world() as world:
        items = [
            {"role": "user", "content": "One"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"role": "user", "content": [{"type": "input_text", "text": "Three"}]},
        ]
        await asked(world, {"input": items, "instructions": "Be brief."}, core.TurnEnded("success"))
        text = "Instructions for this conversation:\nBe brief.\n\nWhat was said before:\n\nUser: One\n\nAssistant: Two"
        assert world.fake.changes == [AddHistory(text)]
        assert [message.text for message in world.fake.heard] == ["Three"]


@pytest.mark.parametrize("id", ["msg_1", "msg_0_1_nobody", "msg_7_1_s1", "rs_0_1_s1", "msg_x_1_s1", "msg_0_9_s1"])
async def test_an_item_that_there_is_not_cannot_be_referred_to(id: str) -> None:
    async with openai_world() as world:
        await world.respond("One", conversation="s1")
        items = [{"type": "item_reference", "id": id}, {"role": "user", "content": "Two"}]
        found = error_of(await world.respond(items), 400)
        assert (found["param"], found["code"]) == ("input", "item_not_found")


async def test_items_of_earlier_responses_can_be_referred_to() -> None:
    async with openai_world() as world:
        said = (core.ThinkingDelta("Hm"), core.TextDelta("Two"), core.TurnEnded("success"))
        caller = await asked(world, {"input": "One", "conversation": "s1"}, *said)
        references = [{"type": "item_reference", "id": item["id"]} for item in json.loads(caller.text)["output"]]
        assert len(references) == 2
        items = [{"role": "user", "content": "One"}, *references, {"role": "user", "content": "Three"}]
        begun = len(world.keeper.fakes)
        caller = world.call("responses", {"input": items})
        await until(lambda: len(world.keeper.fakes) > begun and world.fake.busy)
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert world.fake.changes == [AddHistory("User: One\n\nAssistant: Two")]


FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


async def test_the_calls_of_a_plain_model_are_function_calls_and_their_results_can_follow() -> None:
    async with openai_world() as world:
        ask = {"tools": [FUNCTION], "tool_choice": "required"}
        one = (await world.respond("What is the weather?", MODEL, **ask)).json()
        (call,) = [item for item in one["output"] if item["type"] == "function_call"]
        assert (call["name"], call["status"]) == ("weather", "completed")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Rain"}
        two = await world.respond([result], MODEL, previous_response_id=one["id"], tools=[FUNCTION])
        assert two.json()["status"] == "completed"
        assert text_of(two.json())
        question = {"role": "user", "content": "What is the weather?"}
        stateless = await world.respond([question, call, result], MODEL, store=False, tools=[FUNCTION])
        assert text_of(stateless.json()) == text_of(two.json())
        *events, _ = events_in((await world.respond("Weather?", MODEL, stream=True, **ask)).text)
        kinds = [event["type"] for event in events]
        begin = kinds.index("response.function_call_arguments.delta")
        assert kinds[begin - 1 :] == [
            "response.output_item.added", "response.function_call_arguments.delta",
            "response.function_call_arguments.done", "response.output_item.done", "response.completed",
        ]  # fmt: skip


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"input": None}, "input", "missing_required_parameter"),
    ({"input": ""}, "input", "missing_required_parameter"),
    ({"input": []}, "input", "missing_required_parameter"),
    ({"input": 7}, "input", "invalid_type"),
    ({"input": [7]}, "input[0]", "invalid_type"),
    ({"input": [{"type": "film"}]}, "input[0].type", "invalid_value"),
    ({"input": [{"type": "item_reference"}]}, "input[0].id", "missing_required_parameter"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id", "missing_required_parameter"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input", "invalid_value"),
    ({"input": [{"role": "assistant", "content": "x"}]}, "input", "invalid_value"),
    ({"input": [{"role": "user", "content": "x"}] * (MAX_MESSAGES + 1)}, "input", "array_above_max_length"),
    ({"tools": [FUNCTION]}, "tools", "unsupported_parameter"),
    ({"tools": [{"type": "web_search"}]}, "tools", "unsupported_parameter"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format", "unsupported_parameter"),
    ({"text": {"format": {"type": "json_object"}}}, "text.format", "unsupported_parameter"),
    ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
    ({"top_logprobs": 2}, "logprobs", "unsupported_parameter"),
    ({"max_output_tokens": 0}, "max_output_tokens", "integer_below_min_value"),
    ({"conversation": 7}, "conversation", "invalid_type"),
    ({"conversation": {}}, "conversation.id", "missing_required_parameter"),
    ({"background": True, "store": False}, "background", "invalid_value"),
    ({"instructions": 7}, "instructions", "invalid_type"),
    ({"metadata": 7}, "metadata", "invalid_type"),
]


@pytest.mark.parametrize(("body", "param", "code"), REFUSED)
async def test_what_cannot_be_had_is_400_and_names_the_parameter(body: dict[str, Any], param: str, code: str) -> None:
    async with openai_world() as world:
        found = error_of(await world.respond(**body), 400)
        assert (found["param"], found["code"]) == (param, code)
        assert world.keeper.seats == []


async def test_conversations_are_made_found_listed_and_deleted() -> None:
    async with openai_world() as world:
        made = (await world.ask("POST", "conversations", {"metadata": {"a": "b"}})).json()
        assert (made["object"], made["metadata"]) == ("conversation", {"a": "b"})
        path = f"conversations/{made['id']}"
        assert (await world.get(path)).json() == made
        assert (await world.get(f"{path}/items")).json()["data"] == []
        await world.respond("One", conversation=made["id"])
        assert (await world.get(path)).json()["metadata"] == {"a": "b"}
        items = (await world.get(f"{path}/items")).json()["data"]
        assert [(item["role"], item["content"][0]["text"]) for item in items] == [("assistant", "One"), ("user", "One")]
        deleted = (await world.ask("DELETE", path)).json()
        assert deleted == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
        for method, each in (("GET", path), ("DELETE", path), ("GET", f"{path}/items")):
            error_of(await world.ask(method, each), 404)
        error_of(await world.ask("POST", "conversations", {"items": [{"role": "user", "content": "x"}]}), 400)
        assert (await world.ask("POST", "conversations")).status_code == 200


async def test_an_answer_repeats_what_holds_also_where_the_request_says_nothing() -> None:
    async with openai_world() as world:
        found = (await world.respond("One", reasoning={"effort": "low"}, temperature=0.5)).json()
        assert found["reasoning"] == {"effort": "low", "summary": None}
        assert (found["temperature"], found["top_p"]) == (0.5, 1.0)
        assert (found["presence_penalty"], found["frequency_penalty"]) == (0.0, 0.0)


async def test_our_own_client_of_this_format_can_talk_to_our_own_server() -> None:
    thought = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "opaque"}
    said = [
        Message("user", (Text("One"),)),
        Message("assistant", (ThinkingBlock("", extra=thought), Text("You said: One"), ToolUse("c1", "look", {}))),
        Message("user", (ToolResultBlock("c1", "seen"), Text("Two"))),
    ]
    tool = ToolSpec("look", "looks", {"type": "object", "properties": {}})
    written = ResponsesFormat().body(Request(said, "Be brief.", [tool]), model=MODEL, max_tokens=None)
    async with openai_world() as world:
        for body in (written, ResponsesFormat().body(Request(said[:1]), model=ECHO, max_tokens=100)):
            reader = AnswerReader(ResponsesDecoder())
            chunks = [*reader.feed((await world.ask("POST", "responses", content=body)).content), *reader.finish()]
            answer = chunks[-1]
            assert isinstance(answer, Answer)
            assert answer.stop == "end"
            (text,) = answer.content
            assert text == Text("".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)))
