"""The Glob tool: files by the pattern of their path, the newest first.

Names that begin with a dot are matched only by a pattern that says the dot, as in a shell. What git ignores is left
out, and so is `.git`. Symbolic links to directories are not followed, so there are no loops.
"""

from __future__ import annotations

import heapq
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trunkline.base.patterns import BadPattern, Segment, expand_braces, segments
from trunkline.base.values import Value
from trunkline.core.events import Category
from trunkline.tools.files import FileProblem, reason
from trunkline.tools.gitignore import REPOSITORY, Ignore
from trunkline.tools.threads import StopFlag, in_thread, reporting
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import one_line
from trunkline.tools.workspace import Workspace, printable

NO_FILES = "No files matched the pattern"
#: How many files are shown.
MOST_FILES = 100
#: How much is looked at before it is said that this was not all; whichever comes first.
MOST_ENTRIES = 1_000_000
GLOB_SECONDS = 10.0

_SPECIAL = "*?[]{}\\"


class Glob:
    """Finds files by name."""

    name = "Glob"
    category: Category = "info"
    limit = 50_000
    concurrent = True
    description = (
        "Find files by a pattern such as `**/*.py`, `src/*.{ts,tsx}` or `docs/**`. Gives the newest first, "
        f"{MOST_FILES} at most, as paths from the workspace. Leaves out what git ignores, and hidden files unless the "
        "pattern has the dot. To search in files, use Grep."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The pattern. `**` is any number of directories."},
            "path": {"type": "string", "description": "The directory to search in. Default: the workspace."},
        },
        "required": ["pattern"],
    }

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def describe(self, args: Mapping[str, Any]) -> str:
        return one_line(f"Search for {args['pattern']}")

    def outside(self, args: Mapping[str, Any]) -> bool:
        try:
            searches = self._searches(args["pattern"], args.get("path", ""))
        except BadPattern:
            return False
        return any(self._workspace.reads_outside(search.directory) for search in searches)

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        pattern, path = args["pattern"], args.get("path", "")
        try:
            searches = self._searches(pattern, path)
            root = self._workspace.resolve(path)
            hides = [self._workspace.hidden_below(search.directory, self.name) for search in searches]
            looking = in_thread(lambda stop: _find(root, searches, hides, stop))
            found = await reporting(looking, report, self.describe(args))
        except BadPattern as error:
            return ToolOutput(f"Bad pattern: {error}", status="error")
        except (OSError, ValueError) as error:
            return ToolOutput(f"Failed to search {path or '.'}: {reason(error)}", status="error")
        return ToolOutput(self._text(found), foreign=bool(found.total))

    def _searches(self, pattern: str, path: str) -> list[_Search]:
        return [_search(self._workspace, path, alternative) for alternative in expand_braces(pattern)]

    def _text(self, found: _Found) -> str:
        lines = [printable(self._workspace.relative(path)) for path in found.newest] or [NO_FILES]
        if found.total > len(found.newest):
            lines.append(f"({len(found.newest)} of {found.total} files, the newest; narrow the pattern for others)")
        if not found.complete:
            lines.append("(not all directories were looked at: there are too many; narrow the pattern or give a path)")
        return "\n".join(lines)


class _Search(Value):
    """Where to look, and for what. `dotted` tells which segments may match a hidden name."""

    directory: str
    pattern: tuple[Segment, ...]
    dotted: tuple[bool, ...]


class _Found(Value):
    newest: Sequence[str]
    total: int
    complete: bool


def _search(workspace: Workspace, path: str, pattern: str) -> _Search:
    """A search that begins as deep as the pattern allows."""
    names = pattern.split("/")
    fixed = 0
    while fixed < len(names) - 1 and not any(char in _SPECIAL for char in names[fixed]):
        fixed += 1
    if pattern.startswith("~"):
        names[0] = os.path.expanduser(names[0])
    start = "/".join(names[:fixed]) or ("/" if fixed else "")
    rest = [name for name in names[fixed:] if name not in ("", ".")] or ["*"]
    if ".." in rest:
        raise BadPattern(f"`{pattern}` has `..` behind a wildcard; give the directory as `path`")
    directory = os.path.join(workspace.resolve(path), start)
    if rest[-1] == "**":
        # Directories are not looked for, so it ends with a file.
        rest.append("*")
    # Twice `**` is once.
    rest = [name for at, name in enumerate(rest) if name != "**" or rest[at - 1 : at] != ["**"]]
    dotted = tuple(name.removeprefix("\\").startswith(".") for name in rest)
    return _Search(os.path.normpath(directory), tuple(segments("/".join(rest))), dotted)


def _find(
    root: str, searches: Sequence[_Search], hidden: Sequence[Callable[[str], bool] | None], stop: StopFlag
) -> _Found:
    """`hidden` tells, for each search, which files it leaves out."""
    if not stat.S_ISDIR(os.stat(root).st_mode):
        raise FileProblem("it is not a directory")
    walk = _Walk(stop)
    seen: set[str] = set()
    total = 0
    newest: list[tuple[int, str]] = []
    for search, hides in zip(searches, hidden, strict=True):
        for path in walk.files(search):
            if hides is not None and hides(path):
                continue
            # Two alternatives can match one file.
            if len(searches) > 1:
                if path in seen:
                    continue
                seen.add(path)
            total += 1
            item = (_modified(path), path)
            if len(newest) < MOST_FILES:
                heapq.heappush(newest, item)
            else:
                heapq.heappushpop(newest, item)
    # Of one age, by name.
    ordered = sorted(newest, key=lambda item: (-item[0], item[1]))
    return _Found([path for _, path in ordered], total, walk.complete)


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        # Gone meanwhile, or a link to nowhere.
        return 0


class _Walk:
    """One walk through directories, within limits."""

    def __init__(self, stop: StopFlag) -> None:
        self._stop = stop
        self._deadline = time.monotonic() + GLOB_SECONDS
        self._entries = 0
        self.complete = True

    def files(self, search: _Search) -> Iterator[str]:
        # Each directory with the segments that its entries may match.
        waiting = [(search.directory, _reached(search, {0}), Ignore.above(search.directory))]
        while waiting and self.complete:
            directory, places, ignore = waiting.pop()
            for entry in self._entries_of(directory):
                further = _places_behind(search, places, entry.name)
                is_dir = _is(entry.is_dir, follow_symlinks=False)
                if not further or entry.name == REPOSITORY or ignore.ignores(entry.path, is_dir):
                    continue
                if is_dir:
                    waiting.append((entry.path, _reached(search, further), ignore.inside(entry.path)))
                elif len(search.pattern) in further and _is(entry.is_file):
                    yield entry.path

    def _entries_of(self, directory: str) -> Iterator[os.DirEntry[str]]:
        self._stop.check()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    self._entries += 1
                    if self._entries > MOST_ENTRIES or time.monotonic() > self._deadline:
                        self.complete = False
                        return
                    yield entry
        except OSError:
            # Not readable for us, or gone meanwhile: there is nothing to be found in it.
            return


def _reached(search: _Search, places: set[int]) -> frozenset[int]:
    """The segments that may be next, when each `**` may also stand for nothing."""
    skipped = {place + 1 for place in places if place < len(search.pattern) and search.pattern[place] is None}
    return frozenset(places | skipped)


def _places_behind(search: _Search, places: frozenset[int], name: str) -> set[int]:
    """The segments that may come behind one that matches this name."""
    hidden = name.startswith(".")
    further = set()
    for place in places:
        if place == len(search.pattern) or (hidden and not search.dotted[place]):
            continue
        segment = search.pattern[place]
        if segment is None:
            further.add(place)
        elif segment(name):
            further.add(place + 1)
    return further


def _is(question: Callable[..., bool], **how: bool) -> bool:
    try:
        return question(**how)
    except OSError:
        # A link in a circle, or a disk with a fault.
        return False
