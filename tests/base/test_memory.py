"""Memory that nobody uses any more."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from trunkline.base import memory

PIECES = 60_000
PIECE = 1000


class Knot:
    """Knows itself: only the garbage collector finds it."""

    def __init__(self) -> None:
        self.me = self


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(memory._malloc_trim() is None, reason="another allocator")
def test_what_was_freed_between_what_is_kept_is_given_back() -> None:
    pieces = [bytes(PIECE) for _ in range(PIECES)]
    kept = pieces[::200]
    pieces.clear()
    before = resident()
    memory.give_back()
    assert before - resident() > PIECES * PIECE // 2
    assert len(kept) == PIECES // 200


def test_what_knows_only_itself_goes() -> None:
    gc.disable()
    try:
        gone = weakref.ref(Knot())
        assert gone() is not None
        memory.give_back()
        assert gone() is None
    finally:
        gc.enable()


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_malloc_trim", lambda: None)
    memory.give_back()
