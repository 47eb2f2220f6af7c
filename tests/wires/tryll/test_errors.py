"""The numbers of the errors."""

from __future__ import annotations

from pathlib import Path

from trunkline.core.fault_table import TABLE
from trunkline.wires.tryll.codec import FrameTooLarge, Malformed, UnknownKind
from trunkline.wires.tryll.errors import CATALOGUE, RECOVERY, TryllError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "tryll.md"


def test_an_error_says_its_number_and_its_message() -> None:
    error = TryllError(3004, "agent 7 is in a turn")
    assert (error.code, error.message, error.name) == (3004, "agent 7 is in a turn", "AgentBusy")
    assert str(error) == "[3004] agent 7 is in a turn"


def test_an_error_without_a_message_has_that_of_the_catalogue() -> None:
    assert TryllError(2002).message == "The session has not been configured."


def test_a_number_that_nobody_knows_is_kept() -> None:
    error = TryllError(9999, "something new")
    assert (error.code, error.message, error.name) == (9999, "something new", "")
    assert TryllError(9999).message


def test_every_number_that_faults_and_frames_use_is_in_the_catalogue() -> None:
    used = {form.tryll for form in TABLE.values()} | {kind.code for kind in (Malformed, UnknownKind, FrameTooLarge)}
    assert used <= set(CATALOGUE)


def test_the_page_lists_every_error() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| code | name | |\n")[1].split("\n\n")[0]
    assert table.splitlines()[1:] == [f"| {each.code} | `{each.name}` | {each.text} |" for each in CATALOGUE.values()]


def test_there_is_one_advice_for_every_error_and_none_for_what_nobody_knows() -> None:
    for code in CATALOGUE:
        assert len([1 for first, last in RECOVERY if first <= code <= last]) == 1, code
        assert TryllError(code).advice.endswith(".")
    assert TryllError(9999).advice == ""
