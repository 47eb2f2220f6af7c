"""The coding agent in trouble: providers that refuse, fail or break off, and tools that take long."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.coding import PROVIDERS, begins, calls, coding, of, says, text_of
from tests.support.provider import BREAK

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("provider", PROVIDERS)

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


def refusal(provider: str, kind: str, message: str) -> Any:
    """An error's body, as each provider writes it."""
    if provider == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return {"error": {"type": kind, "message": message, "param": None, "code": None}}


@both
def test_a_key_that_is_not_accepted_is_told_at_once(tmp_path: Path, provider: str) -> None:
    key = "sk-wrong-key-1234567890"
    with coding(tmp_path, provider=provider, env={KEYS[provider]: key}) as agent:
        agent.stub.error(401, refusal(provider, "authentication_error", f"invalid key: {key}"))
        agent.stub.play(says("Hello."))
        lines = agent.ask("Hello?")
        (error,) = of(lines, "error")
        assert (error["msg_id"], error["error"]["code"], error["error"]["retryable"]) == ("m1", "provider_error", False)
        assert KEYS[provider] in error["error"]["message"]
        assert key not in error["error"]["message"]
        assert len(agent.requests) == 1
        assert text_of(agent.ask("Now?", "m2")) == "Hello."


@both
def test_a_provider_that_asks_to_wait_is_waited_for(tmp_path: Path, provider: str) -> None:
    with coding(tmp_path, provider=provider) as agent:
        agent.stub.error(429, refusal(provider, "rate_limit_error", "Slow down."), retry_after="1")
        agent.stub.play(says("Hello."))
        began = time.monotonic()
        lines = agent.ask("Hello?")
        assert time.monotonic() - began >= 1
        (info,) = of(lines, "info")
        assert info["msg_id"] == "m1"
        assert "Slow down." in info["message"]
        assert of(lines, "error") == []
        assert text_of(lines) == "Hello."


@both
def test_an_answer_that_breaks_off_is_not_asked_for_again(tmp_path: Path, provider: str) -> None:
    with coding(tmp_path, begins("One two", BREAK), says("Three."), provider=provider) as agent:
        lines = agent.ask("Count.")
        assert text_of(lines) == "One two"
        (error,) = of(lines, "error")
        assert (error["msg_id"], error["error"]["code"], error["error"]["retryable"]) == ("m1", "provider_error", True)
        assert lines[-2:] == [error, lines[-1]]
        assert len(agent.requests) == 1
        assert text_of(agent.ask("Go on.", "m2")) == "Three."
        assert [said.text for said in agent.asked.said] == ["Count.", "One two", "Go on."]


@both
def test_an_answer_that_breaks_off_before_it_begins_is_asked_for_again(tmp_path: Path, provider: str) -> None:
    with coding(tmp_path, provider=provider) as agent:
        agent.stub.raw(BREAK, content_type="text/event-stream")
        agent.stub.play(says("Hello."))
        lines = agent.ask("Hello?")
        assert len(of(lines, "info")) == 1
        assert text_of(lines) == "Hello."


@both
def test_a_conversation_that_is_too_long_goes_on_without_its_beginning(tmp_path: Path, provider: str) -> None:
    (tmp_path / "a.txt").write_text("short\n")
    steps = [calls(("Bash", {"command": f"echo step {number}; seq 999"})) for number in range(3)]
    with coding(tmp_path, says("A long story. " * 99), *steps, provider=provider) as agent:
        agent.ask("Tell me a story.")
        agent.stub.error(400, refusal(provider, "invalid_request_error", "prompt is too long: 210000 > 200000"))
        agent.stub.play(says("Done."))
        lines = agent.ask("Count.", "m2")
        assert "no longer sent" in of(lines, "info")[-1]["message"]
        assert of(lines, "error") == []
        assert len(agent.requests[-1].body) < len(agent.requests[-2].body)
        # What the model was asked to do, and what it did last, are still there.
        assert "Count." in agent.asked.words
        assert "step 2" in agent.asked.results[-1]


def test_a_message_that_is_too_long_is_told_and_does_not_spoil_the_conversation(tmp_path: Path) -> None:
    too_long = refusal("openai", "invalid_request_error", "This model's maximum context length is 8 tokens.")
    with coding(tmp_path) as agent:
        agent.stub.error(400, too_long)
        (error,) = of(agent.ask("Word " * 1000), "error")
        assert (error["error"]["code"], error["error"]["retryable"]) == ("provider_error", False)
        assert len(agent.requests) == 1
        agent.stub.error(400, too_long)
        agent.stub.play(says("Hello."))
        assert text_of(agent.ask("Hello?", "m2")) == "Hello."
        assert "Word" not in "".join(said.text for said in agent.asked.said)


def test_a_model_that_repeats_a_failing_call_is_stopped(tmp_path: Path) -> None:
    with coding(tmp_path, *[calls(("Read", {"file_path": "none.txt"}))] * 3, says("Hello.")) as agent:
        lines = agent.ask("Read it.")
        (error,) = of(lines, "error")
        assert "`Read`" in error["error"]["message"]
        assert text_of(agent.ask("Hello?", "m2")) == "Hello."


@pytest.mark.slow
def test_a_long_command_shows_that_it_lives(tmp_path: Path) -> None:
    wait = "until [ -e go ]; do sleep 0.05; done; echo over"
    with coding(tmp_path, calls(("Bash", {"command": wait})), says("Done.")) as agent:
        agent.message("Wait for it.")
        agent.approve(agent.request())
        began = time.monotonic()
        info = agent.until("info")[-1]
        assert time.monotonic() - began < 10
        assert info["msg_id"] == "m1"
        (tmp_path / "go").touch()
        (result,) = of(agent.see_out(), "tool_result")
        assert "over" in result["output"]
