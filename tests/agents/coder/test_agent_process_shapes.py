"""Answers as providers really send them, cut where networks cut them, seen from the host's side of a real process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.models.aws_frames import answer, chunk, exception
from tests.support.agent_process import AgentProcess
from tests.support.coding import coding, says, serving
from tests.support.provider import Reply
from tests.support.provider_streams import (
    anthropic_error,
    anthropic_sse,
    anthropic_text,
    anthropic_tool_calls,
    openai_chunk,
    openai_sse,
    openai_text,
    openai_tool_calls,
)

pytestmark = pytest.mark.process

WORDS = "Grüße, 世界 \U0001f600!"


def text_of(lines: list[dict[str, Any]]) -> str:
    return "".join(line["text"] for line in lines if line["type"] == "text_delta")


def errors(lines: list[dict[str, Any]]) -> list[tuple[str | None, str, bool]]:
    return [
        (line["msg_id"], line["error"]["code"], line["error"]["retryable"]) for line in lines if line["type"] == "error"
    ]


@pytest.mark.parametrize("cut", [1, 3, 7])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_characters_and_lines_may_be_cut_anywhere(tmp_path: Path, cut: int, ends: bytes) -> None:
    stream = b": keep-alive\n\n" + openai_sse(openai_text(WORDS))
    with coding(tmp_path, Reply([stream.replace(b"\n", ends)], cut=cut)) as agent:
        lines = agent.ask("Greet.")
        assert text_of(lines) == WORDS
        # The usage comes after the end of the answer, with no choice in it.
        assert lines[-1]["usage"] == {"input_tokens": 10, "output_tokens": 5}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_arguments_of_several_calls_may_come_in_turns(tmp_path: Path, provider: str) -> None:
    wanted = [("Write", {"file_path": "a.txt", "content": "a\n"}), ("Write", {"file_path": "b.txt", "content": "b\n"})]
    stream = (
        openai_sse(openai_tool_calls(wanted, interleaved=True, finish="stop"))
        if provider == "openai"
        else anthropic_sse(anthropic_tool_calls(wanted))
    )
    with coding(tmp_path, Reply([stream], cut=5), says("Both."), provider=provider) as agent:
        agent.ask("Write two files.")
        assert [(tmp_path / name).read_text() for name in ("a.txt", "b.txt")] == ["a\n", "b\n"]
        assert ["Created" in result for result in agent.asked.results] == [True, True]


def test_an_answer_without_its_last_mark_is_an_answer(tmp_path: Path) -> None:
    with coding(tmp_path, Reply([openai_sse(openai_text("Done."), done=False)])) as agent:
        lines = agent.ask("Do it.")
        assert (text_of(lines), errors(lines)) == ("Done.", [])


def test_an_answer_without_any_end_is_an_error(tmp_path: Path) -> None:
    with coding(
        tmp_path, Reply([openai_sse([openai_chunk({"content": "Half"})], done=False)]), says("Again.")
    ) as agent:
        lines = agent.ask("Do it.")
        assert (text_of(lines), errors(lines)) == ("Half", [("m1", "provider_error", True)])
        assert text_of(agent.ask("Go on.", "m2")) == "Again."


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_error_within_a_good_answer_is_an_error(tmp_path: Path, provider: str) -> None:
    stream = (
        openai_sse([openai_chunk({"content": "Half"}), {"error": {"message": "Overloaded", "code": 529}}], done=False)
        if provider == "openai"
        else anthropic_sse([*anthropic_text("Half")[:-3], anthropic_error()])
    )
    # Byte by byte, so that the words are shown before the error is there.
    with coding(tmp_path, Reply([stream], cut=1), provider=provider) as agent:
        lines = agent.ask("Do it.")
        assert text_of(lines) == "Half"
        assert errors(lines) == [("m1", "provider_error", True)]
        assert "Overloaded" in next(line["error"]["message"] for line in lines if line["type"] == "error")


def test_one_json_text_is_read_although_a_stream_was_asked_for(tmp_path: Path) -> None:
    message = b'{"role":"assistant","content":"All at once."}'
    whole = b'{"id":"c","choices":[{"index":0,"message":%b,"finish_reason":"stop"}]}' % message
    with coding(tmp_path, Reply([whole], headers={"content-type": "application/json"})) as agent:
        assert text_of(agent.ask("Do it.")) == "All at once."


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_of_reasoning_alone_is_asked_for_once_more(tmp_path: Path, field: str) -> None:
    thought = Reply([openai_sse(openai_text("", reasoning="It is 42.", reasoning_field=field))])
    with coding(tmp_path, thought, says("42.")) as agent:
        lines = agent.ask("What is it?")
        assert "".join(line["text"] for line in lines if line["type"] == "thinking") == "It is 42."
        assert text_of(lines) == "42."


# Bedrock: another transport for the same events


BEDROCK = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a" * 40}
EVENT_STREAM = {"content-type": "application/vnd.amazon.eventstream"}


def test_bedrock_s_binary_stream_is_an_answer_like_any_other(tmp_path: Path) -> None:
    stream = b"".join(map(chunk, answer("Grüße ", "aus Irland.")))
    flags = ("--no-session", "--provider", "bedrock", "--model", "anthropic.claude-sonnet-5-5")
    with serving(Reply([stream], headers=EVENT_STREAM, cut=3)) as stub:
        with AgentProcess(*flags, "--base-url", stub.url, cwd=tmp_path, env={**os.environ, **BEDROCK}) as agent:
            agent.until("ready")
            agent.message("Greet.")
            lines = agent.until("stream_end")
            assert text_of(lines) == "Grüße aus Irland."
            assert lines[-1]["usage"] == {
                "input_tokens": 17, "output_tokens": 7, "cache_read_tokens": 5, "cache_write_tokens": 2,
            }  # fmt: skip
            asked = stub.requests[0]
            assert asked.target == "/model/anthropic.claude-sonnet-5-5/invoke-with-response-stream"
            assert asked.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
            assert agent.end() == 0


def test_a_failure_within_bedrock_s_stream_is_told(tmp_path: Path) -> None:
    events = list(answer("Half"))[:3]
    stream = b"".join(map(chunk, events)) + exception("throttlingException", {"message": "Slow down."})
    flags = ("--no-session", "--provider", "bedrock", "--model", "anthropic.claude-sonnet-5-5")
    with serving(Reply([stream], headers=EVENT_STREAM, cut=64)) as stub:
        with AgentProcess(*flags, "--base-url", stub.url, cwd=tmp_path, env={**os.environ, **BEDROCK}) as agent:
            agent.until("ready")
            agent.message("Greet.")
            lines = agent.until("stream_end")
            assert text_of(lines) == "Half"
            assert errors(lines) == [("m1", "provider_error", True)]
            agent.end()
