"""What a call could do to its user if somebody else has put the agent up to it: send data out, or touch credentials.

Both are harmless where the user has asked for them. They are not where a file or a page that the agent has read may
have done so: then a person is asked, whatever was allowed before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from trunkline.base.patterns import LONGEST_PATH, alternatives
from trunkline.base.visible import inline
from trunkline.core.credentials import is_named, named_in, opens_something
from trunkline.core.events import ToolRequested

#: Tools whose calls leave this machine, whatever their arguments say.
_SENDING = frozenset(("WebFetch", "WebSearch"))
#: Texts that are looked at in the arguments of a tool of somebody else's. Nobody names more files in one call.
MOST_TEXTS = 1_000
#: Names in their paths that the disk is asked about. The others count by what they are called.
MOST_NAMES = 20_000
_BLANK = re.compile(r"\s")
#: Of a name, for people.
_SHOWN_CHARS = 80


def risk_of(request: ToolRequested, workspace: str) -> str:
    """What a call could do, in words that follow "this"; empty if it is none of that, as far as can be seen."""
    if request.name in _SENDING:
        return "sends data out"
    if request.name == "Bash":
        return _of_command(str(request.args.get("command", "")), workspace)
    texts = islice(_texts(request.args), MOST_TEXTS) if request.category == "mcp" else _paths(request)
    left = MOST_NAMES
    for text in texts:
        left -= 1 + text.count("/")
        if _opens(text, workspace, links=left >= 0):
            return _touches(text)
    return ""


def searches_credentials(args: Mapping[str, Any], workspace: str) -> bool:
    """Whether Grep is asked by its arguments to look into credentials: whoever allows that has been asked about it."""
    request = ToolRequested("", "Grep", "info", args)
    return any(_opens(text, workspace) for text in _paths(request))


def _of_command(command: str, workspace: str) -> str:
    from trunkline.core.command_files import named_files
    from trunkline.core.sending import UNREAD, sends

    if found := named_in(command):
        return _touches(found)
    files, complete = named_files(command, workspace)
    for path in files:
        # Other words of commands end like key files: `jq .item.key`.
        if _opens(path, workspace, ends=os.path.lexists(path)):
            return _touches(path)
    what = sends(command) or ("" if complete else UNREAD)
    return f"could send data out ({what})" if what else ""


def _touches(name: str) -> str:
    return f"touches credentials (`{inline(name, _SHOWN_CHARS)}`)"


def _opens(path: str, workspace: str, *, ends: bool = True, links: bool = True) -> bool:
    """Whether a path is that of credentials, or, with `links`, leads to some; with `ends`, also by its ending."""
    real = os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))
    if len(real) > LONGEST_PATH and _BLANK.search(path):
        # What somebody has written, and no path.
        return False
    if links and len(real) <= LONGEST_PATH:
        with suppress(OSError, ValueError):
            # If there can be a file of that name.
            real = os.path.realpath(real)
    return any(opens_something(each) if ends else is_named(each) for each in (path, real))


def _paths(request: ToolRequested) -> Iterator[str]:
    """The paths of a call to a tool for files, and the names that its patterns are about."""
    for key in ("file_path", "path", "notebook_path"):
        yield from _text(request, key)
    # What Grep looks for is a pattern of lines.
    for key in ("glob", *(("pattern",) if request.name == "Glob" else ())):
        for pattern in _text(request, key):
            yield from alternatives(pattern)


def _text(request: ToolRequested, key: str) -> tuple[str, ...]:
    value = request.args.get(key)
    return (value,) if isinstance(value, str) else ()


def _texts(args: Mapping[str, Any]) -> Iterator[str]:
    """All texts in some arguments, however deep."""
    waiting: list[Any] = [args]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
