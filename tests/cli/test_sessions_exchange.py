"""`trunkline sessions` for those of an exchange: read from its logs, and forked and handed over by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.exchange_api import Asked, answering
from tests.support.invoked import invoke
from trunkline.base.programs import own_command_here
from trunkline.cli.sessions import command
from trunkline.core.events import Envelope, TurnEnded, TurnStarted, UserMessage
from trunkline.store.files import FileStore

MADE = {"id": "s2", "agent": "helper"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("fork", "s 1"), {}),
        (("fork", "s 1", "--at", "7"), {"at": 7}),
        (("handover", "s 1", "--to", "helper"), {"to": "helper"}),
    ],
)
def test_the_new_session_is_printed(home: Path, arguments: tuple[str, ...], body: object) -> None:
    with answering(home, lambda asked: (200, MADE)):
        told = invoke(command, *arguments)
    assert told.stdout.splitlines()[-1] == f"Go on with: {own_command_here()} chat helper --attach --resume s2"
    with answering(home, lambda asked: (200, MADE)) as asked:
        done = invoke(command, *arguments, "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, MADE)
    assert asked == [("POST", f"/api/sessions/s%201/{arguments[0]}", body)]


@pytest.mark.parametrize("arguments", [("fork", "s"), ("handover", "s", "--to", "x")])
def test_without_an_exchange_they_exit_1(arguments: tuple[str, ...]) -> None:
    done = invoke(command, *arguments)
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr


KNOWN = {"sessions": [{"id": "ab-2"}, {"id": "ab-1"}, {"id": "c"}]}


def knows(asked: Asked) -> tuple[int, object]:
    if asked.method == "GET":
        return 200, KNOWN
    if asked.path in ("/api/sessions/ab-1/fork", "/api/sessions/ab-2/fork"):
        return 200, MADE
    return 404, {"error": {"code": "session_not_found", "message": "There is no session `x` here."}}


@pytest.mark.parametrize(
    ("said", "path"), [("ab-1", "ab-1"), ("ab-2", "ab-2"), ("latest", "ab-2"), ("ab", None), ("x", None)]
)
def test_the_beginning_of_an_id_is_enough_if_no_other_begins_so(home: Path, said: str, path: str | None) -> None:
    with answering(home, knows) as asked:
        done = invoke(command, "fork", said)
    if path is None:
        assert done.exit_code == 1
        told = "The ids of 2 sessions begin with `ab`." if said == "ab" else "There is no session `x` here."
        assert told in done.stderr
    else:
        assert (done.exit_code, asked[-1].path) == (0, f"/api/sessions/{path}/fork")


@pytest.fixture
def kept(home: Path) -> str:
    """A session in the home of an exchange that does not run."""
    log = FileStore(home / "sessions").create("talk", "/work", "helper")
    for seq, event in enumerate((TurnStarted(UserMessage("Is the bridge open?")), TurnEnded("success")), 1):
        log.append(Envelope("talk", seq, 1, 1_700_000_000.0 + seq, event))
    log.close()
    return "talk"


def test_sessions_of_the_exchange_are_listed_and_read_whether_it_runs_or_not(kept: str) -> None:
    listed = json.loads(invoke(command, "list", "--exchange", "--json").stdout)["sessions"]
    assert [(each["id"], each["agent"], each["title"], each["turns"]) for each in listed] == [
        (kept, "helper", "Is the bridge open?", 1)
    ]
    assert "Is the bridge open?" in invoke(command, "list", "--exchange").stdout
    for arguments in (("show", "ta"), ("show", "latest"), ("export", "talk", "--format", "md")):
        done = invoke(command, *arguments, "--exchange")
        assert (done.exit_code, "Is the bridge open?" in done.stdout) == (0, True), done.stderr


def test_who_looks_for_one_among_their_own_is_told_where_it_is(kept: str) -> None:
    assert "trunkline sessions list --exchange" in invoke(command, "list").stderr
    missed = invoke(command, "show", kept)
    assert (missed.exit_code, "add `--exchange`" in missed.stderr) == (1, True)
    assert "--exchange" not in invoke(command, "show", "nothing").stderr
    assert invoke(command, "show", "latest", "--exchange").exit_code == 0


def test_an_exchange_without_sessions_lists_none(home: Path) -> None:
    done = invoke(command, "list", "--exchange")
    assert (done.exit_code, done.stderr) == (0, "No sessions are kept here yet.\n")
    assert invoke(command, "show", "latest", "--exchange").exit_code == 1
