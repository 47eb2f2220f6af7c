from __future__ import annotations

import json
from typing import Any

import pytest

from tests.models.asking import BASH, READ, ask, say
from tests.support.counting import calls
from trunkline.models.messages import Document, Image, Message, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Request
from trunkline.models.openai import OpenAIFormat, OpenAIModel
from trunkline.models.providers import ModelSettings


def body(request: Request, *, official: bool = False, compat: dict[str, Any] | None = None, **more: Any) -> Any:
    given = {"model": "gpt-x", "max_tokens": None, **more}
    return json.loads(OpenAIFormat(official=official, compat=compat or {}).body(request, **given))


def messages(*said: Message, **more: Any) -> Any:
    return body(ask(*said), **more)["messages"]


def test_the_smallest_request() -> None:
    assert body(ask(say("user", "hi"))) == {
        "model": "gpt-x",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_system_prompt_and_tools() -> None:
    found = body(ask(say("user", "hi"), system="s", tools=[READ, BASH]))
    assert found["messages"][0] == {"role": "system", "content": "s"}
    function = {"name": "Read", "description": "reads", "parameters": READ.schema}
    assert found["tools"][0] == {"type": "function", "function": function}


@pytest.mark.parametrize(
    ("official", "compat", "field"),
    [
        (True, {}, "max_completion_tokens"),
        (False, {}, "max_tokens"),
        (False, {"max_tokens_field": "max_completion_tokens"}, "max_completion_tokens"),
        (True, {"max_tokens_field": "max_tokens"}, "max_tokens"),
    ],
)
def test_the_longest_answer_is_named_as_the_provider_names_it(official: bool, compat: Any, field: str) -> None:
    found = body(ask(say("user", "hi"), max_tokens=7), official=official, compat=compat)
    assert {name: value for name, value in found.items() if name.startswith("max_")} == {field: 7}


@pytest.mark.parametrize(
    ("base", "field"),
    [
        (None, "max_completion_tokens"),
        ("https://api.openai.com", "max_completion_tokens"),
        ("https://api.openai.com.evil.example/v1", "max_tokens"),
        ("http://localhost:11434/v1", "max_tokens"),
    ],
)
def test_only_openai_s_own_host_is_taken_for_openai(base: str | None, field: str) -> None:
    model = OpenAIModel(ModelSettings("openai", "m", "k", base, max_tokens=7))
    assert field in json.loads(model.body(ask(say("user", "hi"))))


def test_each_result_is_a_message_of_its_own_and_the_rest_follows() -> None:
    calls = (ToolUse("1", "Read", {"a": "é"}), ToolUse("2", "Bash", None, raw="{broken"))
    results = (ToolResultBlock("1", "ok"), ToolResultBlock("2", "", is_error=True))
    found = messages(say("user", "q"), say("assistant", "look", *calls), say("user", *results, "and"))
    assert found[1] == {
        "role": "assistant",
        "content": "look",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "Read", "arguments": '{"a":"é"}'}},
            {"id": "2", "type": "function", "function": {"name": "Bash", "arguments": "{}"}},
        ],
    }
    assert found[2:] == [
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "user", "content": "and"},
    ]


def test_what_came_with_a_call_goes_back_with_it() -> None:
    extra = {"google": {"thought_signature": "abc"}}
    call = ToolUse("1", "Read", {}, extra=extra)
    found = messages(say("user", "q"), say("assistant", call), say("user", ToolResultBlock("1", "x")))
    assert found[1]["tool_calls"][0]["extra_content"] == extra
    assert found[1]["content"] is None


def test_a_call_without_a_result_and_a_result_without_a_call_are_not_sent() -> None:
    for said in (
        [say("user", "q"), say("assistant", "a", ToolUse("1", "Read", {})), say("user", "r")],
        [say("user", "q"), say("assistant", "a"), say("user", ToolResultBlock("1", "x"), "r")],
    ):
        assert [message["role"] for message in messages(*said)] == ["user", "assistant", "user"]
        assert "tool" not in json.dumps(messages(*said))


def test_thoughts_go_back_to_those_who_showed_them_and_never_to_openai() -> None:
    said = [say("user", "q"), say("assistant", ThinkingBlock("hm"), "a"), say("user", "r")]
    assert messages(*said)[1] == {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    assert messages(*said, official=True)[1] == {"role": "assistant", "content": "a"}


def test_an_answer_of_thoughts_alone_is_not_sent() -> None:
    said = [say("user", "q"), say("assistant", ThinkingBlock("hm")), say("user", "r")]
    assert messages(*said) == [{"role": "user", "content": "q\n\nr"}]


def test_what_the_user_says_in_several_messages_goes_out_as_one() -> None:
    picture = Image("image/png", "AAAA")
    assert messages(say("user", "a"), say("user", " "), say("user", "b")) == [{"role": "user", "content": "a\n\nb"}]
    (found,) = messages(say("user", "a"), say("user", picture))
    assert [part["type"] for part in found["content"]] == ["text", "image_url"]


def test_results_stay_messages_of_their_own_before_what_the_user_says() -> None:
    call = say("assistant", ToolUse("1", "Read", {}))
    result = ToolResultBlock("1", "x", images=(Image("image/png", "AAAA"),))
    found = messages(say("user", "q"), call, say("user", result, "a"), say("user", "b"))
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "user"]
    assert [part.get("text") for part in found[3]["content"]] == ["The pictures of the tool's result:", None, "a", "b"]
    plain = messages(say("user", "q"), call, say("user", ToolResultBlock("1", "x")), say("user", "b"))
    assert plain[2:] == [{"role": "tool", "tool_call_id": "1", "content": "x"}, {"role": "user", "content": "b"}]


def test_sides_take_turns_however_a_conversation_grows() -> None:
    said = [
        *(say("user", "a"), say("user", "b"), say("assistant", "c"), say("user", "d"), say("user", "e")),
        *(
            say("user", "f"),
            say("assistant", ThinkingBlock("hm")),
            say("user", "g"),
            say("assistant", "h"),
            say("user", "i"),
        ),
    ]
    form = OpenAIFormat()
    for length in range(1, len(said) + 1):
        found = json.loads(form.body(ask(*said[:length]), model="m", max_tokens=1))["messages"]
        assert found == messages(*said[:length])
        roles = [message["role"] for message in found]
        assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
    assert [message["content"] for message in messages(*said)] == ["a\n\nb", "c", "d\n\ne\n\nf\n\ng", "h", "i"]


def test_a_long_conversation_costs_no_more_than_a_short_one_the_second_time() -> None:
    def again(length: int) -> int:
        said = [say("assistant" if number % 3 == 2 else "user", "x" * 1000) for number in range(length)]
        form, request = OpenAIFormat(), ask(*said)
        assert calls(lambda: form.body(request, model="m", max_tokens=1)) > length
        return calls(lambda: form.body(request, model="m", max_tokens=1))

    assert again(1001) == again(11)


def test_pictures_are_parts_and_text_alone_is_text() -> None:
    assert messages(say("user", "a", "b"))[0]["content"] == "a\n\nb"
    assert messages(say("user", "a", Image("image/png", "AAAA")))[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_pictures_of_a_result_follow_it() -> None:
    result = ToolResultBlock("1", "see", images=(Image("image/png", "AAAA"),))
    found = messages(say("user", "q"), say("assistant", ToolUse("1", "Read", {})), say("user", result))
    assert found[2] == {"role": "tool", "tool_call_id": "1", "content": "see"}
    assert [part["type"] for part in found[3]["content"]] == ["text", "image_url"]


def test_a_model_that_cannot_see_is_told_so() -> None:
    model = OpenAIModel(ModelSettings("openai", "m", "k", compat={"image_input": "unsupported"}))
    assert model.images is False
    (found,) = messages(say("user", Image("image/png", "AAAA")), compat={"image_input": "unsupported"})
    assert "cannot see" in found["content"]


def test_a_document_is_a_file_to_openai_and_text_to_others() -> None:
    document = Document("application/pdf", "BBBB", "a.pdf", "words")
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"}
    assert messages(say("user", document), official=True)[0]["content"] == [{"type": "file", "file": file}]
    assert messages(say("user", document))[0]["content"] == "a.pdf:\nwords"


def test_the_user_never_says_nothing() -> None:
    assert messages() == [{"role": "user", "content": "."}]
    assert messages(say("user", " ")) == [{"role": "user", "content": "."}]


def test_effort_and_thinking_are_asked_for_where_they_are_known() -> None:
    request = ask(say("user", "q"), effort="high", thinking_budget=1000)
    found = body(request, model="gpt-5.1")
    assert found["reasoning_effort"] == "high"
    assert "thinking" not in found
    # Servers refuse a word that their model does not know.
    for unknown in ("gpt-x", "gpt-4o", "gpt-5-chat-latest", "qwen3:8b"):
        assert "reasoning_effort" not in body(request, model=unknown)
    assert body(request, compat={"supports_effort": True})["reasoning_effort"] == "high"
    assert body(request, compat={"supports_thinking": True})["thinking"] == {"type": "enabled"}
    assert "reasoning_effort" not in body(request, model="gpt-5.1", compat={"supports_effort": False})
    assert "reasoning_effort" not in body(request, model="gpt-5.1", compat={"effort_levels": ["low", "medium"]})


def test_a_profile_changes_what_is_sent() -> None:
    request = ask(say("user", "a<x>b"), tools=[READ, BASH])
    assert "stream_options" not in body(request, compat={"include_stream_options": False})
    assert "tools" not in body(request, compat={"emit_tools": False})
    assert len(body(request, compat={"max_tool_count": 1})["tools"]) == 1
    assert "input_schema" in body(request, compat={"tool_wire_shape": "anthropic_input_schema"})["tools"][0]
    assert "title" not in body(request, compat={"sanitize_schema": True})["tools"][0]["function"]["parameters"]
    assert body(request, compat={"strip_patterns": ["<x>"]})["messages"][0]["content"] == "ab"


def test_without_a_limit_of_its_own_a_profile_s_is_used() -> None:
    model = OpenAIModel(ModelSettings("openai", "m", "k", "http://h", compat={"default_max_tokens": 50}))
    assert json.loads(model.body(ask(say("user", "q"))))["max_tokens"] == 50
    assert "max_tokens" not in json.loads(OpenAIModel(ModelSettings("openai", "m", "k", "http://h")).body(ask()))


def test_what_was_sent_is_the_beginning_of_what_is_sent_next() -> None:
    form = OpenAIFormat()
    said = [say("user", "a"), say("assistant", "b"), say("user", "c")]
    first = form.body(ask(*said, system="s", tools=[READ]), model="m", max_tokens=1)
    more = [*said, say("assistant", "d"), say("user", "e")]
    second = form.body(ask(*more, system="s", tools=[READ]), model="m", max_tokens=1)
    assert second.startswith(first.removesuffix(b"]}"))
