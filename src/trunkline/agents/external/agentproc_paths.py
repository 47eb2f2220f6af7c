"""Whether what a foreign agent's tool is given stays in the workspace, as far as the texts in it can tell.

Every text may name a file, members' names included. What cannot be looked at, because it is too deep, too much or no
text that a system takes, counts as outside: then somebody is asked. So does what stands where a path belongs, and is
none: what the program makes of it, nobody here knows.
"""

from __future__ import annotations

import os
import re
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
#: How the names of arguments end that are paths: `file_path`, `notebookPath`, `cwd`.
_PATH_NAME = re.compile(r"(path|file|filename|dir|directory|folder|cwd|root|uri)s?", re.IGNORECASE)
_WORDS = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")


class _Unclear(Exception):
    """There is more below than is looked at, or no text where a path belongs."""


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
    except _Unclear:
        return False
    return True


def _texts(data: Any, depth: int, *, is_path: bool = False) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping | list):
        if depth == MAX_DEPTH:
            raise _Unclear
        if isinstance(data, Mapping):
            yield from data
        members = data.items() if isinstance(data, Mapping) else (("", member) for member in data)
        for name, member in members:
            yield from _texts(member, depth + 1, is_path=is_path or _names_a_path(name))
    elif is_path and data is not None:
        raise _Unclear


def _names_a_path(name: str) -> bool:
    """Whether what an argument of that name holds is a path."""
    return _PATH_NAME.fullmatch(_WORDS.split(name)[-1]) is not None


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
