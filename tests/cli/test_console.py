"""`trunkline console`."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from tests.support.exchange_api import Asked, answering
from tests.support.invoked import invoke
from trunkline.cli.console import command

LINK = "http://127.0.0.1:4400/sign-in?code=abc"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", found.append)
    return found


def answer(asked: Asked) -> tuple[int, object]:
    assert (asked.method, asked.path) == ("POST", "/api/console/links")
    return 200, {"url": LINK}


def test_it_prints_a_link_and_opens_it_where_somebody_looks(home: Path, opened: list[str]) -> None:
    with answering(home, answer):
        # Its output is no terminal here.
        assert invoke(command).stdout == f"{LINK}\n"
        assert opened == []
        assert invoke(command, "--open").stdout == f"{LINK}\n"
        assert opened == [LINK]
        assert json.loads(invoke(command, "--json", "--open").stdout) == {"url": LINK}
    assert opened == [LINK]


def test_without_an_exchange_it_says_how_to_start_one() -> None:
    done = invoke(command)
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr
