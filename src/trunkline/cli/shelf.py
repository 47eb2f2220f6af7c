"""The kept sessions, read without taking them from whoever is writing them.

`FileStore.open` locks a session and repairs its end, which is right for going on with it. Here it is only looked at:
nothing is locked, nothing is changed, and a record that is being written at this moment is not seen yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from trunkline.base import paths
from trunkline.base.values import Value
from trunkline.core.events import Envelope, Gap
from trunkline.core.faults import SessionDamaged, SessionNotFound
from trunkline.core.log import SessionInfo
from trunkline.store import logfile, names
from trunkline.store.files import FileStore
from trunkline.store.reading import with_gaps

LATEST = "latest"

_ENDING = ".log"


class Kept(Value):
    """One session: what its log says of itself, and its records in order, to be read once."""

    info: SessionInfo
    records: Iterator[Envelope | Gap]


def sessions() -> list[SessionInfo]:
    """All of them, the one used last first."""
    return FileStore(paths.sessions_dir()).list()


def read(session: str) -> Kept:
    """A session, or with `latest` the one used last in the current directory.

    Raises:
        SessionNotFound: there is none; the text suggests another.
        SessionDamaged: its log does not begin like one.
    """
    if session == LATEST:
        session = _latest(os.getcwd())
    path = os.path.join(paths.sessions_dir(), names.file_name(session) + _ENDING)
    try:
        with _opened(path) as fd:
            header, _ = logfile.read_header(fd)
            updated = os.fstat(fd).st_mtime
    except FileNotFoundError:
        raise SessionNotFound(f"Session '{names.shown(session)}' not found.", hint=_suggestion(session)) from None
    except logfile.NotALog as error:
        raise SessionDamaged(f"The log `{path}` cannot be read: {error}.") from None
    return Kept(SessionInfo(header.session, header.workspace, header.created, updated), _records(path))


def _latest(workspace: str) -> str:
    try:
        return FileStore(paths.sessions_dir()).latest(workspace)
    except SessionNotFound as error:
        hint = "`trunkline sessions list` shows those of all directories."
        raise SessionNotFound(f"{error.message}.", hint=hint) from None


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _records(path: str) -> Iterator[Envelope | Gap]:
    """As many as there are when the first of them is asked for."""
    with _opened(path) as fd:

        def read_at(length: int, offset: int) -> bytes:
            return os.pread(fd, length, offset)

        header, start = logfile.read_header(fd)
        end, last = logfile.last_record(read_at, start, os.fstat(fd).st_size)
        found = (logfile.decode_record(header.session, line) for _, line in logfile.lines_forward(read_at, start, end))
        yield from with_gaps((envelope for envelope in found if envelope is not None), 0, last)


def _suggestion(session: str) -> str:
    known = [info.id for info in sessions()]
    near = [name for name in known if name.startswith(session)] or get_close_matches(session, known)
    if near:
        return f"Did you mean `{near[0]}`?"
    return "`trunkline sessions list` shows those there are." if known else "No sessions are kept here yet."
