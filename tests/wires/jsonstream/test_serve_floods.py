"""A host that sends far more than anybody needs: named limits, order kept, and the next command works."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.served import served
from tests.support.unmeasured import unmeasured
from trunkline.core import turns
from trunkline.core.events import TurnEnded
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.jsonstream import codec, serve

pytestmark = pytest.mark.virtual_time

#: What the protocol promises for a stop is 1 s, and for a signal 2 s: on a machine that does nothing else. So it is the
#: processor's time that is limited here; that the agent does not just wait is what its host's patience is for.
PROMPT_SECONDS = 1.0
EXIT_SECONDS = 2.0

MiB = 1024 * 1024
PIPE_HOLDS = 64 * 1024


async def test_messages_beyond_the_queue_are_refused_in_their_place_and_not_inside_the_running_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "MAX_QUEUED", 2)
    async with served() as it:
        it.host.take()
        for number in range(5):
            it.host.message(f"m{number}")
        await it.settle()
        assert [line["msg_id"] for line in it.host.take()] == ["m0"]
        for _ in range(3):
            it.fake.say(TurnEnded("success"))
            await it.settle()
        lines = it.host.take()
        ends = [(line["type"], line["msg_id"]) for line in lines]
        assert ends == [
            ("stream_end", "m0"),
            ("stream_start", "m1"),
            ("stream_end", "m1"),
            ("stream_start", "m2"),
            ("stream_end", "m2"),
            ("stream_start", "m3"),
            ("error", "m3"),
            ("stream_end", "m3"),
            ("stream_start", "m4"),
            ("error", "m4"),
            ("stream_end", "m4"),
        ]
        it.host.message("m5")
        await it.settle()
        assert it.fake.heard[-1].id == "m5"


async def test_a_message_that_finds_no_place_to_wait_is_an_error_of_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 1)
    async with served() as it:
        it.host.take()
        for number in range(3):
            it.host.message(f"m{number}")
        await it.settle()
        lines = it.host.take()
        assert [(line["type"], line["msg_id"]) for line in lines] == [("stream_start", "m0"), ("error", None)]
        assert "not taken" in lines[1]["error"]["message"]
        it.host.send(type="stop")
        await asyncio.sleep(2)
        assert [line["msg_id"] for line in it.host.take() if line["type"] == "stream_end"] == ["m0", "m1"]


async def test_changes_that_outrun_the_agent_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MAX_CHANGES", 2)
    async with served() as it:
        it.host.take()
        for number in range(3):
            it.host.send(type="init_history", text=str(number))
        await it.settle()
        assert ["not taken" in line["error"]["message"] for line in it.host.take()] == [True]
        it.host.send(type="init_history", text="later")
        await it.settle()
        assert it.host.take() == []


@pytest.mark.parametrize("limit", ["MAX_HISTORY", "MAX_HISTORY_CHARS"])
async def test_history_has_a_limit(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(serve, limit, 2)
    async with served() as it:
        it.host.take()
        for text in "abca":
            it.host.send(type="init_history", text=text)
            await it.settle()
        assert [line["error"]["code"] for line in it.host.take()] == ["protocol_error"]


def message(text: bytes, msg_id: bytes = b"m") -> bytes:
    return b'{"type":"message","msg_id":"%s","input":"%s"}' % (msg_id, text)


#: Lines within the limit of a line that are made to be dear.
DEAR_LINES = {
    "one word": message(b"a" * 15 * MiB),
    "lone surrogates": message(b"\\ud800" * (15 * MiB // 6)),
    "words": message(b"a " * (7 * MiB)),
    "commas": message(b"a,[{" * (3 * MiB)),
    "quotes": message(b'\\"' * (7 * MiB)),
    "files": b'{"type":"message","msg_id":"m","input":"x","files":[' + b'"a",' * (3 * MiB) + b'"a"]}',
    "lists": b'{"type":"message","msg_id":"m","input":"x","z":[' + b"[]," * (4 * MiB) + b"[]]}",
    "empty names": b'{"type":"message","msg_id":"m","input":"x","z":[' + b'"",' * (4 * MiB) + b"0]}",
    "a long id": message(b"a " * (4 * MiB), b"m" * (7 * MiB)),
}


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("kind", DEAR_LINES)
def test_a_dear_line_delays_the_stop_behind_it_by_less_than_a_second(kind: str) -> None:
    with AgentProcess("--agent", "echo", stderr=subprocess.DEVNULL, env=unmeasured()) as agent:
        agent.until("ready")
        begun = agent.worked()
        agent.write(DEAR_LINES[kind] + b"\n")
        agent.write(b'{"type":"stop"}\n{"type":"ping"}\n')
        agent.until("pong")
        stopped = agent.worked()
        assert stopped - begun < PROMPT_SECONDS
        assert agent.end() == 0
        assert agent.worked() - stopped < EXIT_SECONDS


FLOODS = {
    "bad lines": b"x\n",
    "messages": message(b"hi") + b"\n",
    "empty messages": message(b"") + b"\n",
    "set_mode": b'{"type":"set_mode","mode":"yolo"}\n',
    "set_config": b'{"type":"set_config","model":"x"}\n',
    "stop": b'{"type":"stop"}\n',
}


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_does_not_keep_a_signal_out(kind: str) -> None:
    with AgentProcess(
        "--agent", "echo", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=unmeasured()
    ) as agent:
        assert agent.process.stdin is not None
        inlet = agent.process.stdin.fileno()
        flooded = threading.Event()

        def flood() -> None:
            data = FLOODS[kind] * (PIPE_HOLDS // len(FLOODS[kind]) + 1)
            sent = 0
            try:
                while True:
                    sent += os.write(inlet, data)
                    # It has read as much as a pipe holds, and finds as much again.
                    if sent > 2 * PIPE_HOLDS:
                        flooded.set()
            except OSError:
                flooded.set()

        flooding = threading.Thread(target=flood)
        flooding.start()
        flooded.wait()
        begun = agent.worked()
        assert agent.kill(signal.SIGTERM) == 128 + signal.SIGTERM
        flooding.join()
        assert agent.worked() - begun < EXIT_SECONDS


def test_the_limits_of_a_line_at_their_edges() -> None:
    longest = message(b"hi", b"m" * codec.MAX_MSG_ID)
    assert codec.decode_command(longest).type == "message"
    with pytest.raises(RemoteProtocolError, match="longer than 1024 characters"):
        codec.decode_command(message(b"hi", b"m" * (codec.MAX_MSG_ID + 1)))
    # The braces and the commas of the line itself count, too.
    most = codec.MAX_VALUES - 4
    line = b'{"type":"message","msg_id":"m","input":"%s","z":[%s]}'
    codec.decode_command(line % (b",[{" * 10, b",".join([b"0"] * (most - 1))))
    with pytest.raises(RemoteProtocolError, match="more than 100000 members and items"):
        codec.decode_command(line % (b"", b",".join([b"0"] * (most + 1))))
