"""`trunkline ledger`, as people and programs run it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from trunkline.base.escapes import without_escapes
from trunkline.cli import ledger
from trunkline.wires.ledger import CONCEPTS, WIRES
from trunkline.wires.ledger_matrix import MATRIX, SCENARIOS, WORDS


def run(*arguments: str) -> str:
    result = CliRunner().invoke(ledger.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, *flags: str
) -> str:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    ledger.command(list(flags), standalone_mode=False)
    return without_escapes(capsys.readouterr().out)


def test_without_a_terminal_it_is_plain_text_with_a_line_for_every_concept() -> None:
    text = run()
    assert "\x1b" not in text
    lines = text.splitlines()
    for concept in CONCEPTS:
        assert any(line.startswith(f"  {concept.name} ") for line in lines), concept
    assert "Lost: which call it belongs to" in text


def test_one_wire_on_a_terminal_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = on_a_terminal(monkeypatch, capsys, 140, "--wire", "jsonstream")
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


def test_the_matrix_has_a_word_for_every_agent_on_every_way_and_the_reasons() -> None:
    text = run("--matrix")
    assert "\x1b" not in text
    assert "  tryll       denied      denied      denied" in text
    assert "the way tryll, elsewhere: Tryll has no frame for a question" in text
    for word in WORDS:
        assert text.count(f"  {word} ") > 1


@pytest.mark.parametrize(("columns", "tables"), [(40, 5), (80, 2), (120, 1), (300, 1)])
def test_the_matrix_on_a_terminal_fits_its_columns_and_cuts_no_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, tables: int
) -> None:
    text = on_a_terminal(monkeypatch, capsys, columns, "--matrix")
    lines = text.splitlines()
    assert max(map(len, lines)) <= min(columns, 120)
    assert "…" not in text
    words = [line.split() for line in lines if line.split()[:1] == ["coder"]]
    assert len(words) == len(SCENARIOS) * tables
    resumed = " ".join(" ".join(row[1:]) for row in words[-tables:])
    assert resumed == "carried carried told again carried carried carried carried carried carried"


@pytest.mark.parametrize(("columns", "tables"), [(80, 2), (120, 1), (200, 1)])
def test_all_wires_on_a_terminal_are_side_by_side_as_far_as_they_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, tables: int
) -> None:
    text = on_a_terminal(monkeypatch, capsys, columns)
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in text
    for concept in CONCEPTS:
        beginning = f" {concept.name}  "
        rows = [line.removeprefix(beginning) for line in lines if line.startswith(beginning)]
        assert len(rows) == tables
        assert " ".join(rows).split() == [WIRES[wire][concept.name].fate for wire in sorted(WIRES)]
    assert "--wire NAME" in text


def test_the_matrix_as_json_has_all_cells_with_their_reasons() -> None:
    told = json.loads(run("--matrix", "--json"))
    assert len(told["cells"]) == len(told["agents"]) * len(told["ways"]) == len(MATRIX)
    cell = next(each for each in told["cells"] if (each["agent"], each["way"]) == ("coder", "tryll"))
    assert cell["tool"] == {"word": "elsewhere", "why": "Tryll has no frame for a question"}
    assert cell["text"]["word"] == "carried"


def test_the_matrix_of_one_wire_is_wrong_usage() -> None:
    result = CliRunner().invoke(ledger.command, ["--matrix", "--wire", "tryll"])
    assert result.exit_code == 2
    assert "leave `--wire` out" in result.stderr


def test_an_unknown_wire_is_wrong_usage_and_the_known_ones_are_told() -> None:
    result = CliRunner().invoke(ledger.command, ["--wire", "telegraph"])
    assert result.exit_code == 2
    assert "jsonstream" in result.stderr
