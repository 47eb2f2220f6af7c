"""Agents written with the SDK, as the processes that bridges start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.process

PROGRAM = """
import asyncio, os, signal, subprocess, sys, threading, time
from trunkline.wires.agentproc.sdk import Turn, agent

def wait():
    # In pieces: a signal right before a system call that waits is heard when that is over.
    while True:
        time.sleep(0.01)

def handle(turn: Turn):
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["sh", "-c", "echo child; env | grep -c ^AGENT_; cat"])
    turn.session_id = "s1"
    try:
        turn.partial("said")
        if turn.message == "wait":
            wait()
    finally:
        print("in order")
    if turn.message == "deaf":
        while True:
            try:
                wait()
            except BaseException:
                pass
    def flood():
        while turn.message == "flood":
            turn.partial("x" * 10000)
    threading.Thread(target=flood).start()
    flood()
    return str(turn.ask("Write")) if turn.message == "ask" else "reply"

async def handle_async(turn: Turn):
    def elsewhere():
        for _ in range(500):
            with open(f"/proc/self/task/{os.getpid()}/wchan") as place:
                if "poll" in place.read():
                    break
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    turn.partial("said")
    if turn.message == "elsewhere":
        threading.Thread(target=elsewhere).start()
    try:
        await asyncio.sleep(600)
    finally:
        print("in order")

if __name__ == "__main__":
    agent(handle_async if sys.argv[1:] else handle)()
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    path = tmp_path / "agent.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path)]


def environment(message: str) -> dict[str, str]:
    return os.environ | {"AGENT_MESSAGE": message, "AGENT_PROTOCOL_VERSION": "0.1"}


@contextmanager
def running(command: list[str], message: str) -> Iterator[subprocess.Popen[bytes]]:
    """The process, once it has said something."""
    with subprocess.Popen(
        command, env=environment(message), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b'AGENT_PARTIAL:"said"\n'
            yield process
        finally:
            process.kill()


def test_what_a_handler_and_its_children_print_never_gets_among_the_lines(program: list[str]) -> None:
    done = subprocess.run(program, env=environment("hello"), input=b"typed", capture_output=True, check=True)
    assert done.stdout == b'AGENT_PARTIAL:"said"\nAGENT_SESSION:s1\nreply\n'
    assert sorted(done.stderr.decode().split()) == ["0", "child", "in", "order", "printed", "written"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_lets_the_handler_put_its_things_in_order_and_tells_the_session(
    program: list[str], number: signal.Signals, code: int
) -> None:
    with running(program, "wait") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code
    assert out == b"AGENT_SESSION:s1\n"
    assert err.endswith(b"in order\n")


def test_a_signal_cancels_an_async_handler(program: list[str]) -> None:
    with running([*program, "async"], "hello") as process:
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 143
    assert (out, err) == (b"", b"in order\n")


def test_a_signal_that_the_system_hands_to_another_thread_cancels_an_async_handler(program: list[str]) -> None:
    with running([*program, "async"], "elsewhere") as process:
        assert process.wait(PATIENCE_SECONDS) == 143


def test_a_handler_that_takes_no_notice_of_a_signal_does_not_live_on(program: list[str]) -> None:
    with running(program, "deaf") as process:
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 143


def test_a_bridge_that_does_not_read_any_more_ends_it_and_its_threads_quietly(program: list[str]) -> None:
    with running(program, "flood") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 141
        assert b"Traceback" not in process.stderr.read()


def test_0_4_asks_over_the_pipes_and_hears_the_answer(program: list[str]) -> None:
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"type":"turn","message":"ask","permission":true}\n')
        process.stdin.flush()
        said, asked = (json.loads(process.stdout.readline()) for _ in range(2))
        answer = {"type": "permission_response", "request_id": asked["request_id"], "behavior": "allow"}
        out, _ = process.communicate(json.dumps(answer).encode() + b"\n", timeout=PATIENCE_SECONDS)
    assert [said["type"], asked["type"]] == ["partial", "permission_request"]
    assert json.loads(out.splitlines()[-1]) == {"type": "result", "text": "True", "session_id": "s1"}
    assert process.returncode == 0


def test_its_import_brings_neither_an_event_loop_nor_a_parser_of_options() -> None:
    heavy = "{'asyncio', 'click', 'yaml', 'logging', 'argparse', 'inspect', 'threading', 'subprocess'}"
    check = f"import sys, trunkline.wires.agentproc.sdk; print(sorted({heavy} & set(sys.modules)))"
    # A run under a coverage tool loads what it likes, before and without the SDK.
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True, text=True)
    bare = f"import sys; print(sorted({heavy} & set(sys.modules)))"
    assert (
        done.stdout == subprocess.run([sys.executable, "-c", bare], capture_output=True, check=True, text=True).stdout
    )
