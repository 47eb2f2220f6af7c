"""The benchmark runs, every row has its control, and a missed goal is told."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import jsonstream
from bench._command import EXIT_MISSED
from bench._measure import Goal, Row, Spread, Taken, clean_environment, interleaved, rate_row, spread, time_row

from tests.support.benchmarks import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent

#: Row by row: how its name begins, its control, and the goal that it was given when the work began.
PROMISED = [
    ("spawn to `ready`", "python -c pass", "wall <= 6"),
    ("spawn to first delta, message sent at spawn", "python -c pass", "wall <= 10"),
    ("spawn to first delta, message sent at `ready`", "python -c pass", "wall <= 10"),
    ("codec alone, block buffer", "dumps + print", "CPU >= 3"),
    ("codec alone, each line at once", "dumps + print(flush)", "CPU >= 3"),
    ("agent -> session -> log -> pipe", "dumps + print(flush)", "CPU >= 1"),
    ("agent -> session -> log -> pipe", "dumps + print", None),
    ("the same, one delta per tick", "dumps + print(flush)", None),
    ("round trip of a `ping`", "cat", "wall <= 3"),
    ("event 1,000 in a file log", "event 100", "CPU <= 1.2"),
    ("resuming 2,000 events, file log", "1,000 events", None),
    ("memory idle, resident", "python -c 'input()'", None),
    ("memory idle, its own (USS)", "python -c 'input()'", None),
    ("memory idle, its own and changed", "python -c 'input()'", None),
    ("memory after 300 events, resident", "python -c 'input()'", None),
    ("memory after 300 events, its own (USS)", "python -c 'input()'", None),
    ("memory after 300 events, its own and changed", "python -c 'input()'", None),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the smallest run tells programs."""
    scratch = tmp_path_factory.mktemp("scratch")
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "jsonstream.py"), "--tiny", "--json"],
        cwd=scratch, env=os.environ | {"TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"},
        capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.process
@pytest.mark.timeout(PATIENCE_SECONDS + 10)
def test_every_row_runs_with_its_control_and_its_goal(run: dict[str, Any]) -> None:
    rows = run["rows"]
    one_core = len(os.sched_getaffinity(0)) == 1
    assert len(rows) == len(PROMISED)
    for row, (name, control, goal) in zip(rows, PROMISED, strict=True):
        assert row["name"].startswith(name)
        # A round trip between two cores cannot be had on one.
        expected = None if one_core and "ping" in name else goal
        assert (row["control_name"], row["goal"]) == (control, expected), name
        for part in ("subject", "control", "ratio"):
            assert math.isfinite(row[part]["median"]), name
            assert 0 < row[part]["low"] <= row[part]["median"] <= row[part]["high"], name
        assert row["cpu_ratio"] is not None or "memory" in name


@pytest.mark.process
@pytest.mark.timeout(PATIENCE_SECONDS + 10)
def test_the_environment_is_told(run: dict[str, Any]) -> None:
    around = run["environment"]
    assert around["python"].endswith(".".join(map(str, sys.version_info[:3])))
    assert around["cores"] == len(os.sched_getaffinity(0))
    assert len(around["load"]) == 3
    assert around["unset for children"] == ["PYTHONUNBUFFERED"]


def test_children_do_not_inherit_what_would_change_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "TRUNKLINE_AGENT"):
        monkeypatch.setenv(name, "1")
    environment = clean_environment(TRUNKLINE_HOME="/h")
    assert environment["PATH"] == os.environ["PATH"]
    assert environment["TRUNKLINE_HOME"] == "/h"
    assert not {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "TRUNKLINE_AGENT"} & set(environment)


def test_pairs_are_taken_by_turns_and_the_first_is_left_out() -> None:
    calls: list[str] = []

    def subject() -> Taken:
        calls.append("s")
        return Taken(len(calls))

    def control() -> Taken:
        calls.append("c")
        return Taken(len(calls))

    pairs = interleaved(2, subject, control)
    assert "".join(calls) == "sc" + "sc" + "cs"
    assert pairs == [(Taken(3), Taken(4)), (Taken(6), Taken(5))]


def test_the_median_stands_between_its_tenth_and_ninetieth_percentile() -> None:
    assert spread([float(value) for value in range(101)]) == Spread(50.0, 10.0, 90.0, 101)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0, 1)


def test_the_ratio_of_times_is_how_much_longer_and_that_of_rates_how_many_times_as_many() -> None:
    pairs = [(Taken(2.0, 1.0), Taken(1.0, 4.0))]
    slower = time_row("a", pairs, "b")
    assert (slower.subject.median, slower.control.median, slower.ratio.median) == (2000.0, 1000.0, 2.0)
    assert slower.cpu_ratio == spread([0.25])
    fewer = rate_row("a", 1000, pairs, "b")
    assert (fewer.subject.median, fewer.control.median, fewer.ratio.median) == (0.5, 1.0, 0.5)
    assert fewer.cpu_ratio == spread([4.0])


def test_without_processor_times_there_is_no_ratio_of_them() -> None:
    assert time_row("a", [(Taken(2.0), Taken(1.0, 1.0))], "b").cpu_ratio is None


def row(wall: float, cpu: float, goal: Goal | None) -> Row:
    return Row("a figure", "ms", spread([1.0]), "a control", spread([1.0]), spread([wall]), spread([cpu]), goal)


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (None, "reported"),
        (Goal("<=", 6), "met"),
        (Goal("<=", 5.2), "close"),
        (Goal("<=", 4.9), "missed"),
        (Goal(">=", 4), "met"),
        (Goal(">=", 4.9), "close"),
        (Goal(">=", 5.1), "missed"),
        (Goal("<=", 3, "CPU"), "met"),
        (Goal(">=", 3, "CPU"), "missed"),
    ],
    ids=str,
)
def test_a_goal_is_judged_by_the_median_of_its_own_ratio(goal: Goal | None, verdict: str) -> None:
    assert row(5.0, 2.0, goal).verdict == verdict


@pytest.mark.parametrize(("limit", "code"), [(6, 0), (4, EXIT_MISSED)])
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_missed_goal_is_named_and_fails_the_run(
    limit: float, code: int, flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jsonstream, "measure", lambda sizes, progress: [row(5.0, 2.0, Goal("<=", limit))])
    assert jsonstream.main(flags) == code
    out, err = capsys.readouterr()
    assert "a figure" in out
    assert ("missed: a figure: 5x of `a control`, goal wall <= 4" in err) is (code != 0)


def test_the_table_shows_both_figures_both_ratios_and_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jsonstream, "measure", lambda sizes, progress: [row(5.0, 2.0, Goal("<=", 8))])
    jsonstream.main([])
    last = capsys.readouterr().out.splitlines()[-1]
    assert " ".join(last.split()) == "a figure 1 ms 1 ms a control 5x 5..5 2x 2..2 wall <= 8 met"
