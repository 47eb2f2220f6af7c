"""What every store promises when the disk is full."""

from __future__ import annotations

import pytest

from tests.store.shelves import Shelf, fill, kept
from tests.support.full_disk import files_limited_to
from trunkline.core.events import Gap
from trunkline.core.faults import ConfigError


def test_what_a_full_disk_refuses_is_kept_and_written_later(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    added = fill(log, [1])
    log.flush()
    size = shelf.growing_file().stat().st_size
    added += fill(log, range(2, 200))
    for spare in (0, 1, 150, 200):
        with files_limited_to(size + spare), pytest.raises(OSError, match=r"."):
            log.flush()
        assert list(log.read()) == added
        added += fill(log, [added[-1].seq + 1])
    log.flush()
    assert list(log.read()) == added
    log.close()
    assert kept(shelf.store()) == added


def test_a_session_is_let_go_of_even_if_its_last_records_cannot_be_written(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    added = fill(log, [1])
    log.flush()
    fill(log, range(2, 200))
    with files_limited_to(shelf.growing_file().stat().st_size + 150), pytest.raises(OSError, match=r"."):
        log.close()
    log.close()
    log = shelf.store().open("s")
    found = list(log.read())
    assert found[:1] == added
    assert not any(isinstance(item, Gap) for item in found)
    assert fill(log, [found[-1].seq + 1]) == list(log.read(found[-1].seq))  # type: ignore[union-attr]


def test_a_session_cannot_be_made_where_nothing_can_be_written(shelf: Shelf) -> None:
    store = shelf.store()
    store.create("other", "/w")
    before = shelf.files()
    with files_limited_to(1), pytest.raises(ConfigError, match="Check the permissions and the free space"):
        store.create("s", "/w")
    assert shelf.files() == before
    store.create("s", "/w")
