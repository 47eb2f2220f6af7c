"""The file of a memory: what agents wrote down, one dated entry to a line, oldest first.

    {"trunkline_memory":1}
    {"id":"5f0c...","time":"2026-11-18T20:01:02Z","kind":"said","text":"My name is Ann."}

Any number of processes may use one at a time: whoever writes has the file's lock. An entry is appended and synced; one
that was cut off counts as nothing, and is cleared away by the next that comes. When the oldest entries leave, another
file takes the place of the old one. All calls wait for the disk: use a thread.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

from trunkline.agents.graph import confined
from trunkline.base import jsontext, paths
from trunkline.base.regular import read_regular
from trunkline.base.replacing import draft
from trunkline.base.values import Value
from trunkline.core.faults import EmbeddingError, StorageError, StorageMissing
from trunkline.store import locks
from trunkline.store.durable import sync_data

#: How the names of such files end: nothing else in a storage folder is ever written.
SUFFIX = ".jsonl"
#: Bytes of one: 2000 entries of a hundred letters, and all of them are read at each change.
MAX_BYTES = 512 * 1024
#: Letters of an entry.
MAX_TEXT = 500
#: Memories below one storage folder: any client may begin one, and together they have at most 2 GiB.
MAX_FILES = 4096
#: Folders between the storage folder and one: they are made with it.
MAX_FOLDERS = 8
#: Seconds to wait while somebody else writes, which takes some milliseconds.
WAIT_SECONDS = 3.0

_HEADER = {"trunkline_memory": 1}
_KINDS = ("said", "note")

#: `said`: the user's own words; `note`: what a model wrote down of them.
MemoryKind = Literal["said", "note"]

#: Device, number, length and time of a file.
FileState = tuple[int, int, int, int]


class MemoryEntry(Value):
    """Something that is remembered."""

    id: str
    time: str
    """When it was written down: ISO 8601, in UTC."""
    kind: MemoryKind
    text: str


class MemoryFile:
    """One file, which need not be there yet. `path` is real, and in `root`, the storage folder whose memories count."""

    def __init__(self, root: str, path: str) -> None:
        self._root = root
        self.path = path

    @classmethod
    def at(cls, root: str | None, relative: str, name: str, top: str | None = None) -> MemoryFile:
        """The file of a memory that is called so. `top`: the folder below which memories and folders are counted, if
        `root` is a folder inside of it: clients choose that one, and may choose one that a memory has made.

        Raises:
            OutsideStorage: it is outside of the root.
            StorageMissing: there is no storage folder.
            EmbeddingError: it does not have the name of one, is too deep, or is something else.
        """
        cls.check(root, relative, name)
        path = confined.resolve(root, relative)
        counted = os.path.realpath(top or root or "")
        _check_depth(os.path.relpath(path, counted), name)
        found = cls(counted, path)
        found.read(name)
        return found

    @staticmethod
    def check(root: str | None, relative: str, name: str) -> None:
        """Look whether a path can be that of a memory; without a root as far as that can be told.

        Raises:
            OutsideStorage: it is outside of the root.
            EmbeddingError: it does not have the name of one, or is too deep.
        """
        if not relative.endswith(SUFFIX) or os.path.basename(relative) == SUFFIX:
            raise _wrong(name, f"the file of a memory has a name that ends in `{SUFFIX}`, and `{relative}` does not")
        with suppress(StorageMissing):
            confined.resolve(root, relative)
        _check_depth(os.path.normpath(relative.replace("\\", "/")), name)

    def state(self) -> FileState | None:
        """What changes when the file does; None without one."""
        try:
            return _state(os.stat(self.path))
        except OSError:
            return None

    def read(self, name: str) -> tuple[MemoryEntry, ...]:
        """All entries. A file that is not there has none.

        Raises:
            EmbeddingError: it is no memory, or cannot be read.
        """
        try:
            contents = read_regular(self.path, MAX_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _wrong(name, f"its file cannot be read: {error.strerror or 'no file'}") from None
        return _entries(contents.data, name)

    def add(
        self, new: Sequence[MemoryEntry], most: int, name: str, deadline: float | None = None
    ) -> tuple[tuple[MemoryEntry, ...], FileState]:
        """Append entries, and let the oldest go until there are no more than so many. Texts that are there already are
        not written again. Gives all that are there then, and the state of the file, while nobody else wrote.

        `deadline`: until when another process is waited for, by the monotonic clock; else `WAIT_SECONDS` from now.

        Raises:
            EmbeddingError: it is no memory, or cannot be written.
        """
        try:
            fd = self._locked(name, time.monotonic() + WAIT_SECONDS if deadline is None else deadline)
            try:
                return self._added(fd, new, most, name)
            finally:
                os.close(fd)
        except OSError as error:
            raise _wrong(name, f"its file cannot be written: {error.strerror or 'no file'}") from None

    def _locked(self, name: str, deadline: float) -> int:
        while True:
            fd = self._opened(name)
            try:
                if not locks.wait_until(fd, deadline):
                    raise _wrong(name, "another process has locked its file, and does not let go of it")
                # Meanwhile another file may have taken its place.
                if locks.is_at(fd, self.path):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _opened(self, name: str) -> int:
        # The path is real: a link that is at its end now was put there since.
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(self.path, flags)
        except FileNotFoundError:
            if _has_many(self._root):
                raise _wrong(name, f"there are {MAX_FILES} memories in the storage folder") from None
            paths.ensure_dir(os.path.dirname(self.path))
            if os.path.realpath(self.path) != self.path:
                raise _wrong(name, "its folder has become another one") from None
            fd = os.open(self.path, flags | os.O_CREAT, locks.PRIVATE_FILE)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise _wrong(name, "its file is not a regular file")
        return fd

    def _added(
        self, fd: int, new: Sequence[MemoryEntry], most: int, name: str
    ) -> tuple[tuple[MemoryEntry, ...], FileState]:
        data = os.pread(fd, MAX_BYTES + 1, 0)
        old = _entries(data, name)
        known = {entry.text for entry in old}
        new = [entry for entry in new if entry.text not in known]
        appended = b"".join(map(_line, new))
        if not data:
            appended = _line(_HEADER) + appended
        if len(old) + len(new) <= most and len(data) + len(appended) <= MAX_BYTES and data[-1:] in (b"", b"\n"):
            if new:
                _write(fd, appended)
            return (*old, *new), _state(os.fstat(fd))
        left = _newest((*old, *new), most)
        return left, self._replace(b"".join((_line(_HEADER), *map(_line, left))))

    def _replace(self, data: bytes) -> FileState:
        """Whoever waits for the old file's lock sees that it is not there any more. Gives the state of the new one."""
        path = draft(self.path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, locks.PRIVATE_FILE)
        try:
            try:
                _write(fd, data)
                state = _state(os.fstat(fd))
            finally:
                os.close(fd)
            os.replace(path, self.path)
            return state
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise


def _state(found: os.stat_result) -> FileState:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
    sync_data(fd)


def _newest(entries: Sequence[MemoryEntry], most: int) -> tuple[MemoryEntry, ...]:
    room = MAX_BYTES - len(_line(_HEADER))
    kept: list[MemoryEntry] = []
    for entry in reversed(entries[-most:]):
        room -= len(_line(entry))
        if room < 0:
            break
        kept.append(entry)
    return tuple(reversed(kept))


def _line(what: MemoryEntry | dict[str, Any]) -> bytes:
    given = {field: getattr(what, field) for field in what.__fields__} if isinstance(what, MemoryEntry) else what
    return jsontext.dumps(given) + b"\n"


def _entries(data: bytes, name: str) -> tuple[MemoryEntry, ...]:
    """What is in a file. A line that is no entry is one that was cut off."""
    if not data:
        return ()
    if len(data) > MAX_BYTES:
        raise _wrong(name, f"its file has more than {MAX_BYTES} bytes")
    first, *lines = data.split(b"\n")
    if _loaded(first) != _HEADER and _line(_HEADER).rstrip().startswith(first) and not any(lines):
        # Cut off at its very beginning.
        return ()
    if _loaded(first) != _HEADER:
        raise _wrong(name, "its file is not one that a memory wrote")
    return tuple(_read(map(_loaded, lines)))


def _read(values: Iterable[Any]) -> Iterable[MemoryEntry]:
    for value in values:
        match value:
            case {"id": str(id), "time": str(time), "kind": kind, "text": str(text)} if kind in _KINDS:
                yield MemoryEntry(id, time, kind, text[:MAX_TEXT])


def _loaded(line: bytes) -> Any:
    try:
        return jsontext.loads(line)
    except ValueError:
        return None


def _has_many(root: str) -> bool:
    count = 0
    for _, _, names in os.walk(root):
        count += sum(name.endswith(SUFFIX) for name in names)
        if count >= MAX_FILES:
            return True
    return False


def _check_depth(path: str, name: str) -> None:
    if path.count("/") > MAX_FOLDERS:
        raise _wrong(name, f"its file is in more than {MAX_FOLDERS} folders below the storage folder")


def _wrong(name: str, problem: str) -> StorageError:
    return EmbeddingError(f"The memory `{name}`: {problem}.")
