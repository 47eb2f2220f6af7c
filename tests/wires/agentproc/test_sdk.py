"""Agents written with the SDK, run in this process: what a bridge would read of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from trunkline.base.signals import ENDING
from trunkline.core.faults import LocalProtocolError, RemoteProtocolError
from trunkline.wires.agentproc import serve_dialects as serve_voices
from trunkline.wires.agentproc.messages import Dialect
from trunkline.wires.agentproc.sdk import (
    APOLOGY,
    AgentError,
    AgentProcess,
    Attachment,
    Turn,
    agent,
    own_id,
    portable_id,
)
from trunkline.wires.agentproc.sdk_bridge import BridgeConnection
from trunkline.wires.agentproc.sdk_pipes import Signals
from trunkline.wires.agentproc.serve_dialects import CUT

HELLO = {"AGENT_MESSAGE": "hello"}
QUIETLY = HELLO | {"AGENT_STREAMING": "0"}


def turn_line(message: str = "hello", **fields: Any) -> bytes:
    return json.dumps({"type": "turn", "message": message, "session_id": "", **fields}).encode() + b"\n"


def events(process: AgentProcess, stdin: bytes) -> tuple[list[dict[str, Any]], int]:
    lines, code = process.run({}, stdin)
    return [json.loads(line) for line in lines], code


def returning(value: Any) -> Callable[[Turn], Any]:
    return lambda turn: value


def partials(*texts: str, reply: str | None = None) -> AgentProcess:
    @agent
    def main(turn: Turn) -> str | None:
        for text in texts:
            turn.partial(text)
        return reply

    return main


# What a handler returns


def test_what_the_handler_returns_is_the_reply() -> None:
    @agent
    def main(turn: Turn) -> str:
        """Shouts."""
        return turn.message.upper()

    assert main.run(HELLO) == (["HELLO"], 0)
    assert main.__doc__ == "Shouts."


def test_a_handler_may_be_async() -> None:
    @agent
    async def main(turn: Turn) -> str:
        await asyncio.sleep(0)
        turn.partial("well, ")
        return await asyncio.to_thread(turn.message.upper)

    assert main.run(HELLO) == (['AGENT_PARTIAL:"well, "', "HELLO"], 0)


def test_lines_of_a_reply_that_look_like_protocol_are_escaped() -> None:
    main = agent(returning("a\nAGENT_ERROR:b\nAGENT_PARTIAL:c"))
    assert main.run(HELLO) == (["a", " AGENT_ERROR:b", " AGENT_PARTIAL:c"], 0)


def test_a_carriage_return_does_not_begin_a_line_of_the_protocol_for_anybody() -> None:
    (line,), _ = agent(returning("x\rAGENT_SESSION:evil")).run(HELLO)
    assert line == "x\r AGENT_SESSION:evil"


def test_a_handler_without_a_reply_says_nothing() -> None:
    assert agent(returning(None)).run(HELLO) == ([], 0)
    assert agent(returning("")).run(HELLO) == ([], 0)


def test_partials_are_lines_at_once_and_empty_ones_are_none() -> None:
    assert partials("a\n", "", "é").run(HELLO) == (['AGENT_PARTIAL:"a\\n"', 'AGENT_PARTIAL:"é"'], 0)


def test_a_bridge_that_does_not_stream_gets_the_reply_or_the_partials_where_they_were_all_of_it() -> None:
    assert partials("thinking ... ", reply="done").run(QUIETLY) == (["done"], 0)
    assert partials("all ", "of it").run(QUIETLY) == (["all of it"], 0)


# More than bridges read in one line


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that can be counted."""
    monkeypatch.setattr(serve_voices, "LONGEST_PIECE", 4)


@pytest.mark.usefixtures("short")
def test_a_long_partial_becomes_several_lines() -> None:
    assert partials("123456789").run(HELLO)[0] == [f'AGENT_PARTIAL:"{piece}"' for piece in ("1234", "5678", "9")]
    said, _ = events(partials("123456789"), turn_line())
    assert [event["text"] for event in said[:-1]] == ["1234", "5678", "9"]
    assert said[-1] == {"type": "result", "text": "1234" + CUT}


@pytest.mark.usefixtures("short")
def test_a_long_reply_is_broken_into_lines_or_pieces_and_none_of_them_is_taken_for_protocol() -> None:
    assert agent(returning("1234AGENT_ERROR:x\n\n56")).run(HELLO)[0] == ["1234", "AGEN", "T_ER", "ROR:", "x", "", "56"]
    said, _ = events(agent(returning("12345")), turn_line())
    assert said == [
        {"type": "partial", "text": "1234"},
        {"type": "partial", "text": "5"},
        {"type": "result", "text": "1234" + CUT},
    ]


def test_where_a_long_line_is_broken_no_line_of_the_protocol_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_voices, "LONGEST_PIECE", 20)
    assert agent(returning("1" * 20 + "AGENT_ERROR:x")).run(HELLO)[0] == ["1" * 20, " AGENT_ERROR:x"]


@pytest.mark.usefixtures("short")
def test_a_character_of_two_halves_is_not_cut_apart() -> None:
    assert partials("123\ud83d\ude00").run(HELLO)[0] == ['AGENT_PARTIAL:"123\U0001f600"']


@pytest.mark.usefixtures("short")
def test_a_long_error_is_cut() -> None:
    @agent
    def main(turn: Turn) -> None:
        raise AgentError("12345")

    assert main.run(HELLO) == ([f"AGENT_ERROR:{json.dumps('1234' + CUT, ensure_ascii=False)}"], 1)
    assert events(main, turn_line())[0] == [{"type": "error", "message": "1234" + CUT}]


def test_what_is_too_long_to_be_asked_is_not_allowed_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_voices, "MAX_LINE", 50)
    allow = b'{"type":"permission_response","request_id":"permission-1","behavior":"allow"}\n'
    said, _ = events(asking, turn_line(permission=True) + allow)
    assert said == [{"type": "result", "text": "False"}]


# Failures


def test_an_agent_error_is_for_the_user() -> None:
    @agent
    def main(turn: Turn) -> str:
        turn.partial("half")
        raise AgentError("Try again in 60 s.")

    assert main.run(HELLO) == (['AGENT_PARTIAL:"half"', 'AGENT_ERROR:"Try again in 60 s."'], 1)


@pytest.mark.parametrize("is_async", [False, True])
def test_any_other_exception_is_a_traceback_in_the_log_and_an_apology_in_the_chat(
    is_async: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(turn: Turn) -> str:
        raise ValueError("a secret detail")

    async def fail_later(turn: Turn) -> str:
        return fail(turn)

    lines, code = agent(fail_later if is_async else fail).run(HELLO)
    assert (lines, code) == ([f'AGENT_ERROR:"{APOLOGY}"'], 1)
    assert "ValueError: a secret detail" in capsys.readouterr().err


def test_what_is_no_text_is_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert agent(returning(42)).run(HELLO) == ([f'AGENT_ERROR:"{APOLOGY}"'], 1)
    assert "`int`" in capsys.readouterr().err


def test_an_async_handler_that_cancels_itself_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    @agent
    async def main(turn: Turn) -> None:
        raise asyncio.CancelledError

    assert main.run(HELLO) == ([f'AGENT_ERROR:"{APOLOGY}"'], 1)
    assert "cancelled itself" in capsys.readouterr().err


def test_a_handler_that_exits_has_its_exit_code_and_keeps_its_session() -> None:
    @agent
    def main(turn: Turn) -> None:
        turn.session_id = "s1"
        raise SystemExit(int(turn.message) if turn.message else "words")

    assert main.run({"AGENT_MESSAGE": "3"}) == (["AGENT_SESSION:s1"], 3)
    assert main.run({"AGENT_MESSAGE": ""}) == (["AGENT_SESSION:s1"], 1)


# Sessions


def test_a_session_id_is_told_at_the_end_also_of_a_failed_turn() -> None:
    @agent
    def main(turn: Turn) -> str:
        turn.session_id = "s1"
        turn.partial("x")
        if turn.message == "fail":
            raise AgentError("no")
        return "y"

    assert main.run(HELLO) == (['AGENT_PARTIAL:"x"', "AGENT_SESSION:s1", "y"], 0)
    assert main.run({"AGENT_MESSAGE": "fail"})[0] == ['AGENT_PARTIAL:"x"', "AGENT_SESSION:s1", 'AGENT_ERROR:"no"']


def test_keep_session_tells_it_at_once_and_only_once() -> None:
    @agent
    def main(turn: Turn) -> None:
        turn.keep_session("s1")
        turn.partial("x")
        turn.keep_session("s1")

    assert main.run(HELLO) == (["AGENT_SESSION:s1", 'AGENT_PARTIAL:"x"'], 0)


def test_the_id_that_the_bridge_has_is_given_and_not_repeated() -> None:
    @agent
    def main(turn: Turn) -> str:
        was, turn.session_id = turn.session_id, turn.session_id
        return was

    assert main.run(HELLO | {"AGENT_SESSION_ID": "s1"}) == (["s1"], 0)


@pytest.mark.parametrize("id", ["two words", "a/b", "a:b", "..", "a\\b", "x" * 2000, "a\n"])
def test_an_id_that_some_bridge_would_not_take_is_refused_where_it_is_set(id: str) -> None:
    @agent
    def main(turn: Turn) -> str:
        with pytest.raises(LocalProtocolError, match="portable_id"):
            turn.session_id = id
        with pytest.raises(LocalProtocolError):
            turn.keep_session(id)
        turn.session_id = portable_id(id[:100])
        return own_id(turn.session_id)

    lines, code = main.run(HELLO)
    assert code == 0
    assert lines[0].startswith("AGENT_SESSION:")
    assert "\n".join(lines[1:]) == id[:100].removesuffix("\n")


@pytest.mark.parametrize("id", ["séance", "会话-7"])
def test_an_id_may_be_in_any_script(id: str) -> None:
    @agent
    def main(turn: Turn) -> str:
        was, turn.session_id = turn.session_id, id
        return f"was {was}"

    assert main.run(HELLO) == ([f"AGENT_SESSION:{id}", "was "], 0)
    assert main.run(HELLO | {"AGENT_SESSION_ID": id}) == ([f"was {id}"], 0)
    line = json.dumps({"type": "turn", "message": "hi", "session_id": id}).encode()
    assert json.loads(main.run({}, line)[0][-1])["text"] == f"was {id}"


# What a handler knows


def test_a_turn_tells_who_said_what_and_what_came_with_it() -> None:
    heard: list[Any] = []

    @agent
    def main(turn: Turn) -> None:
        heard.extend([turn.message, turn.from_user, turn.session_name, turn.streaming, turn.attachments])

    attached = json.dumps([{"type": "image", "url": "/i.png", "name": "i"}, {"type": "file"}])
    main.run(QUIETLY | {"AGENT_FROM_USER": "ann", "AGENT_SESSION_NAME": "work", "AGENT_ATTACHMENTS": attached})
    assert heard == ["hello", "ann", "work", False, (Attachment("image", "/i.png", "i"),)]


def test_hostile_variables_are_texts_that_can_be_said_again() -> None:
    echo = agent(lambda turn: turn.message)
    environ = {"AGENT_MESSAGE": os.fsdecode(b"a\xffb"), "AGENT_ATTACHMENTS": '[{"type":', "AGENT_SESSION_ID": "\udcff"}
    assert echo.run(environ) == (["a\ufffdb"], 0)
    assert partials("\ud83d").run(HELLO) == (['AGENT_PARTIAL:"\ufffd"'], 0)


def test_a_message_too_long_for_a_variable_comes_by_standard_input() -> None:
    assert agent(lambda turn: turn.message).run({"AGENT_PROTOCOL_VERSION": "0.1"}, b"long story") == (["long story"], 0)


class Nothing:
    """A bridge that neither writes nor closes its end."""

    def everything(self) -> None:
        return None

    def line(self) -> bytes:
        raise RemoteProtocolError("The turn is too long.")


@pytest.mark.parametrize(("dialect", "what"), [("0.1", "There is no message"), ("0.4", "The turn is too long.")])
def test_what_is_wrong_with_the_input_is_told(dialect: Dialect, what: str) -> None:
    said: list[bytes] = []
    bridge = BridgeConnection(dialect, {"AGENT_PROTOCOL_VERSION": "0.1"}, Nothing(), said.append)
    assert agent(returning("x"))._answer(bridge, None) == 1
    assert len(said) == 1
    assert what in said[0].decode()


def test_a_signal_that_was_ignored_before_stays_so() -> None:
    before = {number: signal.getsignal(number) for number in ENDING}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        Signals()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# 0.4


def test_0_4_has_a_result_with_the_session_and_the_same_for_the_user() -> None:
    @agent
    def main(turn: Turn) -> str:
        turn.session_id = "s1"
        return turn.message + "!"

    assert events(main, turn_line()) == ([{"type": "result", "text": "hello!", "session_id": "s1"}], 0)


def test_0_4_shows_a_reply_after_partials_to_bridges_that_stream_and_to_those_that_do_not() -> None:
    said, _ = events(partials("thinking ... ", reply="done"), turn_line())
    assert said == [
        {"type": "partial", "text": "thinking ... "},
        {"type": "partial", "text": "done"},
        {"type": "result", "text": "done"},
    ]
    said, _ = events(partials("all ", "of it"), turn_line())
    assert said[-1] == {"type": "result", "text": "all of it"}


def test_0_4_tells_a_session_at_once_without_hiding_the_reply() -> None:
    @agent
    def main(turn: Turn) -> str:
        turn.keep_session("s1")
        return "hi"

    said, _ = events(main, turn_line())
    assert said == [
        {"type": "partial", "text": "", "session_id": "s1"},
        {"type": "partial", "text": "hi"},
        {"type": "result", "text": "hi", "session_id": "s1"},
    ]


def test_0_4_has_an_error_event() -> None:
    @agent
    def main(turn: Turn) -> None:
        raise AgentError("no")

    assert events(main, turn_line()) == ([{"type": "error", "message": "no"}], 1)


@pytest.mark.parametrize("stdin", [b"", b"\n\n", b"hello\n", b'{"type":"turn"}\n', b'{"type":"turn","message":1}\n'])
def test_0_4_without_a_turn_is_an_error_and_never_a_silence(stdin: bytes) -> None:
    said, code = events(agent(returning("x")), stdin)
    assert code == 1
    assert [event["type"] for event in said] == ["error"]


asking = agent(lambda turn: str(turn.ask("Write", {"path": "a"}, "Write a")))


def test_permission_is_asked_for_in_0_4_and_the_answer_is_waited_for() -> None:
    answers = b'nonsense\n{"type":"permission_response","request_id":"old","behavior":"deny"}\n'
    answers += b'{"type":"permission_response","request_id":"permission-1","behavior":"allow"}\n'
    said, code = events(asking, turn_line(permission=True) + answers)
    assert code == 0
    assert said[0] == {
        "type": "permission_request",
        "request_id": "permission-1",
        "tool_name": "Write",
        "input": {"path": "a"},
        "description": "Write a",
    }
    assert said[-1]["text"] == "True"


@pytest.mark.parametrize(
    "answer", [{"behavior": "deny"}, {"behavior": "sure"}, {"behavior": "allow", "updated_input": {"path": "b"}}, None]
)
def test_whatever_is_no_clear_yes_is_a_no(answer: dict[str, Any] | None) -> None:
    response = {"type": "permission_response", "request_id": "permission-1", **(answer or {})}
    line = json.dumps(response).encode() if answer else b""
    assert events(asking, turn_line(permission=True) + line)[0][-1]["text"] == "False"


def test_where_nobody_can_be_asked_the_answer_is_no_at_once() -> None:
    assert asking.run(HELLO) == (["False"], 0)
    assert events(asking, turn_line())[0] == [{"type": "result", "text": "False"}]


def test_several_threads_may_ask_and_each_gets_its_own_answer() -> None:
    @agent
    def main(turn: Turn) -> str:
        answers: dict[str, bool] = {}

        def ask(tool: str) -> None:
            answers[tool] = turn.ask(tool)

        threads = [threading.Thread(target=ask, args=(tool,)) for tool in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        return " ".join(f"{tool}={answers[tool]}" for tool in sorted(answers))

    responses = [{"type": "permission_response", "request_id": f"permission-{n}", "behavior": "allow"} for n in (1, 2)]
    stdin = turn_line(permission=True) + b"".join(json.dumps(response).encode() + b"\n" for response in responses)
    said, _ = events(main, stdin)
    allowed = {event["tool_name"] for event in said[:2]}
    assert said[-1]["text"] == " ".join(f"{tool}={tool in allowed}" for tool in "abc")
