"""The line above the prompt: what is said there, in which colour, and what goes where there is no room."""

from __future__ import annotations

import pytest

from trunkline.cli.terminal.status import Status

FULL = Status("claude-sonnet-4-5", "high", (50_000, 200_000), "$0.31", 2, False)


def text(status: Status, columns: int = 120) -> str:
    return "".join(part for _, part in status.line(columns))


def test_everything_that_is_known_is_said_and_nothing_else() -> None:
    assert text(FULL) == (
        "claude-sonnet-4-5 · effort high · context 25% · $0.31 · 2 in the background · sandbox off"
    )  # fmt: skip
    assert Status().line(80) == []
    assert text(Status("m", context=(0, 8000))) == "m · context 0%"
    # Where there is one, the prompt says so.
    assert text(Status("m", sandbox=True)) == "m"
    assert text(Status("evil\x1b[31m\nname")) == r"evil\x1b[31m\nname"


@pytest.mark.parametrize(
    ("used", "style"), [(0, "status"), (139_999, "status"), (140_000, "status.filling"), (180_000, "status.full")]
)
def test_a_window_that_is_nearly_full_stands_out(used: int, style: str) -> None:
    assert Status(context=(used, 200_000)).line(80)[0][0] == style


def test_where_there_is_no_room_the_fullness_of_the_window_stays_longest() -> None:
    assert text(FULL, 80) == "claude-sonnet-4-5 · effort high · context 25% · $0.31 · 2 in the background"
    assert text(FULL, 40) == "claude-sonnet-4-5 · context 25% · $0.31"
    assert text(FULL, 25) == "context 25% · $0.31"
    assert text(FULL, 12) == "context 25%"
    assert text(FULL, 3) == ""
