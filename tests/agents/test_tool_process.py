"""Programs as tools: real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.helpers import agent_of, play, request
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents import tool_process
from trunkline.agents.tool_process import ByteClip, Ran
from trunkline.base.redact import Redactor
from trunkline.core.agent import Approve
from trunkline.core.events import Progress, ToolCancelled, ToolFinished, ToolRequested, TurnEnded, UserMessage

pytestmark = pytest.mark.process

# What a stop has in all, as wires promise it.
STOP_SECONDS = 1.0


async def run(code: str, cwd: Path, limit: int = tool_process.MAX_OUTPUT) -> Ran:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await tool_process.run([sys.executable, "-c", code], str(cwd), limit)


@given(st.lists(st.binary(max_size=30)), st.integers(2, 40))
def test_a_clip_keeps_both_ends_and_says_what_is_missing(pieces: list[bytes], limit: int) -> None:
    clip, data = ByteClip(limit), b"".join(pieces)
    for piece in pieces:
        clip.feed(piece)
    half = limit // 2
    if len(data) <= 2 * half:
        assert clip.text() == data.decode("utf-8", "replace")
    else:
        head, tail = (part.decode("utf-8", "replace") for part in (data[:half], data[-half:]))
        assert clip.text() == f"{head}\n\n... [truncated {len(data) - 2 * half} bytes] ...\n\n{tail}"


def test_no_half_of_a_secret_stands_where_a_clip_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-live-0123456789")
    clip = ByteClip(100)
    clip.feed(b"sk-live-0123456789" * 20)
    assert "01234" not in Redactor.from_environ({"A_KEY": "sk-live-0123456789"}).text(clip.text())


async def test_both_streams_are_the_output_and_the_exit_code_is_told(tmp_path: Path) -> None:
    ran = await run("import os, sys; os.write(1, b'out'); os.write(2, b'err'); sys.exit(3)", tmp_path)
    assert ran.code == 3
    assert sorted((ran.output[:3], ran.output[3:])) == ["err", "out"]


async def test_it_runs_in_the_workspace_without_input(tmp_path: Path) -> None:
    ran = await run("import os, sys; print(os.getcwd(), repr(sys.stdin.read()))", tmp_path)
    assert ran == Ran(0, f"{tmp_path} ''\n")


async def test_a_program_that_is_not_there_is_an_explained_failure(tmp_path: Path) -> None:
    ran = await tool_process.run(["no-such-program-anywhere"], str(tmp_path))
    assert ran.code is None
    assert "`no-such-program-anywhere`" in ran.output


async def test_a_flood_is_cut_in_the_middle(tmp_path: Path) -> None:
    ran = await run("import os\nfor _ in range(64): os.write(1, b'x' * 65536)\nos.write(1, b'END')", tmp_path, 1000)
    assert len(ran.output) < 1100
    assert ran.output.endswith("xEND")
    assert f"[truncated {64 * 65536 + 3 - 1000} bytes]" in ran.output


# Deaf to SIGTERM, with a child that has left the group; both write their numbers.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
with open("pids.new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename("pids.new", "pids")
time.sleep(600)
"""


async def pids_in(folder: Path) -> list[int]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (folder / "pids").exists():  # noqa: ASYNC110  (a file wakes nobody)
            await asyncio.sleep(0.01)
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes() if os.path.isdir("/proc/self") else _answers(pid)
    except FileNotFoundError:
        return False


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


STUBBORN_SCRIPT = """
turns:
  - steps:
      - tool: {name: Bash, id: t1, run: ["%s", "-c", "{{input}}"]}
"""


async def test_cancel_ends_a_stubborn_tree_in_time(tmp_path: Path) -> None:
    conversation = await agent_of(STUBBORN_SCRIPT % sys.executable).open(request(workspace=str(tmp_path)))
    stream = conversation.turn(UserMessage(STUBBORN))
    assert isinstance(await anext(stream), ToolRequested)
    await conversation.decide("t1", Approve())
    await anext(stream)
    coming = asyncio.ensure_future(anext(stream))
    pids = await pids_in(tmp_path)
    await conversation.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await coming == ToolCancelled("t1", "Stopped by user")
        assert await anext(stream) == TurnEnded("cancelled")
    assert tool_process.GRACE_SECONDS < STOP_SECONDS / 2
    assert [pid for pid in pids if is_alive(pid)] == []
    await conversation.close()


async def test_close_ends_a_tool_whose_turn_was_left(tmp_path: Path) -> None:
    conversation = await agent_of(STUBBORN_SCRIPT % sys.executable).open(request(workspace=str(tmp_path)))
    stream = conversation.turn(UserMessage(STUBBORN))
    await anext(stream)
    await conversation.decide("t1", Approve())
    await anext(stream)
    pids = await pids_in(tmp_path)
    await conversation.close()
    assert [pid for pid in pids if is_alive(pid)] == []


@pytest.mark.parametrize(
    ("more", "status", "output"),
    [
        ("", "error", "oh no"),
        (", output: fine", "error", "fine"),
        (", status: success", "success", "oh no"),
        (", status: success, output: fine", "success", "fine"),
    ],
)
async def test_the_program_is_the_result_unless_the_script_says_otherwise(more: str, status: str, output: str) -> None:
    agent = agent_of(f"turns: [{{steps: [{{tool: {{name: Bash, run: [sh, -c, 'printf \"oh no\"; exit 1']{more}}}}}]}}]")
    events = await play(await agent.open(request()), decide=lambda _: Approve())
    assert events[2] == ToolFinished("call-1-1", "Bash", status, output)  # type: ignore[arg-type]  # a parameter


async def test_a_long_program_shows_that_it_lives(tmp_path: Path) -> None:
    wait = "until [ -e go ]; do sleep 0.01; done"
    agent = agent_of(f"turns: [{{steps: [{{tool: {{name: Bash, run: [sh, -c, '{wait}']}}}}]}}]", progress_seconds=0.01)
    conversation = await agent.open(request(workspace=str(tmp_path)))
    shown: list[str | None] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for event in conversation.turn(UserMessage("go")):
            if isinstance(event, ToolRequested):
                await conversation.decide(event.call_id, Approve())
            if isinstance(event, Progress):
                shown.append(event.call_id)
                if len(shown) == 3:
                    (tmp_path / "go").touch()
    assert shown[:3] == ["call-1-1"] * 3
    assert event == TurnEnded("success")
