"""How far somebody with a token reaches into this machine by what they say: to the files of the agent's workspace, an
admin to others as well; and to commands that change something only as an approver.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from trunkline.core.faults import ConfigError, Forbidden
from trunkline.core.session import Session
from trunkline.exchange.people import Person

#: The most files with one message; agents take fewer.
MAX_FILES = 100
#: The longest path: no system takes a longer one.
MAX_PATH_CHARS = 4096


async def check_reach(person: Person, name: str, paths: Sequence[str], *places: str, but: str = "") -> None:
    """See that every path is one, and that whoever names it may: one outside of all places only an admin.

    Args:
        name: what the paths are, as the request calls them.
        places: the workspace that relative paths begin in, and more.
        but: a directory that does not belong to a place that it is in: the exchange's own.

    Raises:
        ConfigError: it is no path, or there are too many.
        Forbidden: it leads out of the workspace.
    """
    if len(paths) > MAX_FILES:
        raise ConfigError(f"`{name}` may have {MAX_FILES} entries at most.")
    for path in paths:
        if not 0 < len(path) <= MAX_PATH_CHARS or "\0" in path or not _is_text(path):
            raise ConfigError(f"`{name}` must be a path of at most {MAX_PATH_CHARS} characters.")
    if paths and not person.may("admin") and not await asyncio.to_thread(_all_inside, paths, places, but):
        raise Forbidden(f"`{name}` must be in the agent's workspace: only an admin may name others.")


def check_command(person: Person, session: Session, text: str) -> None:
    """See that whoever says something may, if it is a command that does what others would be asked about.

    Raises:
        Forbidden: they are not among those who would be asked.
    """
    if session.needs_approver(text):
        person.check("approver")


def _all_inside(paths: Sequence[str], places: Sequence[str], but: str) -> bool:
    if any("://" in path for path in paths):
        # Some agents take these as URLs, such as `file:///etc/passwd`.
        return False
    tops = [os.path.realpath(os.path.expanduser(place)) for place in places]
    found = (os.path.realpath(os.path.join(tops[0], os.path.expanduser(path))) for path in paths)
    own = os.path.realpath(but) if but else ""
    return all(
        any(_is_in(top, path) and not (_is_in(top, own) and _is_in(own, path)) for top in tops) for path in found
    )


def _is_in(top: str, path: str) -> bool:
    return bool(top and path) and os.path.commonpath((top, path)) == top


def _is_text(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False
