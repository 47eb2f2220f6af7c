"""How far somebody with a token reaches into the files of this machine: as far as the agent was meant to. An admin may
name other places.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from trunkline.core.faults import ConfigError, Forbidden
from trunkline.exchange.people import Person

#: The most files with one message; agents take fewer.
MAX_FILES = 100
#: The longest path: no system takes a longer one.
MAX_PATH_CHARS = 4096


async def check_reach(person: Person, name: str, paths: Sequence[str], *places: str) -> None:
    """See that every path is one, and that whoever names it may: one outside of all places only an admin.

    Args:
        name: what the paths are, as the request calls them.
        places: the workspace that relative paths begin in, and more.

    Raises:
        ConfigError: it is no path, or there are too many.
        Forbidden: it leads out of the workspace.
    """
    if len(paths) > MAX_FILES:
        raise ConfigError(f"`{name}` may have {MAX_FILES} entries at most.")
    for path in paths:
        if not 0 < len(path) <= MAX_PATH_CHARS or "\0" in path or not _is_text(path):
            raise ConfigError(f"`{name}` must be a path of at most {MAX_PATH_CHARS} characters.")
    if paths and not person.may("admin") and not await asyncio.to_thread(_all_inside, paths, places):
        raise Forbidden(f"`{name}` must be in the agent's workspace: only an admin may name others.")


def _all_inside(paths: Sequence[str], places: Sequence[str]) -> bool:
    if any("://" in path for path in paths):
        # Some agents take these as URLs, such as `file:///etc/passwd`.
        return False
    tops = [os.path.realpath(os.path.expanduser(place)) for place in places]
    found = (os.path.realpath(os.path.join(tops[0], os.path.expanduser(path))) for path in paths)
    return all(any(os.path.commonpath((top, path)) == top for top in tops) for path in found)


def _is_text(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False
