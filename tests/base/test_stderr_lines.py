"""Lines of programs, for whoever listens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trunkline.base import stderr_lines
from trunkline.base.redact import Clean, Redactor
from trunkline.base.stderr_lines import MAX_LINE, StderrLines, UnreadLines

SECRET = "sk-live-0123456789abcdef"

#: More than are told at once in these tests.
ALL = 1 << 20


@pytest.fixture
def heard() -> Iterator[list[tuple[str, UnreadLines]]]:
    told: list[tuple[str, UnreadLines]] = []
    listener = lambda name, lines: told.append((name, lines))  # noqa: E731  (to be removed again)
    stderr_lines.listeners.append(listener)
    try:
        yield told
    finally:
        stderr_lines.listeners.remove(listener)


def texts(heard: list[tuple[str, UnreadLines]], most: int = ALL) -> list[str]:
    return [text() for _, lines in heard for text in lines.last(most)]


def test_whole_lines_are_told_without_secrets_to_those_who_listen(heard: list[tuple[str, UnreadLines]]) -> None:
    made: list[int] = []

    def cleaner() -> Clean:
        made.append(1)
        return lambda text: text.replace("secret", "***")

    lines = StderrLines("tool", cleaner)
    listeners, stderr_lines.listeners[:] = stderr_lines.listeners[:], []
    lines.feed(b"nobody hears this\n")
    stderr_lines.listeners[:] = listeners
    lines.feed(b"a sec")
    lines.feed(b"ret\r\n\n   \n\xff!\nhalf")
    lines.feed(b"x" * (MAX_LINE + 1) + b"\nafter\n")
    assert [name for name, _ in heard] == ["tool", "tool"]
    assert texts(heard) == ["a ***", "\ufffd!", "after"]
    assert made == [1]


def test_lines_that_nobody_looks_at_are_not_cleaned(heard: list[tuple[str, UnreadLines]]) -> None:
    cleaned: list[str] = []

    def clean(text: str) -> str:
        cleaned.append(text)
        return text

    StderrLines("tool", lambda: clean).feed(b"".join(b"%d\n" % number for number in range(1000)))
    assert cleaned == []
    assert texts(heard, 2) == cleaned == ["998", "999"]


@pytest.mark.parametrize(("most", "told"), [(2, ["b", "c"]), (3, ["a", "b", "c"]), (4, ["a", "b", "c"])])
def test_the_last_lines_are_had_up_to_a_limit(heard: list[tuple[str, UnreadLines]], most: int, told: list[str]) -> None:
    StderrLines("tool", lambda: str).feed(b"a\nb\nc\n")
    assert texts(heard, most) == told


@pytest.mark.parametrize(("size", "told"), [(MAX_LINE - 1, 1), (MAX_LINE, 1), (MAX_LINE + 1, 0)])
def test_a_line_is_told_whole_or_not_at_all(heard: list[tuple[str, UnreadLines]], size: int, told: int) -> None:
    line = (b"x" * size)[: -len(SECRET)] + SECRET.encode()
    lines = StderrLines("tool", lambda: Redactor([SECRET]).text)
    lines.feed(line + b"\nafter\n")
    whole = "x" * (size - len(SECRET)) + "[redacted]"
    assert texts(heard) == [whole] * told + ["after"]


def test_a_secret_is_masked_wherever_the_pieces_are_cut(heard: list[tuple[str, UnreadLines]]) -> None:
    data = f"key {SECRET}, and \xe9\n".encode()
    for cut in range(len(data)):
        lines = StderrLines("tool", lambda: Redactor([SECRET]).text)
        lines.feed(data[:cut])
        lines.feed(data[cut:])
    assert texts(heard) == ["key [redacted], and \xe9"] * len(data)


def test_bytes_that_are_no_text_do_not_hide_a_secret(heard: list[tuple[str, UnreadLines]]) -> None:
    lines = StderrLines("tool", lambda: Redactor([SECRET]).text)
    lines.feed(b"\xff" + SECRET.encode() + b"\xc3\n\xa9\n")
    assert texts(heard) == ["\ufffd[redacted]\ufffd", "\ufffd"]


def test_the_secrets_are_those_of_the_time_when_the_line_was_written(heard: list[tuple[str, UnreadLines]]) -> None:
    environ = {"API_KEY": SECRET}
    StderrLines("tool", lambda: Redactor.from_environ(environ).text).feed(f"{SECRET}\n".encode())
    environ.clear()
    assert texts(heard) == ["[redacted]"]
