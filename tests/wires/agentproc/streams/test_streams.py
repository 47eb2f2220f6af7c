"""Every stream, read from what its program prints: without a process."""

from __future__ import annotations

import json

import pytest

from tests.support import fake_cli_plays as plays
from tests.support.fake_cli import DEAD, DIALOGUES, FAKES, NOISE, PLAIN, dead_words, run_lines
from tests.support.fake_cli_plays import LOOKING, NEW, REFUSED, THOUGHT, answer_to
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc import hub, streams
from trunkline.wires.agentproc.messages import Error, Ignored, Partial, Result, Said, SessionId
from trunkline.wires.agentproc.streams import jsonlines

#: Those whose text comes in pieces.
IN_PIECES = ["claude-code", "codebuddy", "cursor", "gemini-cli", "goose", "grok-build", "pi", "qwen-code", "recursive"]
#: Those that show their reasoning.
THINKING = [name for name in FAKES if name not in (*PLAIN, "gemini-cli", "kimi", "recursive")]
#: Those that tell of a refusal on standard output; the others on standard error only.
TELLING = [name for name in FAKES if name not in ("agy", "cursor", "deepseek", "kimi", "recursive")]


def read(name: str, data: bytes, size: int | None = None) -> list[Said]:
    stream = DIALOGUES.get(name) or hub.load(name).stream
    assert stream is not None
    reader = streams.make(stream)
    size = size or max(len(data), 1)
    said = [each for start in range(0, len(data), size) for each in reader.feed(data[start : start + size])]
    return said + reader.finish()


def played(name: str, message: str, size: int | None = None) -> list[Said]:
    return read(name, run_lines(name, message), size)


def shown(said: list[Said]) -> str:
    return "".join(each.text for each in said if isinstance(each, Partial) and each.role == "output")


def of(kind: type[Said], said: list[Said]) -> list[Said]:
    return [each for each in said if isinstance(each, kind)]


@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize("name", FAKES)
def test_an_answer_is_shown_once_and_is_whole_at_the_end(name: str, size: int | None) -> None:
    said = played(name, "grüß dich", size)
    assert shown(said) == answer_to("grüß dich")
    (result,) = of(Result, said)
    assert isinstance(result, Result)
    assert result.text == answer_to("grüß dich")
    assert said[-1] is result
    assert not of(Error, said)


@pytest.mark.parametrize("name", FAKES)
def test_passages_around_a_tool_are_apart_and_none_is_lost_or_doubled(name: str) -> None:
    said = played(name, "tool")
    expected = f"{LOOKING}\n\n{answer_to('tool')}"
    assert shown(said) == expected
    assert [each.text for each in said if isinstance(each, Result)] == [expected]


@pytest.mark.parametrize("name", [name for name in FAKES if name in NEW])
def test_the_session_is_named_once(name: str) -> None:
    assert of(SessionId, played(name, "hi")) == [SessionId(NEW[name])]


@pytest.mark.parametrize("name", TELLING)
def test_a_refusal_becomes_an_error_for_people_and_nothing_is_shown(name: str) -> None:
    said = played(name, "fail")
    (error,) = of(Error, said)
    assert isinstance(error, Error)
    assert REFUSED in error.message
    assert "{" not in error.message
    assert shown(said) == ""
    assert not of(Result, said)


@pytest.mark.parametrize("name", [name for name in FAKES if name not in PLAIN])
def test_lines_that_are_none_of_the_stream_are_left_out(name: str) -> None:
    said = played(name, "noise")
    assert shown(said) == answer_to("noise")
    assert any(NOISE in each.why for each in said if isinstance(each, Ignored))


@pytest.mark.parametrize("name", THINKING)
def test_reasoning_is_told_apart_from_the_answer_and_comes_once(name: str) -> None:
    thoughts = [each.text for each in played(name, "hi") if isinstance(each, Partial) and each.role == "thinking"]
    assert thoughts == [THOUGHT]


@pytest.mark.parametrize("name", IN_PIECES)
def test_pieces_are_passed_on_as_they_come(name: str) -> None:
    pieces = [each.text for each in played(name, "hi") if isinstance(each, Partial) and each.role == "output"]
    assert pieces == list(plays.halves(answer_to("hi")))


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "goose", "opencode", "pi", "qwen-code"])
def test_what_an_answer_took_is_counted(name: str) -> None:
    (result,) = of(Result, played(name, "hi"))
    assert isinstance(result, Result)
    assert result.usage
    assert any(count in result.usage for count in ("input_tokens", "total_tokens"))


@pytest.mark.parametrize("name", FAKES)
def test_hostile_output_neither_raises_nor_says_anything(name: str) -> None:
    values: tuple[object, ...] = (None, 7, "x", [], {}, [None, 3], {"type": 5, "content": 9, "message": 1})
    keys = ("type", "role", "message", "item", "part", "event", "error", "session_id", "content")
    kinds = ("result", "assistant", "message", "message_end", "item.completed", "text", "error", "stream_event", "meta")
    lines = [json.dumps({**dict.fromkeys(keys, value), "type": kind}) for value in values for kind in kinds]
    data = "\n".join([*lines, "[]", "null", '{"type":', "\ud800".encode("utf-8", "replace").decode()]).encode()
    said = read(name, data + b"\n\xff\xfe\x00\n" + b"[" * 100_000)
    assert all(isinstance(each, Said) for each in said)


@pytest.mark.parametrize("name", [name for name in FAKES if name != "aider"])
def test_a_run_that_says_nothing_has_no_result(name: str) -> None:
    assert read(name, b"") == []


def test_a_session_id_that_would_be_an_option_is_left_out() -> None:
    line = json.dumps({"type": "thread.started", "thread_id": "--dangerously-bypass"}).encode()
    said = read("codex", line)
    assert not of(SessionId, said)
    assert "would be an option" in str(said)


def test_an_answer_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "MAX_ANSWER", 100)
    line = json.dumps({"type": "message", "role": "assistant", "content": "x" * 30, "delta": True}).encode() + b"\n"
    said = read("gemini-cli", line * 10)
    assert shown(said) == "x" * 300
    assert [len(each.text) for each in said if isinstance(each, Result)] == [100]


def test_pieces_without_end_do_not_fill_the_memory_and_are_not_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "MAX_ANSWER", 100)
    piece = {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": "x" * 30}}}
    whole = {"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 300}]}}
    reader = streams.make("claude")
    said = reader.feed((json.dumps(piece).encode() + b"\n") * 10)
    assert isinstance(reader, jsonlines.JsonLines)
    assert sum(map(len, reader._pieces)) <= 120
    said += reader.feed(json.dumps(whole).encode() + b"\n")
    assert shown(said) == "x" * 300


def test_a_whole_message_that_goes_on_where_the_pieces_ended_is_completed() -> None:
    events = [
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": "Hello"}}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello there"}]}},
        {"type": "result", "is_error": False, "result": "Hello there"},
    ]
    assert shown(read("claude-code", "\n".join(map(json.dumps, events)).encode())) == "Hello there"


def test_claude_without_any_message_answers_with_its_result() -> None:
    line = json.dumps({"type": "result", "is_error": False, "result": "only here", "session_id": "s"}).encode()
    said = read("claude-code", line)
    assert shown(said) == "only here"


def test_an_error_that_codex_gets_over_does_not_count_and_one_that_ends_the_output_does() -> None:
    retry = json.dumps({"type": "error", "message": "stream lost"}).encode() + b"\n"
    done = json.dumps({"type": "turn.completed", "usage": {}}).encode()
    assert not of(Error, read("codex", retry + done))
    assert of(Error, read("codex", retry)) == [Error("stream lost")]


def test_cursor_without_partial_output_repeats_nothing_either() -> None:
    texts = ["One.", "Two."]
    events = [{"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}} for text in texts]
    lines = [json.dumps(event) for event in events]
    lines.append(json.dumps({"type": "result", "is_error": False, "result": "One.Two."}))
    assert shown(read("cursor", "\n".join(lines).encode())) == "One.\n\nTwo."


def test_the_older_kimi_is_read_too() -> None:
    parts = [{"type": "think", "think": "hm"}, {"type": "text", "text": "Hello"}]
    said = read("kimi", json.dumps({"role": "assistant", "content": parts}).encode())
    assert said == [Partial("hm", "thinking"), Partial("Hello"), Result("Hello")]


def test_plain_text_loses_its_colours_and_keeps_its_lines() -> None:
    reader = streams.make("text")
    said = reader.feed(b"\n\x1b[1mone\x1b[0m\r\n\n  two\x1b]0;title\x07\n10%\r20%\rdone\n\n")
    said += reader.finish()
    assert shown(said) == "one\n\n  two\ndone"
    assert said[-1] == Result("one\n\n  two\ndone")


def test_an_unknown_stream_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"There is no stream `morse`\. Use one of aider, claude"):
        streams.make("morse")
    assert list(streams.names()) == sorted(streams.names())


@pytest.mark.parametrize("name", [name for name in FAKES if dead_words(name, DEAD)])
def test_a_dead_session_is_recognised_by_the_words_of_its_program(name: str) -> None:
    assert streams.is_dead_session(f"The agent failed (exit code 1).\n\n{dead_words(name, DEAD)}")


@pytest.mark.parametrize(
    "error",
    [
        "",
        "The agent failed (exit code 1).",
        "Your session token has expired. Log in again.",
        "The file session.py was not found.",
        "401: invalid token, no such session key",
        "404 model not found",
        "I looked, and the session not found error comes from login.py.",
    ],
)
def test_other_failures_are_no_dead_sessions(error: str) -> None:
    assert not streams.is_dead_session(error)


def test_our_own_agents_dead_sessions_are_recognised() -> None:
    assert streams.is_dead_session("Session not found: `abc` is not known here. Begin a new conversation.")


def test_what_aider_says_before_it_begins_is_told_only_if_it_never_does() -> None:
    assert shown(read("aider", b"No API keys were provided.\n")) == "No API keys were provided."
    assert shown(read("aider", b"Odd warning\nAider v1\nRepo-map: none\n\nHello.\n", 3)) == "Hello."
    long = b"x" * 70_000
    assert (
        shown(read("aider", long + b"\nRepo-map: none\nHello.\n", 4096)) == f"{long.decode()}\nRepo-map: none\nHello."
    )


def test_an_error_that_aider_gets_over_is_none() -> None:
    lines = b"\nRepo-map: none\nlitellm.RateLimitError: slow down\nThe provider is busy.\n"
    assert of(Error, read("aider", lines)) == [Error("RateLimitError: slow down\nThe provider is busy.")]
    assert shown(read("aider", lines + b"Retrying in 0.2 seconds...\nHello.\n")) == "Hello."
