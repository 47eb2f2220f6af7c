"""Opening a database of our own."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunkline.core.faults import ConfigError
from trunkline.store.private import open_private

MIGRATIONS = (("CREATE TABLE things (name TEXT)",),)


def test_many_who_make_it_at_the_same_moment_all_have_it(tmp_path: Path) -> None:
    openers, rounds = 6, 40
    together = threading.Barrier(openers)

    def opened(path: Path) -> None:
        together.wait()
        connection = open_private(str(path), "test database", MIGRATIONS, busy_seconds=60.0, any_thread=True)
        connection.execute("INSERT INTO things VALUES ('one')")
        connection.close()

    with ThreadPoolExecutor(openers) as pool:
        for number in range(rounds):
            path = tmp_path / f"{number}.db"
            for done in [pool.submit(opened, path) for _ in range(openers)]:
                done.result()
            connection = sqlite3.connect(path)
            assert connection.execute("SELECT count(*) FROM things").fetchone() == (openers,)
            connection.close()


def test_one_that_stays_locked_is_told_in_the_end(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "held.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ConfigError, match=r"test database .*locked"):
        open_private(str(tmp_path / "held.db"), "test database", MIGRATIONS, busy_seconds=0.1)
    holder.close()
