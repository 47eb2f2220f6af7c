"""`trunkline usage`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.exchange_api import answering
from tests.support.invoked import invoke
from trunkline.cli.usage import command

ROW = {"day": "2026-11-16", "turns": 2, "input_tokens": 1200, "output_tokens": 34, "usd": 0.5}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


def test_it_prints_a_line_for_each_of_what_was_asked_for(home: Path) -> None:
    with answering(home, lambda asked: (200, {"usage": [ROW]})) as asked:
        done = invoke(command, "--by", "day")
        assert json.loads(invoke(command, "--json").stdout) == {"usage": [ROW]}
    assert [each.path for each in asked] == ["/api/usage?by=day", "/api/usage?by=agent"]
    assert done.stdout.split() == [
        "DAY", "TURNS", "INPUT", "OUTPUT", "USD", "2026-11-16", "2", "1,200", "34", "0.5000",
    ]  # fmt: skip


def test_agents_are_held_against_their_budgets(home: Path) -> None:
    limits = {
        "tokens_per_day": {"used": 1234, "limit": 2_000_000},
        "usd_per_day": {"used": 0.5, "limit": 5.0},
        "turns_per_hour": {"used": 2, "limit": 60},
    }
    rows = [{**ROW, "agent": "helper", "budget": limits}, {**ROW, "agent": "echo", "budget": {}}]
    with answering(home, lambda asked: (200, {"usage": rows})):
        head, helper, echo = invoke(command).stdout.splitlines()
    assert head.endswith("OF ITS BUDGET")
    assert helper.endswith("1,234 of 2,000,000 tokens today, 0.50 of 5.00 USD today, 2 of 60 turns this hour")
    assert echo.endswith(" -")


def test_a_cost_that_nobody_knows_is_not_told_as_nothing(home: Path) -> None:
    rows = [{**ROW, "usd": 0.0}, {**ROW, "usd": 0.0, "input_tokens": 0, "output_tokens": 0}]
    with answering(home, lambda asked: (200, {"usage": rows})):
        _, unknown, nothing = invoke(command, "--by", "day").stdout.splitlines()
    assert (unknown.split()[-1], nothing.split()[-1]) == ("-", "0.0000")


def test_without_an_exchange_it_exits_1() -> None:
    done = invoke(command)
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr
