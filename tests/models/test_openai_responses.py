"""What is sent in OpenAI's Responses format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.models.asking import BASH, READ, ask, say
from tests.support.conversations import read
from tests.support.provider import StubProvider
from tests.support.responses_streams import ENCRYPTED, responses_of, responses_text
from trunkline.core.faults import ConfigError, ProviderError, TooLong
from trunkline.core.usage import Usage
from trunkline.models import abilities
from trunkline.models.messages import Document, Image, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Answer, AnswerOptions, Chunk, Request, Retrying
from trunkline.models.openai import OpenAIModel
from trunkline.models.openai_responses import ResponsesFormat, ResponsesModel
from trunkline.models.providers import ModelSettings, make

RESPONSES = {"openai_api_mode": "responses"}
THOUGHT = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": ENCRYPTED}


def body(request: Request, *, official: bool = False, compat: dict[str, Any] | None = None, **more: Any) -> Any:
    given = {"model": "gpt-6", "max_tokens": None, **more}
    return json.loads(ResponsesFormat(official=official, compat=compat or {}).body(request, **given))


def items(*said: Message, **more: Any) -> Any:
    sent = body(ask(*said), **more)
    read(sent)
    return sent["input"]


def test_the_smallest_request() -> None:
    assert body(ask(say("user", "hi"))) == {
        "model": "gpt-6",
        "stream": True,
        "store": False,
        "reasoning": {"summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    }


def test_system_prompt_tools_effort_and_the_longest_answer() -> None:
    found = body(ask(say("user", "hi"), system="s", tools=[READ, BASH], effort="high", max_tokens=700))
    assert found["instructions"] == "s"
    assert found["max_output_tokens"] == 700
    assert found["reasoning"] == {"effort": "high", "summary": "auto"}
    tool = {"type": "function", "name": "Read", "description": "reads", "parameters": READ.schema, "strict": False}
    assert found["tools"][0] == tool


def test_a_model_that_does_not_reason_is_asked_nothing_about_it() -> None:
    found = body(ask(say("user", "hi"), effort="high"), model="gpt-4.1-mini")
    assert not {"reasoning", "include"} & found.keys()
    found = body(ask(say("user", "hi")), compat={"supports_thinking": False})
    assert not {"reasoning", "include"} & found.keys()


def test_of_a_model_that_nobody_knows_only_what_it_sends_back_is_asked_for() -> None:
    found = body(ask(say("user", "hi"), effort="high"), model="stub")
    assert "reasoning" not in found
    assert found["include"] == ["reasoning.encrypted_content"]
    found = body(ask(say("user", "hi"), thinking_budget=5000), model="stub")
    assert found["reasoning"] == {"summary": "auto"}


def test_calls_results_and_reasoning_go_back_in_their_places() -> None:
    said = [
        say("user", "q"),
        say("assistant", ThinkingBlock("Look.", extra=THOUGHT), "I look.", ToolUse("c1", "Read", {"a": "é"})),
        say("user", ToolResultBlock("c1", "ok"), "and"),
        say("assistant", ThinkingBlock("", extra=THOUGHT), "Done."),
        say("user", "thanks"),
    ]
    assert items(*said)[1:-1] == [
        THOUGHT,
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": '{"a":"é"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and"}]},
        THOUGHT,
        {"type": "message", "role": "assistant", "content": "Done."},
    ]


def test_reasoning_that_is_another_s_or_leads_to_nothing_is_not_sent() -> None:
    for thought in (ThinkingBlock("hm"), ThinkingBlock("hm", "signature"), ThinkingBlock("", redacted="x")):
        found = items(say("user", "q"), say("assistant", thought, "a"), say("user", "r"))
        assert [item["type"] for item in found] == ["message"] * 3
    found = items(say("user", "q"), say("assistant", "a", ThinkingBlock("", extra=THOUGHT)), say("user", "r"))
    assert [item["type"] for item in found] == ["message"] * 3
    found = items(say("user", "q"), say("assistant", ThinkingBlock("", extra=THOUGHT)), say("user", "r"))
    assert [item["role"] for item in found] == ["user", "user"]


def test_a_call_without_a_result_and_a_result_without_a_call_are_not_sent() -> None:
    for said in (
        [say("user", "q"), say("assistant", "a", ToolUse("1", "Read", {})), say("user", "r")],
        [say("user", "q"), say("assistant", "a"), say("user", ToolResultBlock("1", "x"), "r")],
    ):
        assert [item["role"] for item in items(*said)] == ["user", "assistant", "user"]


def test_pictures_and_files_are_shown() -> None:
    picture = Image("image/png", "AAAA")
    pdf = Document("application/pdf", "BBBB", "a.pdf", "its text")
    (found,) = items(say("user", "look", picture, pdf), official=True)
    assert found["content"][1:] == [
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"},
    ]
    (found,) = items(say("user", pdf))
    assert found["content"] == [{"type": "input_text", "text": "a.pdf:\nits text"}]
    (found,) = items(say("user", picture), compat={"image_input": "unsupported"})
    assert "cannot see" in found["content"][0]["text"]
    result = ToolResultBlock("1", "x", images=(picture,))
    *_, output, shown = items(say("user", "q"), say("assistant", ToolUse("1", "Read", {})), say("user", result))
    assert output["output"] == "x"
    assert [part["type"] for part in shown["content"]] == ["input_text", "input_image"]


def test_what_the_format_knows_of_how_to_answer_is_asked_for() -> None:
    options = AnswerOptions(temperature=0.5, seed=1, stop=("x",), must_call=True, schema={"type": "object"})
    found = body(ask(say("user", "q"), options=options))
    assert (found["temperature"], found["tool_choice"]) == (0.5, "required")
    assert found["text"] == {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}}
    assert not {"seed", "stop"} & found.keys()


# Which interface is used, and where


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        (None, None, "https://api.openai.com/v1/responses"),
        ("https://h", None, "https://h/v1/responses"),
        ("https://h/v1", None, "https://h/v1/responses"),
        ("https://h/v1/chat/completions", None, "https://h/v1/responses"),
        ("https://h/v1", "/chat/completions", "https://h/v1/responses"),
        ("https://h/v1", "/v2/responses", "https://h/v1/v2/responses"),
    ],
)
async def test_the_path_follows_the_rules_of_the_other(base: str | None, path: str | None, url: str) -> None:
    compat = {**RESPONSES, **({"api_path": path} if path else {})}
    model = ResponsesModel(ModelSettings("openai", "gpt-6", "k", base, compat=compat))
    call = await model.call(b"")
    assert call.url == url
    assert call.headers["authorization"] == "Bearer k"


def test_the_profile_says_which_interface_is_used() -> None:
    def kind(compat: dict[str, Any]) -> type[Any]:
        return type(make(ModelSettings("openai", "gpt-6", "k", compat=compat)))

    assert kind(RESPONSES) is ResponsesModel
    assert kind({}) is kind({"openai_api_mode": "chat_completions"}) is OpenAIModel
    for wrong in ("respones", 5, ["responses"]):
        with pytest.raises(ConfigError, match=r"`compat.openai_api_mode` must be one of `responses`"):
            kind({"openai_api_mode": wrong})


def test_openai_s_models_tell_what_they_think_there() -> None:
    assert not abilities.of(ModelSettings("openai", "gpt-6")).thinks
    assert abilities.of(ModelSettings("openai", "gpt-6", compat=RESPONSES)).thinks
    assert not abilities.of(ModelSettings("openai", "gpt-4o", compat=RESPONSES)).thinks


# Against a server


def model_at(stub: StubProvider) -> ResponsesModel:
    return ResponsesModel(ModelSettings("openai", "gpt-6", "k", stub.url))


async def chunks_of(model: ResponsesModel, request: Request) -> list[Chunk]:
    try:
        return [chunk async for chunk in model.stream(request)]
    finally:
        await model.close()


async def test_an_answer_comes_over_http_however_it_is_cut() -> None:
    async with StubProvider() as stub:
        stub.responses(responses_text("to bé", reasoning="hm"), cut=7)
        *_, answer = await chunks_of(model_at(stub), ask(say("user", "q")))
        thought = ThinkingBlock("hm", extra={**THOUGHT, "summary": [{"type": "summary_text", "text": "hm"}]})
        assert answer == Answer((thought, Text("to bé")), "end", Usage(10, 5, 4, reasoning_tokens=2))
        assert stub.requests[0].target == "/v1/responses"


async def test_a_failure_that_may_pass_is_tried_again_and_one_that_stays_is_not() -> None:
    lasting = responses_of(status="failed", error={"code": "insufficient_quota", "message": "No money."})
    async with StubProvider() as stub:
        stub.error(500, retry_after_ms="1")
        stub.responses(responses_text("ok"))
        found = await chunks_of(model_at(stub), ask(say("user", "q")))
        assert isinstance(found[0], Retrying)
        assert isinstance(found[-1], Answer)
        stub.responses(lasting)
        with pytest.raises(ProviderError, match="No money") as caught:
            await chunks_of(model_at(stub), ask(say("user", "q")))
        assert not caught.value.retryable
        assert len(stub.requests) == 3
        stub.error(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
        with pytest.raises(TooLong):
            await chunks_of(model_at(stub), ask(say("user", "q")))


async def test_an_account_that_may_not_see_what_is_thought_does_without() -> None:
    said = {
        "message": "Your organization must be verified to generate reasoning summaries.",
        "code": "unsupported_value",
    }
    async with StubProvider() as stub:
        stub.error(400, {"error": said})
        stub.responses(responses_text("one"))
        stub.responses(responses_text("two"))
        model = model_at(stub)
        for expected in ("one", "two"):
            *_, answer = await chunks_of(model, ask(say("user", "q"), effort="low"))
            assert isinstance(answer, Answer)
            assert answer.content == (Text(expected),)
        asked = [request.json["reasoning"] for request in stub.requests]
        assert asked == [{"effort": "low", "summary": "auto"}, {"effort": "low"}, {"effort": "low"}]
        assert all(request.json["include"] == ["reasoning.encrypted_content"] for request in stub.requests)
        stub.error(400, {"error": said})
        with pytest.raises(ProviderError, match="verified"):
            await chunks_of(model, ask(say("user", "q")))


def test_what_is_thought_can_be_read_by_its_maker_alone() -> None:
    one = ResponsesModel(ModelSettings("openai", "gpt-6", "k"))
    other = ResponsesModel(ModelSettings("openai", "gpt-6", "k", "https://elsewhere.example/v1"))
    assert one.origin != other.origin
