"""The ledger says what AgentProc does, and AgentProc serves and drives every agent there is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support import spawned
from tests.support.fake_cli import FAKES, install_fake
from tests.support.loop import run
from tests.support.served import served
from tests.wires.test_ledger import CONVERSATIONS, SAMPLES
from trunkline.agents import registry
from trunkline.core import events as core
from trunkline.wires.agentproc.codec import PREFIXES
from trunkline.wires.agentproc.serve import AgentProcServer
from trunkline.wires.agentproc.serve_dialects import dialect_writer
from trunkline.wires.ledger import CONCEPTS, WIRES

AGENTPROC = WIRES["agentproc"]


class Bridge:
    """What a bridge would read."""

    congested = False

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def flush(self) -> None:
        """Nothing is held back."""

    async def drain(self) -> None:
        """Nothing to wait for."""


def agentproc_lines(event: core.Event, *, streaming: bool) -> set[str]:
    """The kinds of lines that one event becomes in protocol 0.1, and of the end of its turn."""

    async def scene() -> set[str]:
        async with served() as world:
            bridge = Bridge()
            server = AgentProcServer(world.session, bridge, dialect_writer("0.1", "s1", streaming=streaming))
            sayings = [event] if isinstance(event, core.TurnEnded) else [event, core.TurnEnded("success")]
            if isinstance(event, core.Failed):
                sayings[-1] = core.TurnEnded("error")
            server.show([core.Envelope("s1", number, 1, 0.0, each) for number, each in enumerate(sayings, 1)])
            lines = bridge.data.decode().splitlines()
            return {
                next((prefix.rstrip(":") for prefix in PREFIXES if line.startswith(prefix)), "body") for line in lines
            }

    return run(scene())


@pytest.mark.parametrize("concept", [concept.name for concept in CONCEPTS if concept.group == "events"])
def test_agentproc_does_with_each_event_what_the_ledger_says(concept: str) -> None:
    found = AGENTPROC[concept]
    seen = agentproc_lines(SAMPLES[concept], streaming=True) | agentproc_lines(SAMPLES[concept], streaming=False)
    # The exit code is no line, and comes with the end of every turn.
    assert seen == set(found.lines) - {"exit code"}
    assert (not found.lines) == (found.fate == "refused")


#: What stands in the ledger as a line and is none: a variable, the body, the end of the process.
AGENTPROC_FORMS = {
    "AGENT_PARTIAL", "AGENT_SESSION", "AGENT_ERROR", "body", "exit code", "AGENT_MESSAGE", "AGENT_SESSION_ID",
    "AGENT_ATTACHMENTS", "AGENT_IMAGE_URL", "AGENT_FILE_URL",
}  # fmt: skip


def test_every_form_of_agentproc_is_in_the_ledger_and_no_invented_one() -> None:
    assert {line for found in AGENTPROC.values() for line in found.lines} == AGENTPROC_FORMS


@pytest.mark.process
@pytest.mark.parametrize("name", registry.names())
def test_every_agent_there_is_can_be_served_by_agentproc_and_driven_over_the_json_stream(
    name: str, tmp_path: Path
) -> None:
    flags, said = CONVERSATIONS[name]
    profile = tmp_path / "served.yaml"
    command = [sys.executable, "-m", "trunkline", "agentproc", "serve", name, *flags, "--allow", "Read"]
    profile.write_text(json.dumps({"command": command[0], "args": command[1:], "timeout_secs": 20}))
    talk = spawned.converse(["--agent", f"agentproc:{profile}"], said[:2])
    assert talk.exit_code == 0
    assert [line["msg_id"] for line in talk.of("stream_end")] == ["m1", "m2"]
    assert talk.of("error") == []
    assert talk.text


@pytest.mark.process
@pytest.mark.parametrize("name", FAKES)
def test_every_bundled_profile_can_be_driven_over_the_json_stream(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake(tmp_path, name)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    talk = spawned.converse(["--agent", f"agentproc:{name}"], ["hello"])
    assert talk.exit_code == 0
    assert talk.of("error") == []
    assert talk.text


@pytest.mark.process
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_what_a_program_asks_is_a_tool_request_on_the_json_stream(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake(tmp_path, name)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    answers = iter(
        [
            {"type": "tool_approve", "scope": "always"},
            {"type": "tool_deny", "reason": "no"},
        ]
    )
    talk = spawned.converse(
        ["--agent", f"agentproc:{name}"],
        ["ask twice", "ask edit"],
        lambda request: {**next(answers), "call_id": request["call_id"]},
    )
    assert talk.exit_code == 0
    # The second command needed no answer, the edit another one.
    assert [line["tool"]["category"] for line in talk.of("tool_request")] == ["exec", "edit"]
    assert "allowed, allowed" in talk.text
    assert "denied" in talk.text
