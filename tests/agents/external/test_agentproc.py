"""AgentProc profiles as agents: sessions, approvals, stops. Real processes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.helpers import MemoryJournal, play, request, text_of
from tests.base.processes import is_alive, until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents import registry
from trunkline.agents.external import agentproc_run
from trunkline.agents.external.agentproc import AgentProcAgent
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, Agent, Approve, Deny, SetOptions
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, Unsupported
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.wires.agentproc.profile import Profile

pytestmark = pytest.mark.process

Script = Callable[..., AgentProcAgent]


@pytest.fixture
def sh(tmp_path: Path) -> Script:
    """An agent that is a shell script."""

    def write(text: str, **fields: Any) -> AgentProcAgent:
        path = tmp_path / "agent.sh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return AgentProcAgent(Profile((str(path),), **fields))

    return write


@pytest.fixture
def py(tmp_path: Path) -> Script:
    """An agent that is a Python script and speaks 0.4."""

    def write(text: str, **fields: Any) -> AgentProcAgent:
        path = tmp_path / "agent.py"
        path.write_text(f"import json, sys\nturn = json.loads(sys.stdin.readline())\n{text}\n")
        return AgentProcAgent(Profile((sys.executable, "-I", "-S", str(path)), protocol="0.4", **fields))

    return write


def test_it_is_an_agent_by_the_profiles_name_or_its_programs() -> None:
    agent: Agent = AgentProcAgent(Profile(("/opt/some-agent",)))
    assert agent.name == "some-agent"
    assert agent.capabilities.resume
    assert not agent.capabilities.approval
    assert AgentProcAgent(Profile(("x",), name="mine", protocol="0.4", permission=True)).capabilities.approval
    assert AgentProcAgent(Profile(("x",), name="mine")).name == "mine"


async def test_the_program_learns_who_wrote_each_message_and_what_the_conversation_is_called(sh: Script) -> None:
    agent = sh('echo "$AGENT_FROM_USER in $AGENT_SESSION_NAME"')
    conversation = await agent.open(request(name="telegram-7"))
    assert text_of(await play(conversation, sender="ann")) == "ann in telegram-7"
    assert text_of(await play(conversation, sender="bob")) == "bob in telegram-7"
    # Without a name of its own it is called by its id.
    conversation = await agent.open(request())
    assert text_of(await play(conversation)) == " in s1"


async def test_each_conversation_may_have_a_directory_of_its_own_which_is_made(sh: Script, tmp_path: Path) -> None:
    agent = sh("pwd", cwd=f"{tmp_path}/{{{{SESSION_NAME}}}}/work")
    for name in ("telegram--100", "matrix-!room:example.org"):
        conversation = await agent.open(request(name=name))
        assert text_of(await play(conversation)) == f"{tmp_path}/{name}/work"


async def test_partials_and_the_reply_are_the_text_of_the_turn(sh: Script) -> None:
    conversation = await sh("""echo 'AGENT_PARTIAL:"one "'; echo 'AGENT_PARTIAL:"two"'; echo body""").open(request())
    events = await play(conversation)
    assert text_of(events) == "one two\n\nbody"
    assert events[-1] == core.TurnEnded("success")


@pytest.mark.parametrize("prefix", ["s-", "séance-", "会话-"])
async def test_the_programs_session_comes_back_to_it_also_when_ours_is_resumed(sh: Script, prefix: str) -> None:
    agent = sh(f'echo "AGENT_SESSION:{prefix}$AGENT_MESSAGE"; echo "was: $AGENT_SESSION_ID"')
    journal = MemoryJournal()
    conversation = await agent.open(request(journal=journal))
    first = await play(conversation, "1")
    assert text_of(first) == "was: "
    assert core.SessionIdentified(f"{prefix}1") in first
    assert text_of(await play(conversation, "2")) == f"was: {prefix}1"
    assert conversation.session_id == f"{prefix}2"
    again = await agent.open(request(journal=journal, resumed=True))
    assert text_of(await play(again, "3")) == f"was: {prefix}2"


async def test_the_session_of_a_turn_that_failed_is_kept(sh: Script) -> None:
    journal = MemoryJournal()
    conversation = await sh("echo AGENT_SESSION:s9; exit 3").open(request(journal=journal))
    events = await play(conversation)
    assert events[-2:] == [core.Failed("agent", "The agent failed (exit code 3)."), core.TurnEnded("error")]
    assert journal.records == [{"agentproc_session": "s9"}]


async def test_a_timeout_is_a_fault_of_its_own_kind(sh: Script) -> None:
    conversation = await sh("sleep 600", timeout_secs=0.3, kill_grace_secs=0.1).open(request())
    events = await play(conversation)
    assert isinstance(events[-2], core.Failed)
    assert events[-2].kind == "timeout"


async def test_a_failure_that_the_profile_keeps_quiet_is_only_an_outcome(sh: Script) -> None:
    conversation = await sh("exit 3", send_error_reply=False).open(request())
    assert await play(conversation) == [core.TurnEnded("error")]


async def test_what_a_program_complains_of_is_logged_without_the_secrets_that_it_was_given(
    sh: Script, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-of-the-environment")
    agent = sh('echo "bad key: $SOME_API_KEY $OTHER_TOKEN" >&2; exit 1', env={"OTHER_TOKEN": "token-of-the-profile"})
    await play(await agent.open(request()))
    assert "its standard error: bad key: [redacted] [redacted]" in caplog.text
    await play(await sh('echo "AGENT_ERROR:\\"bad: $SOME_API_KEY\\""; exit 1').open(request()))
    assert "bad: [redacted]" in caplog.text
    assert "sk-of-the-environment" not in caplog.text


async def test_the_workspace_is_where_it_runs_unless_the_profile_says_otherwise(sh: Script, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    conversation = await sh("pwd").open(request(workspace=str(workspace)))
    assert text_of(await play(conversation)) == str(workspace)
    elsewhere = await sh("pwd", cwd=str(tmp_path)).open(request(workspace=str(workspace)))
    assert text_of(await play(elsewhere)) == str(tmp_path)


async def test_instructions_and_history_go_in_front_of_the_first_message_alone(sh: Script) -> None:
    agent = sh('echo AGENT_SESSION:s; printf "%s" "$AGENT_MESSAGE"')
    conversation = await agent.open(request(instructions="Be brief.", history=("We spoke of cats.",)))
    await conversation.configure(AddHistory("And of dogs."))
    assert text_of(await play(conversation, "hi")) == "Be brief.\n\nWe spoke of cats.\n\nAnd of dogs.\n\nhi"
    assert text_of(await play(conversation, "more")) == "more"
    with pytest.raises(Unsupported):
        await conversation.configure(SetOptions({"model": "m"}))


async def test_files_become_attachments(sh: Script, tmp_path: Path) -> None:
    conversation = await sh('echo "$AGENT_ATTACHMENTS"; echo "$AGENT_IMAGE_URL"').open(request(workspace=str(tmp_path)))
    files = ("a b.png", "/etc/hosts", "https://example.org/x.mp4")
    events = [event async for event in conversation.turn(UserMessage("look", files))]
    listed, image = text_of(events).split("\n")
    assert json.loads(listed) == [
        {"type": "image", "url": f"file://{tmp_path}/a%20b.png", "name": "a b.png"},
        {"type": "file", "url": "file:///etc/hosts", "name": "hosts"},
        {"type": "video", "url": "https://example.org/x.mp4", "name": "x.mp4"},
    ]
    assert image == f"file://{tmp_path}/a%20b.png"


async def test_oddities_are_told_but_not_without_end(sh: Script) -> None:
    conversation = await sh("for n in 1 2 3 4 5 6; do echo 'AGENT_SESSION:no good'; done; echo ok").open(request())
    events = await play(conversation)
    assert len([event for event in events if isinstance(event, core.Notice)]) == 3
    assert text_of(events) == "ok"


async def test_a_stopped_turn_ends_and_the_next_one_waits_for_the_process(sh: Script, tmp_path: Path) -> None:
    script = f"""
    if [ "$AGENT_MESSAGE" = first ]; then
        trap 'echo AGENT_SESSION:late; rm {tmp_path}/running; exit 0' TERM
        touch {tmp_path}/running; echo $$ > {tmp_path}/pid; echo 'AGENT_PARTIAL:"x"'
        while :; do sleep 0.05; done
    fi
    ls {tmp_path}/running 2>/dev/null; echo "session $AGENT_SESSION_ID"
    """
    conversation = await sh(script).open(request())
    events = []
    async for event in conversation.turn(UserMessage("first")):
        events.append(event)
        if isinstance(event, core.TextDelta):
            await conversation.cancel()
    assert events[-1] == core.TurnEnded("cancelled")
    assert text_of(await play(conversation, "second")) == "session late"
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_a_session_that_is_closed_gives_the_program_one_signal_and_its_grace(sh: Script, tmp_path: Path) -> None:
    end = f"echo term >> {tmp_path}/heard; sleep 1; echo AGENT_SESSION:late; echo done >> {tmp_path}/heard; exit 0"
    # Not `wait`: a signal that comes just before it is heard when it is over.
    agent = sh(
        f"""trap '{end}' TERM; echo 'AGENT_PARTIAL:"x"'; while :; do sleep 0.1; done""",
        kill_grace_secs=PATIENCE_SECONDS,
    )
    session = await Session.open(agent, MemoryLog("s"), Policy())
    events = session.subscribe()
    session.submit(UserMessage("go"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for item in events:
            if isinstance(item, core.Envelope) and item.event == core.TextDelta("x"):
                break
        await session.close()
    assert (tmp_path / "heard").read_text() == "term\ndone\n"
    assert session.state.journal == [{"agentproc_session": "late"}]


async def test_a_program_that_ignores_its_end_is_killed_after_the_grace(sh: Script, tmp_path: Path) -> None:
    script = f"""trap '' TERM; echo $$ > {tmp_path}/pid; echo 'AGENT_PARTIAL:"x"'; while :; do sleep 600; done"""
    conversation = await sh(script, kill_grace_secs=0.3).open(request())
    turn = conversation.turn(UserMessage("go"))
    assert await anext(turn) == core.TextDelta("x")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await conversation.close()
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_an_answer_of_partials_alone_that_are_not_wanted_is_explained(sh: Script) -> None:
    conversation = await sh("""echo 'AGENT_PARTIAL:"x"'""", streaming=False).open(request())
    (notice, ended) = await play(conversation)
    assert isinstance(notice, core.Notice)
    assert "nothing but partials" in notice.message
    assert ended == core.TurnEnded("success")


async def test_leaving_a_turn_ends_the_process(sh: Script, tmp_path: Path) -> None:
    conversation = await sh(f"""echo $$ > {tmp_path}/pid; echo 'AGENT_PARTIAL:"x"'; sleep 60""").open(request())
    turn = conversation.turn(UserMessage("go"))
    await anext(turn)
    await turn.aclose()
    until(lambda: not is_alive(int((tmp_path / "pid").read_text())))
    await conversation.close()


async def test_an_agent_that_talks_faster_than_it_is_heard_waits(sh: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentproc_run, "_AHEAD", 8)
    script = """yes 'AGENT_PARTIAL:"x"' | head -n 50000"""
    conversation = await sh(script, max_reply_chars=10**6).open(request())
    turn = conversation.turn(UserMessage("go"))
    for _ in range(10):
        await anext(turn)
    running = conversation._running
    assert running is not None
    assert len(running._queue) + len(running._batch) <= 2 * 8
    heard = 10
    async for event in turn:
        heard += isinstance(event, core.TextDelta)
    assert heard == 50_000


ASKING = """
def ask(id, tool):
    print(json.dumps({"type": "permission_request", "request_id": id, "tool_name": tool, "input": {"a": 1},
                      "description": "d"}), flush=True)
    return json.loads(sys.stdin.readline())
"""


async def test_a_permission_request_is_an_approval(py: Script) -> None:
    script = (
        ASKING
        + """
answers = [ask("r1", "Write"), ask("r2", "Bash")]
print(json.dumps({"type": "result", "text": " ".join(a["behavior"] + ":" + a.get("message", "") for a in answers),
                  "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5, "cost_usd": 0.1}}))
"""
    )
    conversation = await py(script, permission=True).open(request())
    events = await play(conversation, decide=lambda asked: Approve() if asked.name == "Write" else Deny("not that"))
    assert core.ToolRequested("r1", "Write", "edit", {"a": 1}, "d") in events
    assert core.ToolRequested("r2", "Bash", "exec", {"a": 1}, "d") in events
    assert core.ToolStarted("r1", "Write") in events
    assert [event.call_id for event in events if isinstance(event, core.ToolFinished)] == ["r1"]
    assert text_of(events) == "allow: deny:not that"
    assert events[-1] == core.TurnEnded("success", Usage(3, 4, 5))


async def test_a_request_id_that_waits_already_is_asked_and_answered_once(py: Script) -> None:
    script = (
        ASKING
        + """
print(json.dumps({"type": "permission_request", "request_id": "r1", "tool_name": "Write", "input": {}}), flush=True)
second = ask("r1", "Bash")
print(json.dumps({"type": "result", "text": second["behavior"]}))
"""
    )
    conversation = await py(script, permission=True).open(request())
    events = await play(conversation, decide=lambda asked: Approve())
    assert len([event for event in events if isinstance(event, core.ToolRequested)]) == 1
    assert text_of(events) == "allow"


@pytest.mark.parametrize(
    ("given", "outside"),
    [
        ({"file_path": "a.txt"}, False),
        ({"pattern": "**/*.py"}, False),
        ({"file_path": "/etc/shadow"}, True),
        ({"file_path": "~/.ssh/id_rsa"}, True),
        ({"path": "../elsewhere"}, True),
        ({"edits": [{"path": "/etc/passwd"}]}, True),
        ({"file_path": "WORKSPACE/b.txt"}, False),
        ({"file_path": "x" * 5000}, True),
    ],
)
async def test_a_request_that_names_a_file_elsewhere_reaches_outside(
    py: Script, tmp_path: Path, given: dict[str, Any], outside: bool
) -> None:
    given = json.loads(json.dumps(given).replace("WORKSPACE", str(tmp_path)))
    asked = {"type": "permission_request", "request_id": "r", "tool_name": "Read", "input": given}
    script = f"print(json.dumps({asked!r}), flush=True)\nsys.stdin.readline()"
    conversation = await py(script, permission=True).open(request(workspace=str(tmp_path)))
    events = await play(conversation, decide=lambda event: Deny())
    assert [event.outside for event in events if isinstance(event, core.ToolRequested)] == [outside]


async def test_the_session_is_kept_as_soon_as_it_is_known(sh: Script) -> None:
    journal = MemoryJournal()
    until_then = "trap 'sleep 0.1; exit 1' TERM; while :; do sleep 0.1; done"
    script = f"""echo AGENT_SESSION:early; echo 'AGENT_PARTIAL:"x"'; {until_then}"""
    conversation = await sh(script).open(request(journal=journal))
    turn = conversation.turn(UserMessage("go"))
    assert await anext(turn) == core.TextDelta("x")
    assert journal.records == [{"agentproc_session": "early"}]
    await conversation.close()


async def test_a_session_that_is_closed_is_not_written_to_any_more() -> None:
    journal = MemoryJournal()
    conversation = await AgentProcAgent(Profile(("true",))).open(request(journal=journal))
    await conversation.close()
    conversation._keep("s1")
    assert journal.records == []
    assert conversation.session_id == "s1"


async def test_thinking_is_thinking_and_other_roles_are_signs_of_life(py: Script) -> None:
    script = (
        "for role in ('thinking', 'output', 'plan'): print(json.dumps({'type': 'partial', 'text': role, 'role': role}))"
    )
    conversation = await py(script).open(request())
    events = await play(conversation)
    assert events[:3] == [core.ThinkingDelta("thinking"), core.TextDelta("output"), core.Progress("plan")]


def test_the_registry_makes_one_of_a_profiles_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("command: ./agent.sh\nname: mine\n")
    agent = registry.make(f"agentproc:{path}", {})
    assert isinstance(agent, AgentProcAgent)
    assert agent.name == "mine"
    with pytest.raises(ConfigError, match="needs a profile"):
        registry.make("agentproc:", {})
    with pytest.raises(ConfigError, match="nowhere"):
        registry.make("agentproc:nowhere.yaml", {})
