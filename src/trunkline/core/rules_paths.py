"""Rules about files: `Read(~/.ssh/**)`, `Edit(src/**)`.

Patterns start at the workspace, at the home directory (`~/`) or at the root (`/`, or `//`). Links are resolved. An
allow rule is read narrowly: the file itself has to match, as it lies on the disk. A deny or ask rule is read widely: it
also covers what is below a directory that matches, a name without a slash at any depth, either case, and a file by
whichever way it is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from trunkline.base.paths import is_within
from trunkline.base.patterns import LONGEST_PATH, Segment, expand_braces, match_beginnings, match_path, segments
from trunkline.core.guarded import starts_programs

#: What stands for any file below a directory: no pattern but `**` matches two of them.
_BELOW = ("\0", "\0")
_SPECIAL = "*?[]\\"


def covers(text: str, path: str, workspace: str, *, below: bool = False) -> bool:
    """Whether an allow rule is about a file; with `below`, about everything in a directory."""
    real = _real(path, workspace)
    names = [*_names(real), *(_BELOW if below else ())]
    return bool(real) and any(pattern.matches(names) for pattern in _placed(text, os.path.realpath(workspace)))


class WidePaths:
    """What deny or ask rules say of files, read for one moment: links may be changed later."""

    def __init__(self, texts: Sequence[str], workspace: str) -> None:
        self._workspace = workspace
        placed = [pattern for text in texts for pattern in _wide(text, workspace)]
        self._patterns = [(_names(pattern.base), pattern) for pattern in placed]

    def covers(self, path: str) -> bool:
        """Whether they are about a file, or about everything in a directory."""
        return any(map(self.covers_place, places(path, self._workspace))) if self._patterns else False

    def covers_place(self, place: str) -> bool:
        """The same of one of its `places`. Where one leads that is too long to be looked up, nobody knows."""
        if len(place) > LONGEST_PATH:
            return bool(self._patterns)
        names = _names(place.casefold())
        return any(names[: len(base)] == base and pattern.is_around(names) for base, pattern in self._patterns)


def places(path: str, workspace: str) -> set[str]:
    """Where a file is by its name, and where on the disk, if it can be there."""
    return {place for place in (_absolute(path, workspace), _real(path, workspace)) if place}


def check(text: str) -> None:
    """See whether a pattern has a meaning.

    Raises:
        BadPattern: it has none.
    """
    for pattern in _wide(text, "/"):
        pattern.matches([])


def leads_out(path: str, workspace: str) -> bool:
    """Whether a change of a file counts as outside the workspace: it is there, or makes programs run."""
    root, real = os.path.realpath(workspace), _real(path, workspace)
    ways = ((real, root), (_absolute(path, workspace), os.path.abspath(workspace)))
    if not real or not is_within(real, root):
        return True
    return any(starts_programs(os.path.relpath(way, top).split(os.sep)) for way, top in ways if is_within(way, top))


def _absolute(path: str, workspace: str) -> str:
    return os.path.normpath(os.path.join(os.path.abspath(workspace), os.path.expanduser(path)))


def _real(path: str, workspace: str) -> str:
    place = _absolute(path, workspace)
    if len(place) > LONGEST_PATH:
        return ""
    try:
        return os.path.realpath(place)
    except (OSError, ValueError):
        # A NUL, half a character: no file can have that name.
        return ""


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


class _Placed(NamedTuple):
    """A pattern in its place: directories that are what they are, and what has wildcards below them."""

    base: str
    rest: str

    def matches(self, names: Sequence[str]) -> bool:
        base = _names(self.base)
        pattern = _compiled(self.rest)
        return list(names[: len(base)]) == base and match_path(pattern, names[len(base) :])

    def is_around(self, names: Sequence[str]) -> bool:
        """Whether a path below the base, or a directory that it is in, matches; or all that would be below it."""
        inside = names[len(_names(self.base)) :]
        # One of the two that stand for what is below is no file.
        no_file = len(inside) + 1
        return any(count != no_file for count in match_beginnings(_compiled(self.rest), [*inside, *_BELOW]))

    def folded(self) -> _Placed:
        return _Placed(self.base.casefold(), self.rest.casefold())


@lru_cache(maxsize=1024)
def _compiled(rest: str) -> Sequence[Segment]:
    return segments(rest) if rest else []


def _wide(text: str, workspace: str) -> set[_Placed]:
    found = {
        placed for top in (os.path.realpath(workspace), os.path.abspath(workspace)) for placed in _placed(text, top)
    }
    if text.startswith("/") and not text.startswith("//"):
        # Some write it for the root of the project.
        found.update(_placed(text.lstrip("/"), os.path.realpath(workspace)))
    found |= {placed._replace(base=os.path.realpath(placed.base)) for placed in found}
    if "/" not in text.rstrip("/") and not text.startswith("~"):
        found |= {_Placed("/", f"**/{name.rstrip('/')}") for name in expand_braces(text)}
    return {placed.folded() for placed in found}


def _placed(text: str, root: str) -> Iterator[_Placed]:
    """The pattern in its place, for each alternative."""
    for alternative in expand_braces(text):
        base = root
        names = alternative.split("/")
        if alternative.startswith("/"):
            base = "/"
        elif names[0].startswith("~"):
            base = os.path.realpath(os.path.expanduser(names[0]))
            names = names[1:]
        if names and not names[-1]:
            names[-1] = "**"
        names = [name for name in names if name not in ("", ".")]
        fixed = next((at for at, name in enumerate(names) if any(char in _SPECIAL for char in name)), len(names))
        yield _Placed(os.path.normpath(os.path.join(base, *names[:fixed])), "/".join(names[fixed:]))
