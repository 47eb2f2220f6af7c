"""Going on with a session: only with the agent and in the directory that it was begun with, unless told otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.echo import EchoAgent
from trunkline.base import paths
from trunkline.base.vocabulary import Mode
from trunkline.cli import opening, shelf
from trunkline.cli.opening import OfAnotherAgent, OfAnotherDirectory, OpenedLog
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Envelope,
    Granted,
    ModeChanged,
    TextDelta,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import SessionHeld, SessionNotFound
from trunkline.core.session import Session
from trunkline.store.files import FileStore

HERE, THERE = "/here", "/there"


def keep(agent: str | None = "coder", workspace: str = HERE, session: str = "kept") -> None:
    log = FileStore(paths.sessions_dir()).create(session, workspace, agent)
    said = (TurnStarted(UserMessage("I am Ann", (), "m")), TextDelta("Hello "), TextDelta("Ann."), TurnEnded("success"))
    for seq, event in enumerate(said, 1):
        log.append(Envelope(session, seq, 1, 1_700_000_000.0, event))
    log.close()


def opened(agent: str = "coder", workspace: str = HERE, resume: str = "kept", **how: Any) -> OpenedLog:
    return opening.session_log(workspace, session_id=None, resume=resume, kept=True, agent=agent, **how)


def test_the_same_agent_goes_on_in_the_same_directory() -> None:
    keep()
    found = opened()
    assert (found.log.session, found.resumed, found.before) == ("kept", True, None)
    found.give_up()
    assert shelf.read("kept").info.agent == "coder"


def test_another_agent_is_refused_with_the_name_of_the_one_that_it_is() -> None:
    keep()
    with pytest.raises(OfAnotherAgent, match=r"is with the agent `coder`\. Name that agent, .*`--anyway`"):
        opened("echo")
    opened().log.close()  # nobody holds it


def test_another_directory_is_refused_with_its_name() -> None:
    keep()
    with pytest.raises(OfAnotherDirectory, match=r"Session `kept` belongs to the directory `/here`.*`--anyway`"):
        opened(workspace=THERE)
    opened(workspace=THERE, roams=True).log.close()


def test_a_session_goes_to_another_directory_if_it_is_told_to() -> None:
    keep()
    found = opened(workspace=THERE, anyway=True)
    assert (found.log.session, found.resumed, found.is_moved) == ("kept", True, True)
    found.log.close()
    for workspace, roams in ((HERE, False), (THERE, True)):
        stays = opened(workspace=workspace, roams=roams)
        assert not stays.is_moved
        stays.log.close()


@pytest.mark.parametrize(("workspace", "mode", "left"), [(HERE, "yolo", 1), (THERE, "auto_edit", 0)])
async def test_what_was_granted_in_one_directory_is_not_granted_in_another(
    workspace: str, mode: Mode, left: int
) -> None:
    log = FileStore(paths.sessions_dir()).create("kept", HERE, "echo")
    for seq, event in enumerate((ModeChanged("yolo"), Granted("edit")), 1):
        log.append(Envelope("kept", seq, 0, 1_700_000_000.0, event))
    log.close()
    found, policy = opened("echo", workspace, anyway=True), Policy("auto_edit")
    session = await Session.open(EchoAgent(), found.log, policy, resume=True, mode=found.mode(None, policy))
    told = await opening.settle(session, found)
    assert (session.mode, len(session.grants), told is None) == (mode, left, bool(left))
    await session.close()
    assert found.mode("default", policy) == "default"


async def test_what_was_granted_elsewhere_meanwhile_is_not_granted_at_home_and_is_again_elsewhere() -> None:
    log = FileStore(paths.sessions_dir()).create("kept", HERE, "echo")
    given = (Granted("edit", workspace=HERE), Granted("exec", workspace=THERE), ModeChanged("yolo", THERE))
    for seq, event in enumerate(given, 1):
        log.append(Envelope("kept", seq, 0, 1_700_000_000.0, event))
    log.close()
    for workspace, category in ((HERE, "edit"), (THERE, "exec"), (HERE, "edit")):
        found, policy = opened("echo", workspace, anyway=True), Policy("auto_edit")
        mode = found.mode(None, policy)
        session = await Session.open(EchoAgent(), found.log, policy, resume=True, mode=mode, workspace=workspace)
        told = await opening.settle(session, found)
        assert told == "What was granted to this session in other directories is not granted here."
        assert (session.mode, [grant.category for grant in session.grants]) == ("auto_edit", [category])
        await session.close()


def test_another_agent_begins_again_if_it_is_told_to_and_hears_what_was_said() -> None:
    keep()
    found = opened("echo", anyway=True)
    assert not found.resumed
    assert found.before == "User: I am Ann\n\nAssistant: Hello Ann."
    found.give_up()
    assert [info.id for info in shelf.sessions()] == ["kept"]


def test_a_session_of_nobody_in_particular_is_anybodys() -> None:
    keep(agent=None)
    found = opened("echo")
    assert found.resumed
    found.log.close()


def test_the_latest_is_the_agents_own() -> None:
    keep(session="mine")
    keep("echo", session="its")
    os.utime(Path(paths.sessions_dir()) / "mine.log", (0, 1_700_000_000))
    found = opened(resume=opening.LATEST)
    assert found.log.session == "mine"
    with pytest.raises(SessionHeld):
        opened(resume=opening.LATEST)
    found.log.close()


def run(*arguments: str, asked: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trunkline", *arguments],
        input=asked, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip


@pytest.mark.process
def test_chat_refuses_what_is_anothers_and_with_anyway_tells_the_agent_what_was_said(tmp_path: Path) -> None:
    there = str(tmp_path)
    begun = run("chat", "echo", "-q", "--workspace", there, "--session-id", "first", "-p", "I am Ann")
    assert begun.returncode == 0, begun.stderr
    mock = ("chat", "coder", "--provider", "mock", "--resume", "fir", "-p", "who?")
    refused = run(*mock, "--workspace", there)
    assert refused.returncode == 1
    assert "Session `first` is with the agent `echo`." in refused.stderr
    elsewhere = run("chat", "echo", "--resume", "first", "-p", "x")
    assert elsewhere.returncode == 1
    assert f"Session `first` belongs to the directory `{there}`." in elsewhere.stderr
    told = run(*mock, "--workspace", there, "--anyway")
    assert told.returncode == 0, told.stderr
    assert "This is a new session; its agent is given the earlier conversation." in told.stderr
    newest = shelf.sessions()[0]
    assert newest.agent == "coder"
    assert "told what was said before: User: I am Ann" in run("sessions", "show", newest.id).stdout


@pytest.mark.process
def test_a_host_is_refused_a_session_of_another_agent_before_it_is_ready() -> None:
    keep(workspace=os.getcwd())
    stream = ("agent", "--json-stream", "--agent", "echo", "--resume", "kept")
    refused = run(*stream)
    (line,) = refused.stdout.splitlines()
    assert (refused.returncode, json.loads(line)["error"]["code"]) == (1, "config_error")
    assert "Session `kept` is with the agent `coder`." in line
    ready = json.loads(run(*stream, "--anyway").stdout.splitlines()[0])
    assert ready["type"] == "ready"
    assert ready["session_id"] != "kept"


def test_where_no_session_is_the_next_step_is_told() -> None:
    with pytest.raises(SessionNotFound, match=r"No sessions found in .*\. Leave `--resume` out to begin one"):
        opened(resume=opening.LATEST)
