"""The bundled profiles with their programs, played by fakes that insist on what the real ones take."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.fake_cli import CRASHED, DEAD, EXIT_CRASHED, FAKES, dead_words, install_fake
from tests.support.fake_cli_plays import LOOKING, NEW, REFUSED, answer_to, halves
from tests.support.patience import PATIENCE_SECONDS
from trunkline.wires.agentproc import drive, hub, streams
from trunkline.wires.agentproc.drive import Outcome, Run
from trunkline.wires.agentproc.messages import Partial, Said, TurnRequest

pytestmark = pytest.mark.process

#: What a chat user may send, and no program may take for anything but a message.
NASTY = "--help; $(touch x) `id` {{SESSION_ID}} ${HOME}\n--yolo 'ä' \"q\""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    for name in FAKES:
        install_fake(tmp_path, name)
    return {"PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}


def run(name: str, message: str, environ: dict[str, str], session: str = "", streaming: bool = True) -> Outcome:
    profile = hub.load(name).replace(timeout_secs=PATIENCE_SECONDS)
    return drive.run(profile, TurnRequest(message, session_id=session, streaming=streaming), environ=environ)


@pytest.mark.parametrize("name", FAKES)
def test_a_message_is_answered_and_the_session_goes_on(name: str, environ: dict[str, str]) -> None:
    first = run(name, NASTY, environ)
    assert (first.error, first.exit_code) == ("", 0)
    assert "".join(first.partials) == answer_to(NASTY)
    assert first.reply == ""
    assert first.session_id == NEW.get(name, "")
    # The fake refuses other arguments than those for this session.
    second = run(name, "tool", environ, session=first.session_id, streaming=False)
    assert (second.error, second.exit_code) == ("", 0)
    assert second.partials == ()
    assert second.reply == f"{LOOKING}\n\n{answer_to('tool')}"
    assert second.session_id == first.session_id


@pytest.mark.parametrize("name", FAKES)
def test_failures_are_told_and_the_turn_has_failed(name: str, environ: dict[str, str]) -> None:
    refused = run(name, "fail", environ)
    assert refused.exit_code != 0
    assert REFUSED in refused.error
    assert refused.partials == ()
    assert not streams.is_dead_session(refused.error)
    crashed = run(name, "crash", environ)
    assert crashed.exit_code == EXIT_CRASHED
    assert crashed.error
    if hub.load(name).include_stderr_in_reply:
        assert CRASHED in crashed.error


@pytest.mark.parametrize("name", [name for name in FAKES if dead_words(name, DEAD)])
def test_a_dead_session_is_told_as_one(name: str, environ: dict[str, str]) -> None:
    dead = run(name, "hi", environ, session=DEAD)
    assert dead.exit_code == 1
    assert dead.partials == ()
    assert streams.is_dead_session(dead.error)


def test_cursor_begins_again_what_it_does_not_know_and_the_new_id_counts(environ: dict[str, str]) -> None:
    anew = run("cursor", "hi", environ, session=DEAD)
    assert (anew.exit_code, anew.session_id) == (0, NEW["cursor"])


def test_what_was_said_before_a_run_is_stopped_is_heard_and_its_session_kept(environ: dict[str, str]) -> None:
    heard = threading.Event()

    def hear(said: Said) -> None:
        if said == Partial(halves(answer_to("slow"))[1]):
            heard.set()

    def stop() -> None:
        heard.wait(PATIENCE_SECONDS)
        turn_run.cancel()

    profile = hub.load("codex").replace(timeout_secs=PATIENCE_SECONDS, kill_grace_secs=1.0)
    turn_run = Run(profile, TurnRequest("slow"), hear=hear, environ=environ)
    stopper = threading.Thread(target=stop)
    stopper.start()
    outcome = turn_run.perform()
    stopper.join()
    assert (outcome.cancelled, outcome.exit_code) == (True, drive.EXIT_INTERRUPTED)
    assert outcome.partials == halves(answer_to("slow"))
    assert outcome.session_id == NEW["codex"]


def test_a_program_sees_nothing_of_the_bridges_secrets(tmp_path: Path, environ: dict[str, str]) -> None:
    spy = tmp_path / "codex"
    spy.write_text('#!/bin/sh\nenv > "$HOME/seen"\n')
    run("codex", "hi", {**environ, "TELEGRAM_BOT_TOKEN": "123:abc", "OPENAI_API_KEY": "sk-own"})
    seen = (tmp_path / "seen").read_text()
    assert "TELEGRAM_BOT_TOKEN" not in seen
    assert "OPENAI_API_KEY=sk-own" in seen


@pytest.mark.parametrize("name", ["codex", "claude-code"])
def test_a_program_that_is_not_here_is_a_clear_error(name: str, tmp_path: Path) -> None:
    outcome = run(name, "hi", {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert outcome.exit_code == drive.EXIT_NOT_FOUND
    assert hub.PROGRAMS[name].command in outcome.error
