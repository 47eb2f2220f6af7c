"""The coding agent and a provider that is asked through OpenAI's Responses interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.coding import Coder, coding, of, says, serving, text_of
from tests.support.provider import Answerer, Reply, Request
from tests.support.responses_streams import ENCRYPTED, message_item, responses_of, responses_sse, responses_tool_calls

pytestmark = pytest.mark.process


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace whose host asks for that interface, as hosts made for aionrs do."""
    (tmp_path / ".aionrs.toml").write_text('[providers.openai.compat]\nopenai_api_mode = "responses"\n')
    return tmp_path


def refusing(body: Any, status: int = 400) -> Reply:
    return Reply([json.dumps(body).encode()], status=status, headers={"content-type": "application/json"})


def kinds(request: Request) -> list[str]:
    return [item.get("role") or item["type"] for item in request.json["input"]]


def test_reasoning_comes_back_to_its_model_with_the_call_that_followed_it_also_after_a_restart(workspace: Path) -> None:
    (workspace / "a.txt").write_text("the code is 4171\n")
    replies: list[Reply | Answerer] = [
        Reply([responses_sse(responses_tool_calls([("Read", {"file_path": "a.txt"})], reasoning="I read."))]),
        says("It is 4171."),
        says("Still 4171.", thinking="Again."),
        says("Yes."),
    ]
    flags = ("--model", "gpt-6", "--session-id", "r1")
    with serving(*replies) as stub:
        with Coder(stub, workspace, *flags) as agent:
            lines = agent.ask("Which code?")
            assert [line["text"] for line in of(lines, "thinking")] == ["I", " read."]
            assert text_of(lines) == "It is 4171."
            first, second = stub.requests
            assert [first.target, second.target] == ["/v1/responses"] * 2
            assert (first.json["stream"], first.json["store"]) == (True, False)
            assert kinds(second) == ["user", "reasoning", "function_call", "function_call_output"]
            item = second.json["input"][1]
            assert (item["id"], item["encrypted_content"]) == ("rs_0", ENCRYPTED)
            assert agent.asked.results == ["     1\tthe code is 4171"]
        with Coder(stub, workspace, "--model", "gpt-6", "--resume", "r1") as agent:
            agent.ask("Sure?")
            resumed = ["user", "reasoning", "function_call", "function_call_output", "assistant", "user"]
            assert kinds(stub.requests[-1]) == resumed
            agent.send(type="set_config", model="gpt-6-mini")
            agent.ask("Really?", "m2")
            # What one model thought, another cannot read.
            assert "reasoning" not in kinds(stub.requests[-1])


def test_reasoning_that_its_provider_cannot_read_any_more_is_left_out(workspace: Path) -> None:
    """Another account's, or too old: the conversation would be refused for ever."""
    refusal = {"error": {"code": "invalid_encrypted_content", "message": "It could not be verified."}}
    replies = says("One.", thinking="Hm."), refusing(refusal), says("Two."), says("Three.")
    with coding(workspace, *replies, flags=("--no-session", "--model", "gpt-6")) as agent:
        agent.ask("First?")
        lines = agent.ask("Second?", "m2")
        assert text_of(lines) == "Two."
        assert any("earlier reasoning was left out" in line["message"] for line in of(lines, "info"))
        agent.ask("Third?", "m3")
        sent = [kinds(request) for request in agent.stub.requests]
    before = ["user", "reasoning", "assistant", "user"]
    assert sent[1:] == [before, ["user", "assistant", "user"], ["user", "assistant", "user", "assistant", "user"]]


def test_an_answer_that_is_incomplete_is_continued_and_one_that_failed_is_told(workspace: Path) -> None:
    cut = responses_of(message_item("One,"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    failed = responses_of(status="failed", error={"code": "invalid_prompt", "message": "Not this."})
    replies = (Reply([responses_sse(cut)]), says("two."), Reply([responses_sse(failed)]))
    with coding(workspace, *replies) as agent:
        lines = agent.ask("Count.")
        assert text_of(lines) == "One,two."
        assert lines[-1]["usage"]["input_tokens"] == 20
        lines = agent.ask("More.", "m2")
        (error,) = of(lines, "error")
        assert "Not this." in error["error"]["message"]
