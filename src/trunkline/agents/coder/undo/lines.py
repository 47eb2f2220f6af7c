"""A file of JSON, one line for each thing that happened, oldest first. A line that a crash cut short does not count."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from trunkline.agents.coder.undo.faults import NoCheckpoint
from trunkline.base import paths
from trunkline.base.replacing import replace_private
from trunkline.store import locks


class ReadUpTo(NamedTuple):
    """How far a file was read: which one, since it may be replaced by a shorter one, and to which byte."""

    file: int = 0
    offset: int = 0


BEGINNING = ReadUpTo()


class LineFile:
    """All methods may block, though hardly: they read or write one small file."""

    def __init__(self, file: str) -> None:
        self.file = file

    @property
    def exists(self) -> bool:
        """Whether anything was ever added to it."""
        return os.path.exists(self.file)

    @property
    def used(self) -> float:
        """When something was last added to it; 0 if it is not there."""
        try:
            return os.stat(self.file).st_mtime
        except OSError:
            return 0.0

    def add(self, line: Mapping[str, Any]) -> None:
        """In one write at the end: others may add theirs at the same time.

        Raises:
            NoCheckpoint: it cannot be written.
        """
        try:
            paths.ensure_dir(os.path.dirname(self.file))
            with self._held(os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
                size = os.fstat(fd).st_size
                # A crash may have left half a line: it must not take this one along.
                torn = size and os.pread(fd, 1, size - 1) != b"\n"
                data = (b"\n" if torn else b"") + _encoded(line)
                if os.write(fd, data) < len(data):
                    raise OSError(f"`{self.file}` could not be written to its end")
        except OSError as error:
            raise NoCheckpoint(paths.unusable(error)) from None

    def lines(self, since: ReadUpTo = BEGINNING) -> tuple[list[dict[str, Any]], ReadUpTo]:
        """What was added since then, and up to where that is; all of it, if the file is another one by now."""
        try:
            with open(self.file, "rb") as file:
                status = os.fstat(file.fileno())
                offset = since.offset if since.file == status.st_ino and since.offset <= status.st_size else 0
                file.seek(offset)
                data = file.read()
        except OSError:
            return [], since
        whole = data.rfind(b"\n") + 1
        found = []
        for line in data[:whole].splitlines():
            try:
                read = json.loads(line)
            except ValueError:
                continue
            if isinstance(read, dict):
                found.append(read)
        return found, ReadUpTo(status.st_ino, offset + whole)

    def rewrite(self, keep: Callable[[list[dict[str, Any]]], Iterable[Mapping[str, Any]]]) -> None:
        """Have those lines that `keep` gives of all that there are. What others add meanwhile comes behind them.

        Raises:
            NoCheckpoint: it cannot be written.
        """
        try:
            with self._held(os.O_RDONLY):
                replace_private(self.file, b"".join(map(_encoded, keep(self.lines()[0]))))
        except OSError as error:
            raise NoCheckpoint(paths.unusable(error)) from None

    @contextmanager
    def _held(self, flags: int) -> Iterator[int]:
        """The file, opened. Nobody else adds to it or replaces it meanwhile: both are done at once."""
        while True:
            fd = os.open(self.file, flags | os.O_CLOEXEC, locks.PRIVATE_FILE)
            try:
                locks.wait(fd)
                if locks.is_at(fd, self.file):
                    yield fd
                    return
            finally:
                os.close(fd)

    def remove(self) -> None:
        """Forget it, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self.file)


def _encoded(line: Mapping[str, Any]) -> bytes:
    # ASCII: names that are no text come through as escapes.
    return json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
