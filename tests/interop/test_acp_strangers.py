"""Clients that others have written, with what we serve by the Agent Client Protocol: the official SDKs of PyPI and npm,
and npm's `acpx`. On standard streams, and over HTTP and WebSockets on an exchange."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api.test_acp import reachable
from tests.exchange.api_world import token
from tests.support.attached import ASKING
from tests.support.coding import calls, says, serving
from tests.support.mcp_environment import INSTALL_SECONDS, environment
from tests.support.npm import ACP_SDK, ACPX, modules, node, node_environment, script
from tests.support.ran import printed_by

# The first run makes the environments.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(3 * INSTALL_SECONDS)]

HERE = Path(__file__).parent
TRUNKLINE = (sys.executable, "-P", "-m", "trunkline", "acp")
PYTHON_SDK = ("agent-client-protocol[http]==0.12.1",)


async def told_by(*command: str | Path, env: dict[str, str] | None = None) -> Any:
    """What a stranger's client says at the end."""
    return json.loads((await printed_by(*command, env=env))[-1])


async def npm_sdk(how: str, cwd: Path, text: str, *target: str) -> Any:
    """What npm's SDK is told."""
    env = {**os.environ, **node_environment()}
    return await told_by(node(), HERE / "acp_client.mjs", modules(ACP_SDK), how, cwd, text, *target, env=env)


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
    async with reachable(tmp_path, script=ASKING) as at:
        url = f"{at.url}?agent=scripted"
        told = await npm_sdk("http", tmp_path, "Go", url, token("admin"))
    assert (told["agent"], told["stopReason"], told["text"]) == ("trunkline", "end_turn", "beforeafter")
    assert [each["kinds"] for each in told["asked"]] == [["allow_once", "allow_always", "reject_once", "reject_always"]]
    assert told["listed"]
    assert told["replayed"][0] == "user_message_chunk"
    assert told["unknown"] == -32601


async def test_npms_sdk_lends_the_coder_its_files_and_its_terminal(tmp_path: Path) -> None:
    made = tmp_path / "made"
    replies = (
        calls(("Read", {"file_path": "a.txt"})),
        calls(("Edit", {"file_path": "a.txt", "old_string": "not saved yet", "new_string": "changed"})),
        calls(("Bash", {"command": f"touch {made}; echo here"})),
        says("Done."),
    )
    with serving(*replies) as model:
        told = await npm_sdk("stdio", tmp_path, "Go", *TRUNKLINE, "--provider", "openai", "--base-url", model.url)
        results = model.requests[-1].json["messages"]
    assert (told["text"], told["stopReason"], told["exit"]) == ("Done.", "end_turn", 0)
    path = str(tmp_path / "a.txt")
    # Read by the two tools, and for the change that is shown with the question.
    assert told["files"] == [*[["read", path]] * 3, ["write", path, "changed\n"]]
    assert not (tmp_path / "a.txt").exists()
    assert [command[-1] for command in told["commands"]] == [f"touch {made}; echo here"]
    assert made.exists()
    assert "terminal" in told["kinds"]
    assert "here" in json.dumps(results)
    # The change was shown with the question about it.
    (edit,) = [each for each in told["asked"] if "changed" in json.dumps(each)]
    assert edit["content"][0]["type"] == "diff"


async def test_acpx_has_an_agent_answer(tmp_path: Path) -> None:
    play = tmp_path / "play.yaml"
    play.write_text(ASKING)
    command = shlex.join([*TRUNKLINE, f"scripted:{play}"])
    env = {**os.environ, **node_environment(), "HOME": str(tmp_path)}
    lines = await printed_by(
        *script(ACPX), "--format", "json", "--approve-all", "--cwd", tmp_path, "--agent", command, "exec", "Go", env=env
    )
    told = [json.loads(line) for line in lines]
    updates = [each["params"]["update"] for each in told if each.get("method") == "session/update"]
    said = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(said) == "beforeafter"
    assert {"tool_call", "tool_call_update"} <= {each["sessionUpdate"] for each in updates}
    assert any(each.get("result", {}).get("stopReason") == "end_turn" for each in told if "result" in each)
