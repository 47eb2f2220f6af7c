"""A place for sessions and the stores made for it, for tests of what a store promises."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from trunkline.core.events import Checkpointed, Envelope, Event, Gap, Notice
from trunkline.core.log import EventLog, SessionStore
from trunkline.store.filelog import FileLog
from trunkline.store.files import FileStore

#: A time that survives rounding to milliseconds.
AT = 1763179200.125


class TidyFileStore(FileStore):
    """A store that closes at the end what a test has left open."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._logs: list[FileLog] = []

    def create(
        self, session: str, workspace: str, agent: str | None = None, given: Mapping[str, str] | None = None
    ) -> FileLog:
        self._logs.append(super().create(session, workspace, agent, given))
        return self._logs[-1]

    def open(self, session: str) -> FileLog:
        self._logs.append(super().open(session))
        return self._logs[-1]

    def close(self) -> None:
        for log in self._logs:
            log.close()


class Shelf:
    """A place for sessions, and the stores that were made for it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = root / "sessions"
        self._open: list[TidyFileStore] = []

    def store(self) -> SessionStore:
        """A store, as another process would make it: it shares nothing but the disk with the others."""
        store = TidyFileStore(self.place)
        self._open.append(store)
        return store

    def files(self) -> set[str]:
        """All files there are."""
        return {os.path.join(path, name) for path, _, names in os.walk(self.root) for name in names}

    def growing_file(self) -> Path:
        """The file that flushing makes longer."""
        (log,) = self.place.iterdir()
        return log

    def close(self) -> None:
        for store in self._open:
            store.close()


def record(seq: int, event: Event | None = None, session: str = "s", turn: int = 1) -> Envelope:
    return Envelope(session, seq, turn, AT, event or Notice(f"piece {seq}"))


def fill(log: EventLog, seqs: Iterable[int]) -> list[Envelope]:
    added = [record(seq, session=log.session) for seq in seqs]
    for envelope in added:
        log.append(envelope)
    return added


def kept(store: SessionStore, session: str = "s") -> list[Envelope | Gap]:
    """What a session holds that is not open."""
    with closing(store.open(session)) as log:
        return list(log.read())


def checkpoint(seq: int, turns: int, session: str = "s") -> Envelope:
    return record(seq, Checkpointed({"turns": turns}), session)


def numbers(found: Iterable[Envelope | Gap]) -> list[int | tuple[int, int]]:
    """Sequence numbers, and gaps as pairs."""
    return [(item.first, item.last) if isinstance(item, Gap) else item.seq for item in found]
