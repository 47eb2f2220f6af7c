"""`trunkline ledger`, as people and programs run it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from trunkline.cli import ledger
from trunkline.wires.ledger import CONCEPTS, WIRES


def run(*arguments: str) -> str:
    result = CliRunner().invoke(ledger.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_without_a_terminal_it_is_plain_text_with_a_line_for_every_concept() -> None:
    text = run()
    assert "\x1b" not in text
    lines = text.splitlines()
    for concept in CONCEPTS:
        assert any(line.startswith(f"  {concept.name} ") for line in lines), concept
    assert "Lost: which call it belongs to" in text


def test_on_a_terminal_it_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "140")
    ledger.command(["--wire", "jsonstream"], standalone_mode=False)
    text = capsys.readouterr().out
    assert "jsonstream: " in text
    assert "│" in text
    for concept in CONCEPTS:
        assert concept.name.split()[0] in text


def test_as_json_every_row_says_all_that_is_known() -> None:
    rows = json.loads(run("--json"))["wires"]["jsonstream"]
    assert [row["concept"] for row in rows] == [concept.name for concept in CONCEPTS]
    progress = next(row for row in rows if row["concept"] == "Progress")
    assert progress == {
        "concept": "Progress",
        "group": "events",
        "what": "a sign of life",
        "fate": "degraded",
        "how": "text for display",
        "lost": "which call it belongs to",
        "lines": ["info"],
    }


def test_the_summary_counts_the_rows() -> None:
    first = run("--wire", "jsonstream").splitlines()[0]
    fates = [cell.fate for cell in WIRES["jsonstream"].values()]
    counts = [fates.count(fate) for fate in ("carried", "degraded", "refused")]
    assert first == "jsonstream: {} carried, {} degraded, {} refused".format(*counts)


def test_an_unknown_wire_is_wrong_usage_and_the_known_ones_are_told() -> None:
    result = CliRunner().invoke(ledger.command, ["--wire", "telegraph"])
    assert result.exit_code == 2
    assert "jsonstream" in result.stderr
