"""How commands find the exchange that runs here, and ask it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.exchange_api import answering
from trunkline.cli import local_exchange
from trunkline.cli.local_exchange import ExchangeRefused
from trunkline.core.faults import AgentFailed, ConfigError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_its_home_is_the_usual_one_unless_the_file_in_this_directory_names_another(here: Path) -> None:
    assert local_exchange.home() == str(here / "state" / "exchange")
    (here / "trunkline.toml").write_text('[agents.a]\nagent = "echo"\n')
    assert local_exchange.home() == str(here / "state" / "exchange")
    (here / "trunkline.toml").write_text('[exchange]\nhome = "there"\n')
    assert local_exchange.home() == str(here / "there")
    (here / "trunkline.toml").write_text('[exchange]\nhome = "~/there"\n')
    assert local_exchange.home() == str(Path.home() / "there")


def test_a_file_that_cannot_be_read_is_told_with_its_line(here: Path) -> None:
    (here / "trunkline.toml").write_text("[exchange]\nhome =\n")
    with pytest.raises(ConfigError, match=r"trunkline.toml`, line 2"):
        local_exchange.home()


def test_without_an_exchange_they_say_how_to_start_the_one_of_this_directory(here: Path) -> None:
    with pytest.raises(ConfigError, match="No exchange is running here") as nowhere:
        local_exchange.request("GET", "/api/usage")
    assert "go to the directory of its `trunkline.toml`" in (nowhere.value.hint or "")
    (here / "trunkline.toml").write_text('[exchange]\nhome = "there"\n')
    with pytest.raises(ConfigError, match="No exchange is running here") as stopped:
        local_exchange.request("GET", "/api/usage")
    assert stopped.value.hint == "Start it with `trunkline up --config trunkline.toml`."


def test_a_refusal_is_told_in_the_exchanges_own_words(here: Path) -> None:
    refusal = {"error": {"code": "decided", "message": "Too late."}, "decided_by": "ana"}
    with answering(here / "state" / "exchange", lambda asked: (409, refusal)) as asked:
        with pytest.raises(ExchangeRefused, match=r"Too late\.") as refused:
            local_exchange.request("POST", "/api/x", {"a": 1})
    assert (refused.value.code, refused.value.body["decided_by"]) == ("decided", "ana")
    assert asked == [("POST", "/api/x", {"a": 1})]


@pytest.mark.parametrize("said", [b"<html>", b'"\xff"'])
def test_an_answer_that_is_no_json_is_an_error(here: Path, said: bytes) -> None:
    with answering(here / "state" / "exchange", lambda asked: (200, said)):
        with pytest.raises(AgentFailed, match="not JSON"):
            local_exchange.request("GET", "/api/x")
