"""A real exchange with the coding agent that is killed with -9 while a person is asked, and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import StubProvider
from tests.support.provider_streams import anthropic_text, anthropic_tool_calls

pytestmark = pytest.mark.process

FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "home"
[agents.coder]
agent = "coder"
workspace = "."
provider = "anthropic"
model = "stub"
base_url = "{url}"
allow = []
"""
COMMAND = "echo once >> written.txt"


@asynccontextmanager
async def running(place: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The process from its start to its `kill -9`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline", "up", "--config", "trunkline.toml"),
        cwd=place,
        env={**os.environ, "ANTHROPIC_API_KEY": "sk-of-the-stub", "TRUNKLINE_HOME": str(place / "state")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    socket = httpx.AsyncHTTPTransport(uds=str(place / "home" / "exchange.sock"))
    try:
        async with httpx.AsyncClient(transport=socket, base_url="http://localhost", timeout=PATIENCE_SECONDS) as client:
            await eventually(lambda: client.get("/readyz"), lambda answer: answer.status_code == 200)
            yield client
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def eventually(ask: Any, holds: Any) -> Any:
    """Ask until the answer is as wanted."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                if holds(answer := await ask()):
                    return answer
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


async def test_a_call_that_was_asked_about_before_kill_9_is_run_once_when_it_is_approved(tmp_path: Path) -> None:
    async with StubProvider() as stub:
        stub.anthropic(anthropic_tool_calls([("Bash", {"command": COMMAND, "description": "Write"})]))
        (tmp_path / "trunkline.toml").write_text(FILE.format(url=stub.url))

        def waits(answer: httpx.Response) -> bool:
            return bool(answer.json()["approvals"])

        async with running(tmp_path) as client:
            made = (await client.post("/api/sessions", json={"agent": "coder"})).json()
            assert "id" in made, made
            session = f"/api/sessions/{made['id']}"
            said = await client.post(f"{session}/messages", json={"text": "Write it.", "msg_id": "m1"})
            assert (said.status_code, said.json()) == (202, {"turn": 1})
            later = await client.post(f"{session}/messages", json={"text": "And then?", "msg_id": "m2"})
            assert later.json() == {"turn": 2}
            asked = await eventually(lambda: client.get("/api/approvals?state=pending"), waits)
            (before,) = asked.json()["approvals"]
        stub.anthropic(anthropic_text("Written."))
        stub.anthropic(anthropic_text("Nothing."))
        async with running(tmp_path) as client:
            asked = await eventually(lambda: client.get("/api/approvals?state=pending"), waits)
            (after,) = asked.json()["approvals"]
            assert (after["id"], after["call_id"]) == (before["id"], before["call_id"])
            assert not (tmp_path / "written.txt").exists()
            answers = await asyncio.gather(
                *(client.post(f"/api/approvals/{after['id']}", json={"decision": "approve"}) for _ in range(5))
            )
            assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
            again = await client.post(f"{session}/messages", json={"text": "And then?", "msg_id": "m2"})
            assert again.json() == {"turn": 2}
            await stub.asked(3)
        assert (tmp_path / "written.txt").read_text() == "once\n"
        async with running(tmp_path) as client:
            assert (await client.get("/api/approvals?state=pending")).json()["approvals"] == []
        assert (tmp_path / "written.txt").read_text() == "once\n"
        assert len(stub.requests) == 3
