"""Clients that others have written, with what we serve by the Agent Client Protocol: the official SDKs of PyPI and npm,
and npm's `acpx`. On standard streams, and over HTTP and WebSockets on an exchange."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api.test_acp import reachable
from tests.exchange.api_world import token
from tests.support.attached import ASKING
from tests.support.mcp_environment import INSTALL_SECONDS, environment
from tests.support.npm import ACP_SDK, modules, node, node_environment

# The first run makes the environments.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(3 * INSTALL_SECONDS)]

HERE = Path(__file__).parent
PYTHON_SDK = ("agent-client-protocol[http]==0.12.1",)

#: A stranger's program needs seconds to start, and the machine may be busy.
PATIENCE_SECONDS = 60


async def told_by(*command: str | Path, env: dict[str, str] | None = None) -> Any:
    """Run a stranger's client; gives what it printed at the end."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return json.loads(out.decode().splitlines()[-1])


@pytest.mark.parametrize("how", ["http", "ws"])
async def test_the_python_sdk_talks_to_an_exchange(how: str, tmp_path: Path) -> None:
    python = environment(PYTHON_SDK) / "python"
    async with reachable(tmp_path, script=ASKING) as at:
        url = f"{at.url}?agent=scripted"
        told = await told_by(python, HERE / "acp_client.py", how, tmp_path, "Go", url, token("admin"))
        assert (await at.net.get(f"/api/sessions/{told['session']}")).json()["agent"] == "scripted"
    assert (told["agent"], told["stop_reason"], told["text"]) == ("trunkline", "end_turn", "beforeafter")
    assert told["asked"] == [["allow_once", "allow_always", "reject_once", "reject_always"]]
    assert "tool_call" in told["kinds"]
    assert told["listed"]
    assert told["unknown"] == -32002
    # A second connection was told what was said, in order; then both saw the next turn.
    assert told["replayed"][0] == "user_message_chunk"
    assert told["replayed"][-1] == "agent_message_chunk"
    assert told["again"] == "beforeafter" * 2
    assert told["seen"] == "beforeafter"


async def test_npms_sdk_talks_to_an_exchange_over_http(tmp_path: Path) -> None:
    script, place = HERE / "acp_client.mjs", modules(ACP_SDK)
    async with reachable(tmp_path, script=ASKING) as at:
        url = f"{at.url}?agent=scripted"
        told = await told_by(
            node(), script, place, "http", tmp_path, "Go", url, token("admin"), env={**os.environ, **node_environment()}
        )
    assert (told["agent"], told["stopReason"], told["text"]) == ("trunkline", "end_turn", "beforeafter")
    assert [each["kinds"] for each in told["asked"]] == [["allow_once", "allow_always", "reject_once", "reject_always"]]
    assert told["listed"]
    assert told["replayed"][0] == "user_message_chunk"
    assert told["unknown"] == -32601
