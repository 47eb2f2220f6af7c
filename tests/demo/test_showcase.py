"""The showcase: a real agent process and its host."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import AgentFailed, AgentTimeout, Fault
from trunkline.demo import showcase
from trunkline.demo.showcase import Scene, ShownLine, play

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showcase, "PATIENCE_SECONDS", PATIENCE_SECONDS)


async def played(**changes: Any) -> list[ShownLine]:
    lines: list[ShownLine] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        await play(lines.append, **changes)
    return lines


def exists(path: str) -> bool:
    return os.path.exists(path)


def types(lines: list[ShownLine], scene: str) -> list[str]:
    """Who says what in a scene: `>` is the host; pieces of text in a row count once."""
    found: list[str] = []
    for line in lines:
        name = (">" if line.by_host else "") + json.loads(line.data)["type"]
        if line.scene == scene and not (name == "text_delta" and found[-1:] == [name]):
            found.append(name)
    return found


async def test_every_scene_shows_what_its_title_promises() -> None:
    lines = await played()
    scenes = [scene.title for scene in showcase.SCENES]
    assert [types(lines, scene) for scene in (showcase.OPENING, *scenes)] == [
        ["ready"],
        [">message", "stream_start", "thinking", "text_delta", "stream_end"],
        [
            ">message", "stream_start", "text_delta",
            "tool_request", ">tool_approve", "tool_running", "tool_result", "text_delta",
            "tool_request", ">tool_approve", "tool_running", "tool_result", "text_delta", "stream_end",
        ],
        [
            ">message", "stream_start", "text_delta", "tool_request", "tool_request", ">tool_approve", ">tool_approve",
            "tool_running", "tool_running", "tool_result", "tool_result", "text_delta", "stream_end",
        ],
        [
            ">message", "stream_start", "thinking", "tool_request", ">tool_deny", "tool_cancelled", "text_delta",
            "stream_end",
        ],
        [">message", "stream_start", "error", "info", "text_delta", ">stop", "stream_end"],
    ]  # fmt: skip
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    assert all(line.caption for line in lines)
    assert not any("The end." in line.data.decode() for line in lines)


async def test_the_users_settings_do_not_change_it_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_MODE", "yolo")
    lines = await played(scenes=showcase.SCENES[1:2])
    assert b"tool_request" in b"".join(line.data for line in lines)
    assert not exists(os.environ["TRUNKLINE_HOME"])


# An agent that says `ready`, then what is given, for each line that it reads.
PROGRAM = """
import sys
print('{"type":"ready","version":"0.1.0","capabilities":{}}', flush=True)
for line in sys.stdin:
    print(%r, flush=True)
"""
END = '{"type":"stream_end","msg_id":"m1"}'
ASK = '{"type":"tool_request","msg_id":"m1","call_id":"t1","tool":{"name":"Write"}}'


def agent(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


@pytest.mark.parametrize(
    ("program", "fault", "problem"),
    [
        ('print(\'{"type":"pong"}\')', AgentFailed, "should have said `ready`"),
        ("import sys; sys.exit('no luck')", AgentFailed, "ended too early, with exit code 1. Its last words: no luck"),
        (PROGRAM % END + "sys.exit(7)", AgentFailed, "left with exit code 7."),
        (PROGRAM % f"{ASK}\n{END}", AgentFailed, "asked for other tools than the scene"),
        ("import time; time.sleep(600)", AgentTimeout, "was silent for 0.5 s."),
        (PROGRAM % END + "import time; time.sleep(600)", AgentTimeout, "did not leave within 0.5 s."),
    ],
    ids=["not ready", "ends", "exit code", "another tool", "silent", "stays"],
)
async def test_an_agent_that_does_not_behave_is_a_fault(
    program: str, fault: type[Fault], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurry() -> None:
        monkeypatch.setattr(showcase, "PATIENCE_SECONDS", 0.5)

    def show(line: ShownLine) -> None:
        if "did not leave" in problem and line.data.decode() == END:
            hurry()

    if "was silent" in problem:
        hurry()
    with pytest.raises(fault) as caught:
        await play(show, scenes=[Scene("one", "hello")], command=agent(program))
    assert problem in str(caught.value)


async def test_an_agent_that_cannot_be_started_is_explained() -> None:
    with pytest.raises(AgentFailed, match="`no-such-program-anywhere`"):
        await played(command=["no-such-program-anywhere"])


async def test_what_is_not_in_the_protocol_is_shown_as_that() -> None:
    lines = await played(scenes=[Scene("one", "hello")], command=agent(PROGRAM % f"Welcome!\n{END}"))
    assert [(line.data, line.caption) for line in lines if line.data == b"Welcome!"] == [
        (b"Welcome!", "says what is not in the protocol")
    ]


# Says where it is and waits for ever.
WAITING = """
import json, os, time
where = f"{os.getpid()} {os.getcwd()}"
print(json.dumps({"type": "ready", "version": "0.1.0", "capabilities": {}, "session_id": where}), flush=True)
time.sleep(600)
"""


async def test_cancelling_it_leaves_no_agent_and_no_directory() -> None:
    first: asyncio.Future[ShownLine] = asyncio.get_running_loop().create_future()

    def show(line: ShownLine) -> None:
        if not first.done():
            first.set_result(line)

    task = asyncio.create_task(play(show, command=agent(WAITING)))
    async with asyncio.timeout(PATIENCE_SECONDS):
        pid, folder = json.loads((await first).data)["session_id"].split(" ", 1)
        assert exists(folder)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not exists(folder)
    assert not exists(f"/proc/{pid}")
