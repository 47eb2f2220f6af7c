"""The real Claude Code and Codex through their bundled profiles: they ask, and what was decided is what happens.

Nobody is logged in: their model is played by a server on loopback, and whatever else they want to reach is refused by a
proxy that is not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from environments import INSTALL_SECONDS
from tests.conftest import require
from tests.support.asked_turn import asked_turn
from tests.support.npm import modules
from tests.support.provider import Reply, Request, StubProvider
from tests.support.provider_streams import anthropic_sse, anthropic_text, anthropic_tool_calls
from trunkline.agents.external.agentproc import AgentProcAgent
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import Event, TextDelta, ToolCancelled, ToolRequested, TurnEnded
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.agentproc import hub
from trunkline.wires.agentproc.profile import Profile

# The first run installs them: half a gigabyte.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(3 * INSTALL_SECONDS)]

PATIENCE_SECONDS = 90

PACKAGES = {"claude-code": "@anthropic-ai/claude-code@2.1.197", "codex": "@openai/codex@0.166.0"}
#: Where each has its program: the native one of Claude Code, since installation scripts are not run.
PLACES = {"claude-code": "@anthropic-ai/claude-code-*-*/claude", "codex": ".bin/codex"}

both = pytest.mark.parametrize("name", list(PACKAGES))

#: The command that the model wants to be run, as each program's tool takes it.
COMMAND = "touch made.txt"
_ANSWER = "All done now."


def program(name: str) -> Path:
    """The real program of a profile; a test that cannot have it does not go on."""
    # A glob of the C library's kind has one package for each.
    found = sorted(modules(PACKAGES[name]).glob(PLACES[name]), key=lambda path: ("musl" in str(path), str(path)))
    require(PACKAGES[name], bool(found), "there is no program for this machine in it")
    return found[0]


def model(request: Request) -> Reply:
    """A model that wants to run one command in each turn whose message says so, and then is done."""
    if request.method != "POST":
        # Codex would rather have a socket; it is content with what it gets instead.
        return Reply([b"{}"], status=426)
    return _messages(request.json) if request.is_anthropic else _responses(request.json)


def _messages(body: Any) -> Reply:
    said = json.dumps([message["content"] for message in body["messages"] if message["role"] == "user"])
    if body.get("tools") and said.count("make it") > said.count('"tool_result"'):
        call = ("Bash", {"command": COMMAND, "description": "Make a file"})
        return Reply([anthropic_sse(anthropic_tool_calls([call], ids=[f"toolu_{len(body['messages'])}"]))])
    return Reply([anthropic_sse(anthropic_text(_ANSWER))])


def _responses(body: Any) -> Reply:
    last = body["input"][-1]
    if "make it" in json.dumps(last) and last.get("role") == "user":
        asked = {"cmd": COMMAND, "sandbox_permissions": "require_escalated", "justification": "It is needed."}
        item: dict[str, Any] = {"type": "function_call", "id": "fc_1", "call_id": f"call_{len(body['input'])}",
                "name": "exec_command", "arguments": json.dumps(asked), "status": "completed"}  # fmt: skip
    else:
        text = {"type": "output_text", "text": _ANSWER, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 5,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}  # fmt: skip
    return Reply([
        anthropic_sse([
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        ])
    ])  # fmt: skip


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider(model) as provider:
        yield provider


def profile_of(name: str, stub: StubProvider) -> Profile:
    """The bundled profile with its real program, and with nothing changed but where its model is."""
    profile = hub.load(name).replace(command=(str(program(name)),))
    if name == "codex":
        return profile.replace(args=(*profile.args, "-c", f'openai_base_url="{stub.url}/v1"'))
    # What it would send home, and would wait for.
    return profile.replace(env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})


def environ_of(stub: StubProvider, home: Path) -> dict[str, str]:
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home), "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "sk-not-a-key", "CODEX_API_KEY": "sk-not-a-key",
        "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_PROXY": "127.0.0.1",
    }  # fmt: skip


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@both
async def test_it_asks_in_the_middle_of_its_turn_and_obeys(
    name: str, stub: StubProvider, workspace: Path, tmp_path: Path
) -> None:
    agent = AgentProcAgent(profile_of(name, stub), environ=environ_of(stub, tmp_path))
    session = await Session.open(agent, MemoryLog("s1"), Policy(), workspace=str(workspace))
    made = workspace / "made.txt"
    asked: list[ToolRequested] = []

    def deny(session: Session, request: ToolRequested) -> None:
        asked.append(request)
        session.answer(request.call_id, Deny("not now"))

    def allow(session: Session, request: ToolRequested) -> None:
        asked.append(request)
        assert not made.exists()
        session.answer(request.call_id, Approve())

    denied = await asked_turn(session, "make it", deny)
    assert not made.exists()
    assert [event.reason for event in denied if isinstance(event, ToolCancelled)] == ["not now"]
    assert text_of(denied).endswith(_ANSWER)
    # The same session, which the program goes on with.
    allowed = await asked_turn(session, "make it after all", allow)
    assert made.exists()
    assert text_of(allowed).endswith(_ANSWER)
    assert [(each.name, each.category, each.args["command"]) for each in asked] == [("Bash", "exec", COMMAND)] * 2
    sent = [request.json for request in stub.requests if request.method == "POST"]
    assert "make it" in json.dumps(sent[-1])
    assert "make it after all" in json.dumps(sent[-1])
    (end,) = [event for event in allowed if isinstance(event, TurnEnded)]
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (20, 10)
    await session.close()


@both
async def test_a_stop_while_it_asks_ends_it_and_nothing_was_done(
    name: str, stub: StubProvider, workspace: Path, tmp_path: Path
) -> None:
    agent = AgentProcAgent(profile_of(name, stub), environ=environ_of(stub, tmp_path))
    session = await Session.open(agent, MemoryLog("s1"), Policy(), workspace=str(workspace))
    stopped = await asked_turn(session, "make it", lambda session, request: session.stop())
    assert isinstance(stopped[-1], TurnEnded)
    assert stopped[-1].outcome == "cancelled"
    # Where the program has noted no answer, its model wants the same again.
    after = await asked_turn(session, "how are you?", lambda session, request: session.answer(request.call_id, Deny()))
    assert text_of(after).endswith(_ANSWER)
    assert not (workspace / "made.txt").exists()
    await session.close()
