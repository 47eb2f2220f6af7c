from __future__ import annotations

import json
from typing import Any

import pytest

from tests.models.asking import BASH, READ, ask, say
from trunkline.models.abilities import is_adaptive
from trunkline.models.anthropic import AnthropicFormat
from trunkline.models.messages import Block, Document, Image, Message, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Request

MARK = {"type": "ephemeral"}


def body(request: Request, *, caching: bool = False, compat: dict[str, Any] | None = None, **more: Any) -> Any:
    given = {"model": "claude-x", "max_tokens": 100, **more}
    return json.loads(AnthropicFormat(caching=caching, compat=compat or {}).body(request, **given))


def content(*blocks: Block | str, **more: Any) -> Any:
    return body(ask(say("user", *blocks)), **more)["messages"][0]["content"]


def test_the_smallest_request() -> None:
    assert body(ask(say("user", "hi"))) == {
        "model": "claude-x",
        "max_tokens": 100,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


def test_model_and_stream_are_left_out_and_a_version_goes_in_for_those_who_carry_it_elsewhere() -> None:
    found = body(ask(say("user", "hi")), model=None, version="bedrock-2023-05-31", stream=False)
    assert found.keys() == {"anthropic_version", "max_tokens", "messages"}
    assert found["anthropic_version"] == "bedrock-2023-05-31"


def test_the_request_s_own_limit_counts() -> None:
    assert body(ask(say("user", "hi"), max_tokens=7))["max_tokens"] == 7


def test_system_prompt_last_tool_and_the_user_s_last_two_messages_are_marked_for_the_cache() -> None:
    messages = [say("user", "a"), say("assistant", "b"), say("user", "c"), say("assistant", "d"), say("user", "e", "f")]
    found = body(ask(*messages, system="s", tools=[READ, BASH]), caching=True)
    assert found["system"] == [{"type": "text", "text": "s", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in found["tools"]] == [None, MARK]
    marks = [[block.get("cache_control") for block in message["content"]] for message in found["messages"]]
    assert marks == [[None], [None], [MARK], [None], [None, MARK]]


def test_without_caching_nothing_is_marked() -> None:
    request = ask(say("user", "a"), system="s", tools=[READ])
    assert b"cache_control" not in AnthropicFormat(caching=False).body(request, model="m", max_tokens=1)
    assert b"cache_control" not in AnthropicFormat(compat={"prompt_caching": False}).body(
        request, model="m", max_tokens=1
    )


def test_what_was_sent_is_the_beginning_of_what_is_sent_next() -> None:
    """Else the provider's cache would be of no use."""
    form = AnthropicFormat(caching=False)
    messages = [say("user", "a"), say("assistant", "b"), say("user", "c")]
    first = form.body(ask(*messages, system="s", tools=[READ]), model="m", max_tokens=1)
    more = [*messages, say("assistant", "d"), say("user", "e")]
    second = form.body(ask(*more, system="s", tools=[READ]), model="m", max_tokens=1)
    assert second.startswith(first.removesuffix(b"]}"))


def test_marks_move_with_the_conversation_although_its_messages_are_written_once() -> None:
    form = AnthropicFormat()
    messages: list[Message] = []
    for number in range(4):
        messages += [say("user", f"q{number}")]
        found = json.loads(form.body(ask(*messages), model="m", max_tokens=1))["messages"]
        marked = [index for index, message in enumerate(found) if "cache_control" in message["content"][-1]]
        assert marked == [index for index in (2 * number - 2, 2 * number) if index >= 0]
        messages += [say("assistant", "a")]


def test_messages_of_one_side_are_one_message() -> None:
    found = body(
        ask(say("user", "a"), say("user", "b"), say("assistant", "c"), say("assistant", "d"), say("user", "e"))
    )
    assert [(message["role"], len(message["content"])) for message in found["messages"]] == [
        ("user", 2), ("assistant", 2), ("user", 1),
    ]  # fmt: skip


def test_the_user_speaks_first_and_last_and_never_says_nothing() -> None:
    assert [m["role"] for m in body(ask(say("assistant", "a")))["messages"]] == ["user", "assistant", "user"]
    assert body(ask())["messages"] == [{"role": "user", "content": [{"type": "text", "text": "."}]}]
    assert content("", "  \n") == [{"type": "text", "text": "."}]
    assert content("", "x") == [{"type": "text", "text": "x"}]


def test_calls_and_results_are_sent_in_pairs() -> None:
    call, other = ToolUse("1", "Read", {"a": 1}), ToolUse("2", "Bash", None, raw="{broken")
    results = (ToolResultBlock("1", "ok"), ToolResultBlock("2", "no", is_error=True))
    found = body(ask(say("user", "q"), say("assistant", call, other), say("user", *results)))["messages"]
    assert found[1]["content"] == [
        {"type": "tool_use", "id": "1", "name": "Read", "input": {"a": 1}},
        {"type": "tool_use", "id": "2", "name": "Bash", "input": {}},
    ]
    assert found[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "1", "content": "ok"},
        {"type": "tool_result", "tool_use_id": "2", "content": "no", "is_error": True},
    ]


def test_a_call_without_a_result_and_a_result_without_a_call_are_not_sent() -> None:
    call = ToolUse("1", "Read", {})
    for messages in (
        [say("user", "q"), say("assistant", "a", call), say("user", "r")],
        [say("user", "q"), say("assistant", "a"), say("user", ToolResultBlock("1", "x"), "r")],
    ):
        assert b"tool_" not in AnthropicFormat().body(ask(*messages), model="m", max_tokens=1)


def test_ids_and_names_of_other_providers_are_written_so_that_they_are_accepted() -> None:
    messages = [
        say("user", "q"), say("assistant", ToolUse("functions.Read:0", "a b", {})),
        say("user", ToolResultBlock("functions.Read:0", "x")),
    ]  # fmt: skip
    found = body(ask(*messages))["messages"]
    assert (found[1]["content"][0]["id"], found[1]["content"][0]["name"]) == ("functions_Read_0", "a_b")
    assert found[2]["content"][0]["tool_use_id"] == "functions_Read_0"


def test_thinking_goes_back_with_what_the_provider_sent_with_it() -> None:
    thoughts = (ThinkingBlock("t", "sig"), ThinkingBlock("", redacted="xyz"))
    found = body(ask(say("user", "q"), say("assistant", *thoughts, "a"), say("user", "r")))["messages"][1]["content"]
    assert found == [
        {"type": "thinking", "thinking": "t", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "a"},
    ]


def test_thinking_that_nobody_signed_or_that_ends_an_answer_is_not_sent() -> None:
    answer = say("assistant", ThinkingBlock("unsigned"), "a", ThinkingBlock("cut off", "sig"))
    found = body(ask(say("user", "q"), answer, say("user", "r")))["messages"]
    assert found[1]["content"] == [{"type": "text", "text": "a"}]
    only = body(ask(say("user", "q"), say("assistant", ThinkingBlock("t", "sig")), say("user", "r")))["messages"]
    assert [message["role"] for message in only] == ["user"]


def test_pictures_and_documents_are_blocks_of_their_own() -> None:
    found = content(Image("image/png", "AAAA"), Document("application/pdf", "BBBB", "a.pdf", "text"), "see")
    assert found[0] == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    source = {"type": "base64", "media_type": "application/pdf", "data": "BBBB"}
    assert found[1] == {"type": "document", "source": source, "title": "a.pdf"}


def test_a_document_of_another_kind_goes_as_its_text() -> None:
    (found,) = content(Document("application/msword", "BBBB", "a.doc", "words"))
    assert found["source"] == {"type": "text", "media_type": "text/plain", "data": "words"}


def test_a_result_may_have_pictures() -> None:
    result = ToolResultBlock("1", "see", images=(Image("image/png", "AAAA"),))
    messages = [say("user", "q"), say("assistant", ToolUse("1", "Read", {})), say("user", result)]
    found = body(ask(*messages))["messages"][2]["content"][0]["content"]
    assert [part["type"] for part in found] == ["text", "image"]


def test_a_model_that_cannot_see_is_told_so() -> None:
    (found,) = content(Image("image/png", "AAAA"), compat={"image_input": "unsupported"})
    assert "cannot see" in found["text"]


@pytest.mark.parametrize(
    ("budget", "max_tokens", "asked"), [(2000, 8000, 2000), (10, 8000, 1024), (9000, 8000, 7999), (2000, 1024, None)]
)
def test_thinking_is_asked_for_within_the_limits(budget: int, max_tokens: int, asked: int | None) -> None:
    found = body(ask(say("user", "q"), thinking_budget=budget), max_tokens=max_tokens).get("thinking")
    assert found == (asked and {"type": "enabled", "budget_tokens": asked})


def test_newer_models_are_asked_to_think_as_much_as_they_like() -> None:
    request = ask(say("user", "q"), thinking_budget=2000, effort="high")
    for given in ({"model": "claude-opus-4-7"}, {"model": None, "name": "us.anthropic.claude-opus-4-7-v1:0"}):
        found = body(request, **given)
        assert found["thinking"]["type"] == "adaptive"
        assert found["output_config"] == {"effort": "high"}
        assert "output_config" not in body(request, compat={"supports_effort": False}, **given)


def test_older_models_are_told_how_hard_to_try_if_the_profile_says_that_they_can() -> None:
    request = ask(say("user", "q"), effort="high")
    assert "output_config" not in body(request, model="claude-sonnet-4-20250514")
    told = body(request, model="claude-sonnet-4-20250514", compat={"supports_effort": True})
    assert told["output_config"] == {"effort": "high"}


def test_who_does_not_think_is_not_asked_to() -> None:
    found = body(ask(say("user", "q"), thinking_budget=2000), max_tokens=8000, compat={"supports_thinking": False})
    assert "thinking" not in found


@pytest.mark.parametrize(
    ("model", "adaptive"),
    [
        ("claude-sonnet-4-20250514", False),
        ("claude-sonnet-4@20250514", False),
        ("claude-opus-4-6", False),
        ("claude-3-5-sonnet-20241022", False),
        ("claude-opus-4-7", True),
        ("claude-opus-4.8", True),
        ("anthropic.claude-opus-5-20270101-v1:0", True),
        ("gpt-4o", False),
    ],
)
def test_who_decides_by_itself_how_much_it_thinks(model: str, adaptive: bool) -> None:
    assert is_adaptive(model) is adaptive


def test_a_profile_can_limit_describe_and_leave_out_tools() -> None:
    request = ask(say("user", "q"), tools=[READ, BASH])
    assert len(body(request, compat={"max_tool_count": 1})["tools"]) == 1
    assert "tools" not in body(request, compat={"emit_tools": False})
    assert body(request, compat={"tool_wire_shape": "openai_function"})["tools"][0]["type"] == "function"
    assert "title" not in body(request, compat={"sanitize_schema": True})["tools"][0]["input_schema"]
    assert "title" in body(request)["tools"][0]["input_schema"]


def test_a_profile_can_have_patterns_taken_out_of_texts() -> None:
    assert content("a<secret>b", compat={"strip_patterns": ["<secret>"]}) == [{"type": "text", "text": "ab"}]


def test_other_tools_and_another_system_prompt_are_noticed() -> None:
    form = AnthropicFormat(caching=False)
    asked = [
        json.loads(form.body(ask(say("user", "q"), system=system, tools=tools), model="m", max_tokens=1))
        for system, tools in (("a", [READ]), ("b", [READ]), ("b", [READ, BASH]), ("b", [BASH]), ("", []))
    ]
    assert [found.get("system", [{"text": None}])[0]["text"] for found in asked] == ["a", "b", "b", "b", None]
    names = [[tool["name"] for tool in found.get("tools", [])] for found in asked]
    assert names == [["Read"], ["Read"], ["Read", "Bash"], ["Bash"], []]


def test_half_characters_do_not_make_a_conversation_unusable() -> None:
    assert content("\ud800")[0]["text"] == "\ufffd"
