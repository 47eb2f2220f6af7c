"""The whole workspace at one moment: what is at each path of it, ignored files included.

A file whose size, times, number and permissions are as before is not read again. Left out are the stores of version
control, what is marked as a cache, large directories that a command makes anew (`node_modules`, virtual environments),
and our own state. What is found is bounded in number, size and time: a workspace beyond that is not taken in.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from trunkline.agents.coder.undo import states
from trunkline.agents.coder.undo.faults import NoCheckpoint
from trunkline.agents.coder.undo.shadow import Keeper, ShadowStore
from trunkline.agents.coder.undo.states import LARGEST_KEPT, PathState, kind_of, look
from trunkline.base import paths
from trunkline.base.printable import printable_line
from trunkline.base.replacing import replace_private

#: Files and directories of one workspace: beyond it looking at each takes longer than the command does.
MOST_PATHS = 50_000
#: Bytes of files that were not kept before, in one go.
MOST_BYTES = 512 * 1024 * 1024
#: How long one look may take. The first one keeps all files.
SCAN_SECONDS = 10.0

#: Undo puts files back; commits and branches are for the version control itself.
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
#: What marks a directory as a cache.
CACHE_MARK = "CACHEDIR.TAG"
#: A command makes them anew, and they have more files than all the rest: what is called so, or marked as a virtual
#: environment of Python.
REMADE = "node_modules"
REMADE_MARK = "pyvenv.cfg"
#: Files and directories, and bytes, that such a one may have and be taken in all the same.
MOST_REMADE = 500
MOST_REMADE_BYTES = 16 * 1024 * 1024

#: The clock of a file system may be that far behind: what changed later than this before a look may have changed
#: after it as well, and look the same.
_TICK_NS = 50_000_000


class Seen(NamedTuple):
    """What was seen at a path."""

    signature: tuple[int, ...]
    """What changes when it does; empty if that cannot be relied on."""
    state: PathState


class Manifest(NamedTuple):
    """A workspace at one moment: paths from there, and what is at each."""

    paths: Mapping[str, Seen]
    left_out: frozenset[str] = frozenset()
    """Directories that are not taken in."""
    closed: frozenset[str] = frozenset()
    """Directories that could not be listed: nobody knows what is in them."""


def scan(
    root: str, known: Manifest, store: ShadowStore, excluded: Iterable[str], check: Callable[[], None]
) -> Manifest:
    """What is in the workspace now. Contents that are not of `known` are kept in the store.

    `check` is called now and then, and ends it by raising.

    Raises:
        NoCheckpoint: it is too much, or cannot be listed or kept.
    """
    began = time.time_ns()
    deadline = time.monotonic() + SCAN_SECONDS
    kept = {seen.state.blob for seen in known.paths.values()}
    look_around = _Walk(root, known.paths, frozenset(excluded), check)
    # All are counted before the first is read: most of a workspace that is too large would be read in vain.
    look_around.run()
    if sum(min(status.st_size, LARGEST_KEPT) for _, _, status in look_around.news) > MOST_BYTES:
        raise NoCheckpoint(f"Its files have more than {MOST_BYTES // 2**20} MiB.")
    with store.keeping() as keeper:
        for path, full, status in look_around.news:
            check()
            if time.monotonic() > deadline:
                raise NoCheckpoint(f"To look at all of its files takes longer than {SCAN_SECONDS:.0f} s.")
            seen = _see(full, status, keeper, kept, began)
            if seen is not None:
                look_around.found[path] = seen
    return Manifest(look_around.found, frozenset(look_around.left_out), frozenset(look_around.closed))


def changed(before: Manifest, after: Manifest) -> Iterator[tuple[str, PathState | None, PathState | None]]:
    """The paths at which something else was then than there is now, and both; as far as both times are known."""
    left_out = tuple(f"{path}/" for path in before.left_out | after.left_out)
    closed = tuple(f"{path}/" for path in before.closed | after.closed)
    for path, old, new in _different(before.paths, after.paths):
        if not f"{path}/".startswith(left_out) and not path.startswith(closed):
            yield path, old, new


def not_known(before: Manifest, after: Manifest) -> list[str]:
    """What has changed and cannot be put back: in directories that could be listed at one of both times only, and that
    one is gone which is not taken in, such as the repository in a directory that was removed."""
    found = sorted(path for path in before.closed ^ after.closed if path in before.paths and path in after.paths)
    gone = sorted(path for path in before.left_out - after.left_out if path not in after.paths)
    return [
        *(f"`{printable_line(path)}` could not be listed." for path in found),
        *(f"`{printable_line(path)}` is gone, and what it held is not kept." for path in gone),
    ]


def _different(
    before: Mapping[str, Seen], after: Mapping[str, Seen]
) -> Iterator[tuple[str, PathState | None, PathState | None]]:
    for path, old in before.items():
        new = after.get(path)
        if new is not old and (new is None or new.state != old.state):
            yield path, old.state, new.state if new else None
    for path, seen in after.items():
        if path not in before:
            yield path, None, seen.state


def save(manifest: Manifest, file: str) -> None:
    """Keep what was seen.

    Raises:
        NoCheckpoint: it cannot be written.
    """
    rows = [[path, seen.signature, *states.to_json(seen.state)] for path, seen in manifest.paths.items()]
    told = {"paths": rows, "left_out": sorted(manifest.left_out), "closed": sorted(manifest.closed)}
    try:
        paths.ensure_dir(os.path.dirname(file))
        # ASCII: names that are no text come through as escapes.
        replace_private(file, json.dumps(told).encode("ascii"))
    except OSError as error:
        raise NoCheckpoint(paths.unusable(error)) from None


def read(file: str) -> Manifest:
    """What was kept.

    Raises:
        NoCheckpoint: that cannot be read.
    """
    try:
        with open(file, encoding="ascii") as text:
            told = json.load(text)
        found = {str(path): Seen(tuple(map(int, signature)), _state(*rest)) for path, signature, *rest in told["paths"]}
        return Manifest(found, frozenset(map(str, told["left_out"])), frozenset(map(str, told["closed"])))
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        raise NoCheckpoint("What was there before cannot be read.") from None


def load(file: str) -> Manifest:
    """What an earlier process saw; nothing, if that cannot be read: then all files are read again."""
    try:
        return read(file)
    except NoCheckpoint:
        return Manifest({})


def _state(*data: object) -> PathState:
    state = states.from_json(data)
    if state is None:
        raise ValueError("nothing is at the path")
    return state


class _Walk:
    """A look at everything below a directory."""

    def __init__(
        self, root: str, known: Mapping[str, Seen], excluded: frozenset[str], check: Callable[[], None]
    ) -> None:
        self._root = root
        self._known = known
        self._excluded = excluded
        self._check = check
        self._count = 0
        self.found: dict[str, Seen] = {}
        """What is known of it already: directories, and what is as it was."""
        self.news: list[tuple[str, str, os.stat_result]] = []
        """What must be read, with its full path."""
        self.left_out: set[str] = set()
        self.closed: set[str] = set()

    def run(self) -> None:
        waiting: list[tuple[str, os.DirEntry[str] | None]] = [("", None)]
        while waiting:
            below, own = waiting.pop()
            entries = self._entries(below)
            if own is not None:
                if _is_left_out(own, {entry.name for entry in entries}):
                    self.left_out.add(below)
                    continue
                self._look_at(below, own)
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                if entry.name in VERSION_CONTROL:
                    self.left_out.add(path)
                    continue
                if entry.path in self._excluded:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((path, entry))
                else:
                    self._look_at(path, entry)

    def _entries(self, below: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, below)) as listing:
                return list(listing)
        except FileNotFoundError:
            # It went while we looked.
            return []
        except OSError as error:
            if not below:
                # All that is in it would seem to come and go with the permission to look.
                raise NoCheckpoint(f"The workspace could not be listed: {os.strerror(error.errno or 0)}.") from None
            self.closed.add(below)
            return []

    def _look_at(self, path: str, entry: os.DirEntry[str]) -> None:
        self._count += 1
        if self._count > MOST_PATHS:
            raise NoCheckpoint(f"The workspace has more than {MOST_PATHS} files.")
        if self._count % 256 == 0:
            self._check()
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            # The same.
            return
        signature = _signature(status)
        seen = self._known.get(path)
        if seen is not None and seen.signature == signature:
            self.found[path] = seen
        elif stat.S_ISDIR(status.st_mode):
            self.found[path] = Seen(signature, PathState("directory", stat.S_IMODE(status.st_mode)))
        else:
            self.news.append((path, entry.path, status))


def _is_left_out(entry: os.DirEntry[str], names: Container[str]) -> bool:
    """Whether a directory with these names in it is not taken in."""
    return CACHE_MARK in names or ((entry.name == REMADE or REMADE_MARK in names) and _holds_much(entry.path))


def _holds_much(directory: str) -> bool:
    count = size = 0
    for folder, folders, files in os.walk(directory):
        count += len(folders) + len(files)
        if count > MOST_REMADE:
            return True
        for name in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
        if size > MOST_REMADE_BYTES:
            return True
    return False


def _see(full: str, status: os.stat_result, keeper: Keeper, kept: set[str], began: int) -> Seen | None:
    state, data = look(full, status)
    if state is None:
        return None
    if state.kind in ("file", "link") and state.is_kept and state.blob not in kept:
        keeper.keep(state.blob, data)
    is_reliable = state.is_kept and status.st_ctime_ns < began - _TICK_NS
    return Seen(_signature(status) if is_reliable else (), state)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    if kind_of(status) == "directory":
        return (status.st_mode,)
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
