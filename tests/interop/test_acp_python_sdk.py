"""The official Python SDK of the Agent Client Protocol as the client of `trunkline acp`, on standard streams."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.attached import ASKING
from tests.support.coding import calls, says, serving
from tests.support.mcp_environment import INSTALL_SECONDS, environment
from tests.support.ran import printed_by

# The first run makes the environment.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

CLIENT = Path(__file__).parent / "acp_stdio_client.py"
PYTHON_SDK = ("agent-client-protocol[http]==0.12.1",)
TRUNKLINE = (sys.executable, "-P", "-m", "trunkline", "acp")


async def told_by_sdk(place: Path, answer: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """What the SDK's client was told."""
    program = await asyncio.to_thread(environment, PYTHON_SDK)
    lines = await printed_by(
        program / "python", CLIENT, place, answer, *TRUNKLINE, *arguments, env={**os.environ, **variables}
    )
    told: dict[str, Any] = json.loads(lines[-1])
    # What holds whoever answers.
    assert told["agent"] == "trunkline"
    assert told["modes"] == ["default", "auto_edit", "yolo", "plan"]
    assert (told["listed"], told["forked"]) == (True, True)
    assert (told["unknown"], told["relative"], told["extension"]) == (-32002, -32602, -32601)
    assert told["wrong"] == []
    assert told["exit"] == 0
    return told


@pytest.fixture
def asking(tmp_path: Path) -> str:
    play = tmp_path / "play.yaml"
    play.write_text(ASKING)
    return f"scripted:{play}"


async def test_the_echo_is_heard(tmp_path: Path) -> None:
    told = await told_by_sdk(tmp_path, "allow_once", "echo")
    assert (told["text"], told["stop_reason"], told["replayed"]) == ("Go", "end_turn", "Go")
    assert told["usage"]


@pytest.mark.parametrize(
    ("answer", "status", "stop_reason"),
    [
        ("allow_once", "completed", "end_turn"),
        ("allow_always", "completed", "end_turn"),
        ("reject_once", "failed", "end_turn"),
        ("reject_always", "failed", "end_turn"),
        ("cancel", "failed", "cancelled"),
    ],
)
async def test_a_permission_is_given_refused_or_cancelled(
    tmp_path: Path, asking: str, answer: str, status: str, stop_reason: str
) -> None:
    told = await told_by_sdk(tmp_path, answer, asking)
    assert told["stop_reason"] == stop_reason
    assert [call["status"] for call in told["calls"]][-1] == status
    assert told["order"].index("tool_call") < told["order"].index("asked")


async def test_the_coder_edits_a_file_and_the_change_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    replies = (
        calls(("Read", {"file_path": "a.txt"})),
        calls(("Edit", {"file_path": "a.txt", "old_string": "old", "new_string": "new"})),
        says("Done."),
    )
    with serving(*replies) as model:
        told = await told_by_sdk(
            tmp_path, "allow_once", "--provider", "openai", "--base-url", model.url, OPENAI_API_KEY="k"
        )
    assert (told["text"], told["stop_reason"]) == ("Done.", "end_turn")
    assert (tmp_path / "a.txt").read_text() == "new\n"
    diff = {"type": "diff", "path": str(tmp_path / "a.txt"), "oldText": "old\n", "newText": "new\n"}
    read, edit = [call for call in told["calls"] if call["sessionUpdate"] == "tool_call"]
    assert (read["kind"], read["rawInput"]) == ("read", {"file_path": "a.txt"})
    assert read["locations"] == [{"path": str(tmp_path / "a.txt")}]
    assert edit["content"] == [diff]
    assert told["asked"][0]["content"] == [diff]
