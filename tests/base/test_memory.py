"""Memory that nobody uses any more."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
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


@pytest.mark.skipif(memory._malloc_trim() is None, reason="another allocator")
def test_what_was_freed_between_what_is_kept_is_given_back() -> None:
    pieces = [bytes(PIECE) for _ in range(PIECES)]
    kept = pieces[::200]
    pieces.clear()
    before = memory.resident()
    memory.give_back()
    assert before - memory.resident() > PIECES * PIECE // 2
    assert len(kept) == PIECES // 200


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="another system")
def test_a_process_is_found_by_its_number_and_one_that_is_gone_has_no_memory() -> None:
    program = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        small = memory.resident(other.pid)
        other.communicate(b"\n")
    assert 0 < small < memory.resident()
    assert memory.resident(other.pid) == 0
    assert memory.resident(os.getpid()) > small


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
