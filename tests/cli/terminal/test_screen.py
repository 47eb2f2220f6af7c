"""The bottom of the screen, as a terminal shows it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.cli.terminal.emulator import Emulator
from trunkline.cli.terminal.paint import encoded
from trunkline.cli.terminal.screen import Screen, width


class Glass:
    """A screen in front of an emulated terminal, which turns line feeds into new lines as a real one does."""

    def __init__(self, columns: int = 20, rows: int = 6) -> None:
        self.terminal = Emulator(columns, rows)
        self.writes: list[str] = []
        self.screen = Screen(self._write, lambda: (self.terminal.columns, self.terminal.rows))

    def _write(self, text: str) -> None:
        self.writes.append(text)
        self.terminal.feed(text.replace("\n", "\r\n"))


# Few different ones among them, so that a frame often begins as the one before it did.
lines = st.lists(st.sampled_from(["", "a"]) | st.text("abc", max_size=20), max_size=8)


@given(st.lists(st.tuples(lines, lines), max_size=10))
@example([([], ["", ""]), ([], [""]), ([""], [])])
@example([([], ["spinner", "> typed"]), ([], ["spinner"]), (["answer"], [])])
def test_what_was_committed_is_in_the_history_once_and_the_live_lines_below_it(
    frames: list[tuple[list[str], list[str]]],
) -> None:
    glass = Glass()
    committed: list[str] = []
    for number, (stay, live) in enumerate(frames):
        stay = [f"{number}{line}"[:20] for line in stay]
        glass.screen.commit(stay)
        glass.screen.frame(live)
        committed += stay
        shown = [*committed, *live[-5:]]
        while shown and not shown[-1]:
            shown.pop()
        assert glass.terminal.history == shown


def test_a_frame_is_one_write_and_no_write_if_nothing_changed() -> None:
    glass = Glass()
    glass.screen.commit(["stays"])
    glass.screen.frame(["one", "two"])
    glass.screen.frame(["one", "two"])
    assert len(glass.writes) == 1
    glass.screen.frame(["one", "three"])
    assert len(glass.writes) == 2
    # Only what changed is written again.
    assert "one" not in glass.writes[-1]


def test_a_terminal_that_became_narrower_is_cleared_of_what_it_has_broken() -> None:
    glass = Glass(columns=20)
    glass.screen.commit(["stays"])
    glass.screen.frame(["0123456789abcdef"])
    narrow = Emulator(10, 6)
    narrow.feed("stays\r\n0123456789abcdef")
    glass.terminal = narrow
    glass.screen.frame(["new"])
    assert narrow.history == ["stays", "new"]


def test_without_a_cursor_to_move_lines_are_only_added() -> None:
    written: list[str] = []
    screen = Screen(written.append, lambda: (80, 24), moves=False)
    screen.begin()
    screen.commit(["stays"])
    screen.frame(["live"])
    screen.end()
    assert written == ["stays\n"]


def test_colours_take_no_room() -> None:
    assert width("\x1b[1;31mred\x1b[0m") == 3


def test_what_a_terminal_cannot_show_is_replaced_by_what_resembles_it() -> None:
    assert encoded("● a … é", "ascii") == b"* a ... ?"
    assert encoded("é", "utf-8") == "é".encode()
