"""Writing waits for its reader."""

from __future__ import annotations

import os
import threading

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.writing import write_all, written

SIZE = 1_000_000


@pytest.mark.parametrize("blocking", [True, False])
def test_everything_is_written_however_slow_the_reader_and_whatever_the_mode(blocking: bool) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    got = bytearray()

    def read() -> None:
        while chunk := os.read(reading, 50_000):
            got.extend(chunk)

    thread = threading.Thread(target=read)
    thread.start()
    write_all(writing, b"x" * SIZE)
    os.close(writing)
    thread.join(PATIENCE_SECONDS)
    os.close(reading)
    assert len(got) == SIZE


def test_it_says_how_much_is_left() -> None:
    reading, writing = os.pipe()
    assert list(written(writing, b"hello")) == [0]
    assert os.read(reading, 10) == b"hello"
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_all(writing, b"more")
    os.close(writing)
