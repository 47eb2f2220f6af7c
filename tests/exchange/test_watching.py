"""Whether a file has changed."""

from __future__ import annotations

from pathlib import Path

from trunkline.exchange.watching import Mark, WatchedFile, mark_of


class Marks:
    """A file whose marks a test sets."""

    def __init__(self) -> None:
        self.now: Mark | None = (1, 1, 1)

    def __call__(self, path: str) -> Mark | None:
        return self.now


def test_a_change_is_told_once_and_only_when_it_has_come_to_rest() -> None:
    marks = Marks()
    file = WatchedFile("x", marks)
    assert not file.look()
    marks.now = (1, 0, 2)
    assert not file.look()
    marks.now = (1, 5, 3)
    assert not file.look()
    assert file.look()
    assert not file.look()


def test_a_file_that_is_gone_is_no_news_and_one_that_comes_back_changed_is() -> None:
    marks = Marks()
    file = WatchedFile("x", marks)
    marks.now = None
    gone = []
    for _ in range(4):
        assert not file.look()
        gone.append(file.is_just_gone)
    assert gone == [False, True, False, False]
    marks.now = (2, 1, 9)
    assert not file.look()
    assert file.look()


def test_what_somebody_has_read_already_is_no_news() -> None:
    marks = Marks()
    file = WatchedFile("x", marks)
    marks.now = (1, 2, 2)
    file.look()
    file.taken()
    assert not file.look()
    assert not file.look()


def test_the_mark_of_a_file_changes_with_its_contents_and_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert mark_of(str(path)) is None
    path.write_text("a")
    first = mark_of(str(path))
    path.write_text("ab")
    assert mark_of(str(path)) != first
