from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.redact import Redactor
from trunkline.tools.bash_output import HeadAndTail


def fed(data: bytes, size: int = 7, head: int = 10, tail: int = 10) -> HeadAndTail:
    kept = HeadAndTail(head, tail)
    for start in range(0, len(data), size):
        kept.feed(data[start : start + size])
    return kept


def test_what_fits_is_kept_whole() -> None:
    kept = fed(b"0123456789abcdefghij")
    assert kept.text() == "0123456789abcdefghij"
    assert kept.dropped == 0


def test_of_more_the_middle_is_dropped_and_counted() -> None:
    kept = fed(b"0123456789" + b"x" * 1000 + b"abcdefghij")
    assert kept.text() == "0123456789\n\n... [1000 bytes were not kept] ...\n\nabcdefghij"
    assert kept.dropped == 1000
    assert kept.size == 1020


def test_characters_that_were_cut_in_two_are_left_out_whole() -> None:
    text = fed("1234567😀".encode() + b"x" * 50 + "😀7654321".encode(), head=9, tail=9).text()
    assert text.startswith("1234567\n")
    assert text.endswith("\n7654321")
    assert "�" not in text


def test_no_half_of_a_secret_stands_where_the_middle_is_missing() -> None:
    secret = "sk-live-0123456789"
    for before in range(len(secret)):
        kept = fed(b"." * before + secret.encode() * 40, head=100, tail=100)
        assert "..[redacted]" in kept.text(Redactor([secret])) or before < 2
        assert not any(secret[place : place + 4] in kept.text(Redactor([secret])) for place in range(len(secret) - 3))


def test_what_is_not_utf8_is_replaced() -> None:
    assert fed(b"a\xff\xfeb").text() == "a��b"


@given(st.lists(st.binary(max_size=40)), st.integers(1, 20), st.integers(1, 20))
def test_nothing_is_invented_and_memory_is_bounded(pieces: list[bytes], head: int, tail: int) -> None:
    kept = HeadAndTail(head, tail)
    for piece in pieces:
        kept.feed(piece)
    data = b"".join(pieces)
    assert kept.size == len(data)
    assert len(kept._head) + len(kept._tail) <= head + 3 * tail + 40
    if len(data) <= head + tail:
        assert kept.text() == data.decode("utf-8", "replace")
    else:
        assert kept.dropped == len(data) - head - tail
        assert "bytes were not kept" in kept.text()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="�"), min_size=30))
def test_valid_text_stays_valid_however_it_is_cut(text: str) -> None:
    kept = fed(text.encode(), head=11, tail=11)
    assert kept.dropped
    assert "�" not in kept.text()
