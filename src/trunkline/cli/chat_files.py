"""`@path` in a message: the files that come with it."""

from __future__ import annotations

import os
import re

#: At the beginning or after white space, so that addresses and decorators in the middle of something are left alone.
_MENTION = re.compile(r"""(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))""")
#: What follows a path in a sentence and is hardly part of it.
_PUNCTUATION = ".,;:!?)]}'\""


def mentioned(text: str, workspace: str) -> tuple[str, ...]:
    """The files and directories that a text mentions as `@path` or `@"a path"` and that exist, each of them once.

    Relative paths start in the workspace, and `~` is the user's home.
    """
    found: dict[str, None] = {}
    for quoted, bare in _MENTION.findall(text):
        for path in (quoted,) if quoted else (bare, bare.rstrip(_PUNCTUATION)):
            if path and _exists(path, workspace):
                found[os.path.expanduser(path)] = None
                break
    return tuple(found)


def _exists(path: str, workspace: str) -> bool:
    try:
        return os.path.exists(os.path.join(workspace, os.path.expanduser(path)))
    except ValueError:
        return False
