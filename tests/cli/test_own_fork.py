"""`trunkline sessions fork` of one's own sessions: nobody else is needed for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.exchange_api import answering
from tests.support.invoked import invoke
from trunkline.base import paths
from trunkline.cli.sessions import command
from trunkline.core.events import Envelope, Event, Journaled, Notice, TextDelta, TurnEnded, TurnStarted, UserMessage
from trunkline.store.files import FileStore


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session of three turns, the last of which is not over."""
    monkeypatch.chdir(tmp_path)
    log = FileStore(paths.sessions_dir()).create("talk", str(tmp_path), "coder")
    told: list[tuple[int, Event]] = [(0, Notice("Before."))]
    for turn in (1, 2):
        said = (
            TurnStarted(UserMessage(f"Question {turn}")),
            Journaled({"n": turn}),
            TextDelta("A"),
            TurnEnded("success"),
        )
        told += [(turn, event) for event in said]
    told.append((3, TurnStarted(UserMessage("Question 3"))))
    for seq, (turn, event) in enumerate(told, 1):
        log.append(Envelope("talk", seq, turn, 1_700_000_000.0 + seq, event))
    log.close()
    return "talk"


def made(*arguments: str) -> list[Event]:
    """The events of the new session."""
    done = invoke(command, "fork", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    new = json.loads(done.stdout)
    assert new["agent"] == "coder"
    assert new["id"] != "talk"
    found = FileStore(paths.sessions_dir()).peek(new["id"])
    return [record.event for record in found.records if isinstance(record, Envelope)]


def questions(events: list[Event]) -> list[str]:
    return [event.message.text for event in events if isinstance(event, TurnStarted)]


@pytest.mark.parametrize("session", ["talk", "ta", "latest"])
def test_all_of_it_is_taken_along_and_a_turn_in_progress_ends_there(session: str) -> None:
    events = made(session)
    assert questions(events) == ["Question 1", "Question 2", "Question 3"]
    assert events[-1] == TurnEnded("cancelled")


@pytest.mark.parametrize(
    ("flag", "number", "last"), [("--at", "5", ["Question 1"]), ("--turn", "1", ["Question 1"]), ("--turn", "0", [])]
)
def test_or_as_much_of_it_as_is_asked_for(flag: str, number: str, last: list[str]) -> None:
    events = made("talk", flag, number)
    assert questions(events) == last
    assert [event for event in events if isinstance(event, Journaled)] == [Journaled({"n": 1})] * len(last)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("talk", "--at", "99"), 1, "has no event 99: its last one is 10"),
        (("talk", "--turn", "4"), 1, "has no turn 4: its last one is 3"),
        (("talk", "--at", "1", "--turn", "1"), 2, "cannot go together"),
        (("nobody",), 1, "Session 'nobody' not found. `trunkline sessions list` shows those there are."),
        (("nobody", "--at", "5"), 1, "Session 'nobody' not found. `trunkline sessions list` shows those there are."),
        (("nobody", "--turn", "1"), 1, "Session 'nobody' not found. `trunkline sessions list` shows those there are."),
    ],
)
def test_what_there_is_not_is_said(arguments: tuple[str, ...], code: int, told: str) -> None:
    done = invoke(command, "fork", *arguments)
    assert done.exit_code == code
    assert told in done.stderr


def test_people_are_told_how_to_go_on_with_the_new_session() -> None:
    done = invoke(command, "fork", "talk")
    assert done.exit_code == 0, done.stderr
    new = next(info.id for info in FileStore(paths.sessions_dir()).list() if info.id != "talk")
    first, second = done.stdout.splitlines()
    assert first == f"The new session is {new}."
    assert re.fullmatch(rf"Go on with: \S*trunkline chat coder (--workspace \S+ )?--resume {new}", second)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"provider": "mock"}, "coder --provider mock "),
        ({"model": "m-1", "base_url": "http://127.0.0.1:1/v1"}, "coder --model m-1 --base-url http://127.0.0.1:1/v1 "),
        ({"provider": "mock", "sandbox": "on"}, "coder --provider mock --sandbox on "),
        ({"agent": "acp:one two"}, "'acp:one two' "),
        ({"something": "of a newer version"}, "coder "),
    ],
)
def test_they_are_told_all_that_the_session_was_begun_with(given: dict[str, str], words: str, tmp_path: Path) -> None:
    log = FileStore(paths.sessions_dir()).create("given", str(tmp_path), "coder", given)
    for seq, event in enumerate((TurnStarted(UserMessage("Hi")), TurnEnded("success")), 1):
        log.append(Envelope("given", seq, 1, 1_700_000_000.0 + seq, event))
    log.close()
    for forked in ("given", "latest"):
        # The second is a fork of the first.
        done = invoke(command, "fork", forked)
        assert done.exit_code == 0, done.stderr
        assert f"trunkline chat {words}--resume " in done.stdout


def test_a_session_of_the_exchange_can_be_cut_at_a_turn_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    log = FileStore(tmp_path / "exchange" / "sessions").create("shared", "/work", "helper")
    for seq, event in enumerate((TurnStarted(UserMessage("Hi")), TurnEnded("success")), 1):
        log.append(Envelope("shared", seq, 1, 1_700_000_000.0 + seq, event))
    log.close()
    with answering(tmp_path / "exchange", lambda asked: (200, {"id": "new", "agent": "helper"})) as asked:
        done = invoke(command, "fork", "shared", "--turn", "1")
    assert done.exit_code == 0, done.stderr
    assert asked[-1][2] == {"at": 2}
