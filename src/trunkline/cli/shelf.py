"""The kept sessions as the command line finds them: by id or as `latest`, with advice when there is none.

They are those of this user; with a `place`, those whose logs are in that directory, such as an exchange's.
"""

from __future__ import annotations

import os

from trunkline.base import paths
from trunkline.base.nearest import near
from trunkline.base.printable import printable
from trunkline.core.faults import SessionHeld, SessionNotFound
from trunkline.core.log import SessionInfo
from trunkline.store import names
from trunkline.store.files import FileStore
from trunkline.store.glance import SessionGlance
from trunkline.store.view import SessionView

__all__ = [
    "LATEST",
    "SessionGlance",
    "SessionView",
    "completions",
    "glance",
    "has",
    "named",
    "read",
    "remove",
    "sessions",
]

LATEST = "latest"

#: So many of the sessions that could be meant are named.
MOST_NAMED = 5


def sessions(place: str | None = None) -> list[SessionInfo]:
    """All of them, the one used last first."""
    return _store(place).list()


def completions(incomplete: str, place: str | None = None) -> list[str]:
    """The ids that begin so, `latest` among them, as far as they can be typed."""
    ids = [LATEST, *(info.id for info in sessions(place))]
    return [id for id in ids if id.startswith(incomplete) and id == printable(id)]


def has(session: str) -> bool:
    """Whether a session of this user has exactly that id."""
    return bool(session) and os.path.lexists(_log(session, None))


def named(session: str, place: str | None = None) -> str:
    """The id that is meant: it in full, or a beginning of it that no other has.

    Raises:
        SessionNotFound: there is none, or there are several; the text suggests which.
    """
    if session and os.path.lexists(_log(session, place)):
        return session
    known = [info.id for info in sessions(place)]
    near = [name for name in known if session and name.startswith(session)]
    if len(near) == 1:
        return near[0]
    if near:
        listed = ", ".join(f"`{name}`" for name in near[:MOST_NAMED])
        more = f" and {len(near) - MOST_NAMED} more" if len(near) > MOST_NAMED else ""
        raise SessionNotFound(f"`{session}` is the beginning of several sessions: {listed}{more}.")
    raise SessionNotFound(f"Session '{names.shown(session)}' not found.", hint=_suggestion(session, known))


def read(session: str, place: str | None = None) -> SessionView:
    """A session, or with `latest` the one used last: in the current directory, or of that place. It is not taken from
    who is writing it.

    Raises:
        SessionNotFound: there is none, or there are several; the text suggests which.
        SessionDamaged: its log does not begin like one.
    """
    if session != LATEST:
        return _store(place).peek(named(session, place))
    if place is None:
        return _store().peek(_latest(os.getcwd()))
    found = sessions(place)
    return _store(place).peek(found[0].id if found else named(session, place))


def glance(info: SessionInfo, place: str | None = None) -> SessionGlance:
    """What a session is about, as far as its log can be read."""
    return _store(place).glance(info.id)


def remove(session: str) -> None:
    """Forget a session for good. Its whole id is asked for: what is gone by a slip is gone.

    Raises:
        SessionNotFound: there is none; the text suggests another.
        SessionHeld: another process has it open.
        ConfigError: it cannot be opened.
        OSError: it cannot be removed.
    """
    try:
        _store().remove(session)
    except SessionNotFound as error:
        known = [info.id for info in sessions()]
        raise SessionNotFound(f"{error.message}.", hint=_suggestion(session, known)) from None
    except SessionHeld as error:
        raise SessionHeld(error.message, hint="Close it there first; then it can be removed.") from None


def _log(session: str, place: str | None) -> str:
    return os.path.join(place or paths.sessions_dir(), f"{names.file_name(session)}.log")


def _latest(workspace: str) -> str:
    try:
        return _store().latest(workspace)
    except SessionNotFound as error:
        hint = "`trunkline sessions list` shows those of all directories."
        raise SessionNotFound(f"{error.message}.", hint=hint) from None


def _store(place: str | None = None) -> FileStore:
    return FileStore(place or paths.sessions_dir())


def _suggestion(session: str, known: list[str]) -> str:
    if found := near(session, known, beginnings=True):
        return f"Did you mean `{found[0]}`?"
    return "`trunkline sessions list` shows those there are." if known else "No sessions are kept here yet."
