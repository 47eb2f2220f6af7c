"""Whether what a foreign agent's tool is given stays in the workspace, as far as the texts in it can tell.

Every text may name a file, members' names included. What cannot be looked at, because it is too deep, too much or no
text that a system takes, counts as outside: then somebody is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.core.guarded import starts_programs

#: Deeper than anybody nests a tool's arguments.
MAX_DEPTH = 8
#: Each text costs a look at the disk. A request with more of them is for a person to judge.
MAX_TEXTS = 200
#: The longest path that a system takes.
MAX_PATH = 4096

_FILE_URL = "file://"


class _TooDeep(Exception):
    """There is more below than is looked at."""


def stays_inside(data: Any, place: str, workspace: str, *, changes: bool = False) -> bool:
    """Whether no text in `data` names a file outside of the workspace, seen from `place`.

    `changes`: nor one that makes programs run, since the tool would change it.
    """
    root = os.path.realpath(workspace)
    seen = 0
    try:
        for text in _texts(data, 0):
            seen += 1
            if seen > MAX_TEXTS or not _is_inside(text.strip(), place, root, changes=changes):
                return False
    except _TooDeep:
        return False
    return True


def _texts(data: Any, depth: int) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping | list):
        if depth == MAX_DEPTH:
            raise _TooDeep
        if isinstance(data, Mapping):
            yield from data
        for member in data.values() if isinstance(data, Mapping) else data:
            yield from _texts(member, depth + 1)


def _is_inside(text: str, place: str, root: str, *, changes: bool) -> bool:
    """Whether a text, if it names a file, names one below the root, links followed."""
    if text.lower().startswith(_FILE_URL):
        from urllib.parse import unquote

        text = unquote(text[len(_FILE_URL) :])
        text = text if text.startswith("/") else f"/{text}"
    if "\0" in text or len(text) > MAX_PATH:
        return False
    try:
        path = os.path.realpath(os.path.join(place, os.path.expanduser(text)))
    except (ValueError, OSError):
        return False
    if path != root and not path.startswith(root.rstrip("/") + "/"):
        return False
    return not (changes and starts_programs(os.path.relpath(path, root).split("/")))
