"""`@path` in a message: the files that come with it, and those that were probably meant to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice

from trunkline.base.nearest import VERY_ALIKE, near

#: At the beginning or after white space, so that addresses and decorators in the middle of something are left alone.
_MENTION = re.compile(r"""(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))""")
#: What follows a path in a sentence and is hardly part of it.
_PUNCTUATION = ".,;:!?)]}'\""

#: Endings that say that a file is meant. `@app.get`, `@ada.lovelace` and `@example.com` have others.
_ENDINGS = frozenset(
    {"c", "cfg", "cpp", "css", "csv", "go", "h", "html", "ini", "ipynb", "java", "jpeg", "jpg", "js", "json", "jsonl",
     "log", "md", "pdf", "png", "py", "rs", "rst", "sh", "sol", "sql", "svg", "toml", "ts", "tsx", "txt", "xml", "yaml",
     "yml"}
)  # fmt: skip
#: Letters of a name that tell it from a word that happens to begin so.
_FEWEST_TYPED = 3
#: Among how many names of a directory is looked.
_MOST_NAMES = 10_000


def mentioned(text: str, workspace: str) -> tuple[str, ...]:
    """The files and directories that a text mentions as `@path` or `@"a path"` and that exist, each of them once.

    Relative paths start in the workspace, and `~` is the user's home.
    """
    found = (next((path for path in tried if _exists(path, workspace)), None) for tried, _ in _mentions(text))
    return tuple(dict.fromkeys(os.path.expanduser(path) for path in found if path is not None))


def unfound(text: str, workspace: str) -> tuple[str, ...]:
    """A sentence for each mention that is no file, and that looks like one or nearly is one.

    Handles, decorators and names of packages begin with an `@`, too: nothing is said about these.
    """
    told: dict[str, None] = {}
    for tried, is_quoted in _mentions(text):
        if any(_exists(path, workspace) for path in tried):
            continue
        path = tried[-1]
        near = _near(path, workspace)
        if near is not None or is_quoted or _is_path(path, workspace):
            meant = f" Did you mean `@{near}`?" if near is not None else ""
            told[f"There is no file `{path}`: nothing is attached.{meant}"] = None
    return tuple(told)


def _mentions(text: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The paths that each mention may mean, the likelier one first, and whether it is quoted."""
    for quoted, bare in _MENTION.findall(text):
        paths = (quoted,) if quoted else tuple(filter(None, (bare, bare.rstrip(_PUNCTUATION))))
        if paths:
            yield paths, bool(quoted)


def _is_path(path: str, workspace: str) -> bool:
    if path.startswith(("/", "./", "../", "~/")):
        return True
    folder, name = os.path.split(path)
    if folder and _exists(folder, workspace):
        return True
    stem, dot, ending = name.rpartition(".")
    return bool(dot and stem) and ending.lower() in _ENDINGS


def _near(path: str, workspace: str) -> str | None:
    """The one file whose name begins like this, or that differs by a slip."""
    folder, name = os.path.split(path)
    if len(name) < _FEWEST_TYPED:
        return None
    try:
        with os.scandir(os.path.join(workspace, os.path.expanduser(folder))) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
    except (OSError, ValueError):
        return None
    found = near(name, names, alike=VERY_ALIKE, beginnings=True)
    return os.path.join(folder, found[0]) if len(found) == 1 and found[0].isprintable() else None


def _exists(path: str, workspace: str) -> bool:
    try:
        return os.path.exists(os.path.join(workspace, os.path.expanduser(path)))
    except ValueError:
        return False
