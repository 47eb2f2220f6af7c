"""The kept sessions as the command line finds them: by id or as `latest`, with advice when there is none."""

from __future__ import annotations

import os
from difflib import get_close_matches

from trunkline.base import paths
from trunkline.core.faults import SessionNotFound
from trunkline.core.log import SessionInfo
from trunkline.store.files import FileStore
from trunkline.store.view import View as Kept

__all__ = ["LATEST", "Kept", "read", "sessions"]

LATEST = "latest"


def sessions() -> list[SessionInfo]:
    """All of them, the one used last first."""
    return _store().list()


def read(session: str) -> Kept:
    """A session, or with `latest` the one used last in the current directory. It is not taken from who is writing it.

    Raises:
        SessionNotFound: there is none; the text suggests another.
        SessionDamaged: its log does not begin like one.
    """
    if session == LATEST:
        session = _latest(os.getcwd())
    try:
        return _store().peek(session)
    except SessionNotFound as error:
        raise SessionNotFound(f"{error.message}.", hint=_suggestion(session)) from None


def _latest(workspace: str) -> str:
    try:
        return _store().latest(workspace)
    except SessionNotFound as error:
        hint = "`trunkline sessions list` shows those of all directories."
        raise SessionNotFound(f"{error.message}.", hint=hint) from None


def _store() -> FileStore:
    return FileStore(paths.sessions_dir())


def _suggestion(session: str) -> str:
    known = [info.id for info in sessions()]
    near = [name for name in known if name.startswith(session)] or get_close_matches(session, known)
    if near:
        return f"Did you mean `{near[0]}`?"
    return "`trunkline sessions list` shows those there are." if known else "No sessions are kept here yet."
