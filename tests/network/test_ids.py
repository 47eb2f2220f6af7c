"""Ids have the promised form, ascend, and do not meet."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from trunkline.network import ids


def test_an_id_is_c_and_24_digits_or_small_letters() -> None:
    assert all(re.fullmatch(r"c[0-9a-z]{24}", ids.new_id()) for _ in range(1000))


def test_ids_ascend_in_the_order_in_which_they_were_made_even_if_the_clock_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [ids.new_id() for _ in range(1000)]
    monkeypatch.setattr("time.time_ns", lambda: 1)
    made += [ids.new_id() for _ in range(1000)]
    assert made == sorted(made)
    assert len({name[:13] for name in made}) == len(made)


def test_ids_made_in_several_threads_differ() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: ids.new_id(), range(4000)))
    assert len(set(made)) == len(made)


def test_two_processes_in_the_same_millisecond_make_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_newest", 36**12 - 1000)
    first = ids.new_id()
    monkeypatch.setattr(ids, "_newest", 36**12 - 1000)
    second = ids.new_id()
    assert first[:13] == second[:13]
    assert first != second


def test_random_words_have_the_asked_length_and_differ() -> None:
    words = {ids.random_hex(16) for _ in range(100)}
    assert len(words) == 100
    assert all(re.fullmatch(r"[0-9a-f]{32}", word) for word in words)
