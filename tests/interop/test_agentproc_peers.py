"""AgentProc with peers that we did not write: the last release with protocol 0.1, and the newest, which speaks 0.4.

Both ways: their runner drives our agents, and our bridge drives theirs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from environments import AGENTPROC_01, AGENTPROC_04, INSTALL_SECONDS
from tests.support.mcp_environment import environment
from tests.support.patience import PATIENCE_SECONDS
from trunkline.wires.agentproc.drive import Run, run
from trunkline.wires.agentproc.messages import PermissionRequest, PermissionResponse, Said, TurnRequest
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.file import load

# The first run makes the environments.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]


Dialect = Literal["0.1", "0.4"]
both = pytest.mark.parametrize("dialect", ["0.1", "0.4"])


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    """Where the programs of each peer are, by the dialect that it speaks."""
    return {"0.1": environment(AGENTPROC_01), "0.4": environment(AGENTPROC_04)}


def theirs(programs: Path, tmp_path: Path, handler: str, **fields: Any) -> Profile:
    """An agent that is written with their kit."""
    path = tmp_path / "their_agent.py"
    path.write_text(
        f"from agentproc import AgentResult, ProtocolError, create_profile\n{handler}\ncreate_profile(handler)\n"
    )
    return Profile((str(programs / "python"), str(path)), **fields)


ANSWERING = """
async def handler(ctx):
    await ctx.send_partial("You ")
    await ctx.send_partial("said ")
    return AgentResult(response=f"{ctx.message} in {ctx.session_id or 'nothing'}", session_id="their-session")
"""


@both
def test_our_bridge_drives_their_agent(programs: dict[str, Path], tmp_path: Path, dialect: Dialect) -> None:
    profile = theirs(programs[dialect], tmp_path, ANSWERING, protocol=dialect)
    first = run(profile, TurnRequest("hello"))
    assert (first.partials, first.session_id, first.exit_code) == (("You ", "said "), "their-session", 0)
    # In 0.1 the reply comes in addition to what was streamed, in 0.4 it repeats it.
    assert first.reply == ("hello in nothing" if dialect == "0.1" else "")
    whole = run(profile.replace(streaming=False), TurnRequest("again", first.session_id))
    assert whole.reply == "again in their-session"


@both
def test_our_bridge_finds_out_what_their_agent_speaks(
    programs: dict[str, Path], tmp_path: Path, dialect: Dialect
) -> None:
    outcome = run(theirs(programs[dialect], tmp_path, ANSWERING, protocol="auto"), TurnRequest("hello"))
    assert (outcome.partials, outcome.session_id) == (("You ", "said "), "their-session")


@both
def test_our_bridge_hears_their_errors(programs: dict[str, Path], tmp_path: Path, dialect: Dialect) -> None:
    failing = "async def handler(ctx):\n    raise ProtocolError('no credit left')\n"
    outcome = run(theirs(programs[dialect], tmp_path, failing, protocol=dialect), TurnRequest("hello"))
    assert (outcome.reply, outcome.error, outcome.exit_code) == ("", "no credit left", 1)


@pytest.mark.parametrize(("spoken", "expected"), [("0.1", "0.4"), ("0.4", "0.1")])
def test_an_agent_of_the_other_dialect_is_never_silently_empty(
    programs: dict[str, Path], tmp_path: Path, spoken: Dialect, expected: Dialect
) -> None:
    heard: list[Said] = []
    outcome = run(
        theirs(programs[spoken], tmp_path, ANSWERING, protocol=expected), TurnRequest("hello"), hear=heard.append
    )
    assert outcome.reply or outcome.error


def test_our_bridge_answers_their_requests(programs: dict[str, Path], tmp_path: Path) -> None:
    asking = """
def handler(ctx):
    ctx.send_permission_request({"request_id": "r1", "tool_name": "Write", "input": {"a": 1}})
    return ctx.read_permission_response()["behavior"]
"""
    profile = theirs(programs["0.4"], tmp_path, asking, protocol="0.4", permission=True)
    assert run(profile, TurnRequest("hello")).reply == "deny"
    holder: list[Run] = []

    def allow(said: Said) -> None:
        if isinstance(said, PermissionRequest):
            assert (said.tool_name, said.input) == ("Write", {"a": 1})
            holder[0].respond(PermissionResponse(said.request_id, "allow"))

    holder.append(Run(profile, TurnRequest("hello"), hear=allow))
    assert holder[0].perform().reply == "allow"


def test_the_profiles_of_their_hub_run_as_they_are(
    programs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of the programs that they are for is here: what their bridges say of that is an answer in their protocol.
    monkeypatch.setenv("PATH", f"{programs['0.4']}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    (hub,) = programs["0.4"].parent.glob("lib/*/site-packages/agentproc/hub_data")
    profiles = {path.parent.name: load(str(path)) for path in hub.glob("*/profile.yaml")}
    assert len(profiles) > 10
    assert [profile.warnings for profile in profiles.values() if profile.warnings] == []
    assert run(profiles.pop("echo-agent"), TurnRequest("hello")).reply == "You said: hello"
    found = {
        name: run(profile, TurnRequest("hello")) for name, profile in profiles.items() if profile.command[0] != "node"
    }
    assert {name: each.error for name, each in found.items() if "CLI not found" not in each.error} == {}


# Their runner, our agents

OURS = """
from trunkline.wires.agentproc.sdk import AgentError, Turn, agent

@agent
def main(turn: Turn) -> str:
    if turn.message == "fail":
        raise AgentError("out of paper")
    before = turn.session_id or "nothing"
    turn.session_id = "our-session"
    return f"{turn.message} in {before}"

main()
"""


def their_run(programs: Path, tmp_path: Path, command: list[str], message: str, session: str = "") -> Any:
    """What their command line makes of a turn of ours."""
    profile = tmp_path / "ours.yaml"
    profile.write_text(json.dumps({"command": command[0], "args": command[1:], "timeout_secs": PATIENCE_SECONDS}))
    arguments = ["--profile", str(profile), "--prompt", message, *(["--session", session] if session else [])]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TRUNKLINE_HOME")}
    return subprocess.run(
        [str(programs / "agentproc"), *arguments],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=kept,
    )  # fmt: skip


@both
def test_their_runner_drives_an_agent_that_is_written_with_our_kit(
    programs: dict[str, Path], tmp_path: Path, dialect: Dialect
) -> None:
    path = tmp_path / "our_agent.py"
    path.write_text(OURS)
    command = [sys.executable, str(path)]
    done = their_run(programs[dialect], tmp_path, command, "hello", "earlier")
    assert done.returncode == 0, done.stderr
    assert "hello in earlier" in done.stdout + done.stderr
    assert "agentproc:session:our-session" in done.stderr
    failed = their_run(programs[dialect], tmp_path, command, "fail")
    assert failed.returncode == 1
    assert "out of paper" in failed.stderr


@both
def test_their_runner_drives_what_we_serve_and_resumes_it(
    programs: dict[str, Path], tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = f"TRUNKLINE_HOME={os.environ['TRUNKLINE_HOME']}"
    # Their newer runner passes no variables of ours on.
    command = ["/usr/bin/env", home, sys.executable, "-m", "trunkline", "agentproc", "serve", "echo"]
    first = their_run(programs[dialect], tmp_path, command, "hello there")
    assert first.returncode == 0, first.stderr
    assert "hello" in first.stdout + first.stderr
    session = next(
        line.removeprefix("agentproc:session:")
        for line in first.stderr.splitlines()
        if line.startswith("agentproc:session:")
    )
    again = their_run(programs[dialect], tmp_path, command, "and again", session)
    assert again.returncode == 0, again.stderr
    assert f"agentproc:session:{session}" in again.stderr
    unknown = their_run(programs[dialect], tmp_path, command, "hello", "no-such-session")
    assert unknown.returncode == 1
    assert "not known" in unknown.stderr
