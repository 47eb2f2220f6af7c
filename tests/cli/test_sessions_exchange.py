"""`trunkline sessions fork` and `handover`: sessions of the exchange that runs here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.exchange_api import answering
from tests.support.invoked import invoke
from trunkline.cli.sessions import command

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
        (("fork", "s 1", "--at", "7", "--json"), {"at": 7}),
        (("handover", "s 1", "--to", "helper"), {"to": "helper"}),
    ],
)
def test_the_new_session_is_printed(home: Path, arguments: tuple[str, ...], body: object) -> None:
    with answering(home, lambda asked: (200, MADE)) as asked:
        done = invoke(command, *arguments)
    assert (done.exit_code, json.loads(done.stdout)) == (0, MADE)
    assert asked == [("POST", f"/api/sessions/s%201/{arguments[0]}", body)]


@pytest.mark.parametrize("arguments", [("fork", "s"), ("handover", "s", "--to", "x")])
def test_without_an_exchange_they_exit_1(arguments: tuple[str, ...]) -> None:
    done = invoke(command, *arguments)
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr
