"""What the file tools share: regular files read without ever blocking, and what of them the model has seen.

Only regular files are opened: a pipe or a device could keep a reader waiting for good, and a directory is no file.
Nothing larger than `LARGEST_FILE` is ever held in memory.
"""

from __future__ import annotations

import errno
import os
import stat
import threading

from trunkline.base.values import Value
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.threads import StopFlag
from trunkline.tools.tool import ToolOutput

#: What is read, edited or written in one piece. Beyond it a file is data and no source, and each copy hurts.
LARGEST_FILE = 10 * 1024 * 1024
#: A NUL in the first bytes tells binary from text: nearly every binary format has one in its header.
BINARY_PROBE = 8192
#: How many files are remembered. An entry is small; a session that reads more has long forgotten the first.
REMEMBERED_FILES = 1000
#: Parts of one file whose showing is remembered.
REMEMBERED_PARTS = 64

_CHUNK = 1024 * 1024
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_KINDS = {
    stat.S_IFDIR: "it is a directory; use Glob to list its files",
    stat.S_IFIFO: "it is a pipe, not a regular file",
    stat.S_IFSOCK: "it is a socket, not a regular file",
    stat.S_IFCHR: "it is a device, not a regular file",
    stat.S_IFBLK: "it is a device, not a regular file",
}


class FileProblem(ToolInputError):
    """A file cannot be used as was asked; the text says why and what to do."""


class FileState(Value):
    """What tells one content of a file from another. Files over `LARGEST_FILE` have no digest."""

    mtime_ns: int
    size: int
    digest: bytes | None = None

    def same_content(self, other: FileState) -> bool:
        """Whether both are of the same content: a file that was only touched has not changed."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return (self.mtime_ns, self.size) == (other.mtime_ns, other.size)


#: A part of a file that was asked for: the first line from 0, and how many (`None`: to the end).
Part = tuple[int, int | None]


class _Seen:
    def __init__(self, state: FileState) -> None:
        self.state = state
        self.parts: set[Part] = set()


class FileMemory:
    """Which files the model has seen, and in which state. Holds no contents and forgets the oldest; for any thread.

    Paths are real ones: a file that was read through a link is known under its own name, too.
    """

    def __init__(self, limit: int = REMEMBERED_FILES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        # In the order of use, the latest last.
        self._seen: dict[str, _Seen] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def state(self, path: str) -> FileState | None:
        """How the file was when it was last read or written by a tool."""
        with self._lock:
            seen = self._seen.get(path)
            return seen.state if seen else None

    def was_shown(self, path: str, state: FileState, part: Part) -> bool:
        """Whether the model has this part of exactly this content before its eyes."""
        with self._lock:
            seen = self._seen.get(path)
            return seen is not None and part in seen.parts and seen.state.same_content(state)

    def note(self, path: str, state: FileState, part: Part | None = None) -> None:
        """The file was read, and `part` of it shown; or, without a part, it was written."""
        with self._lock:
            seen = self._seen.pop(path, None)
            if seen is None or part is None or not seen.state.same_content(state):
                seen = _Seen(state)
            seen.state = state
            if part is not None and len(seen.parts) < REMEMBERED_PARTS:
                seen.parts.add(part)
            self._seen[path] = seen
            if len(self._seen) > self._limit:
                del self._seen[next(iter(self._seen))]

    def restore(self, path: str, digest: str) -> None:
        """The model has read the file in an earlier process, when its content had this digest, in hexadecimal digits.

        Raises:
            ValueError: it is no digest.
        """
        self.note(path, FileState(0, 0, bytes.fromhex(digest)))

    def forget_shown(self) -> None:
        """The conversation has lost earlier results: what was shown must be shown again when it is asked for.

        That a file was read is still known: what the summary says of it may be edited.
        """
        with self._lock:
            for seen in self._seen.values():
                seen.parts.clear()


def digest_of(data: bytes) -> bytes:
    """A name for a content."""
    import hashlib

    return hashlib.blake2b(data, digest_size=16).digest()


def state_of(data: bytes, status: os.stat_result) -> FileState:
    """The state of a file that was read or written in one piece."""
    return FileState(status.st_mtime_ns, len(data), digest_of(data))


def open_regular(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, and never wait for it. The caller closes it.

    Raises:
        FileProblem: it is something else.
        OSError, ValueError: it cannot be opened; `reason` words it.
    """
    # Before it is opened: opening a device can have effects of its own.
    require_regular(os.stat(path))
    fd = os.open(path, _READ_FLAGS)
    try:
        status = os.fstat(fd)
        # Again: the name may have been given to something else meanwhile.
        require_regular(status)
    except BaseException:
        os.close(fd)
        raise
    return fd, status


def require_regular(status: os.stat_result) -> None:
    """Go on only with a regular file.

    Raises:
        FileProblem: it is something else.
    """
    if not stat.S_ISREG(status.st_mode):
        raise FileProblem(_KINDS.get(stat.S_IFMT(status.st_mode), "it is not a regular file"))


def read_bytes(fd: int, limit: int, stop: StopFlag, start: bytes = b"") -> bytes:
    """The rest of an open file behind `start`, but no more than `limit` bytes together."""
    data = bytearray(start)
    while len(data) < limit:
        stop.check()
        chunk = os.read(fd, min(_CHUNK, limit - len(data)))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def read_whole(path: str, stop: StopFlag) -> tuple[bytes, os.stat_result]:
    """A whole file.

    Raises:
        FileProblem: it is not a regular file, or over `LARGEST_FILE`.
        OSError, ValueError: it cannot be read; `reason` words it.
    """
    fd, status = open_regular(path)
    try:
        # Files of the system say that they are empty, and are not.
        data = read_bytes(fd, LARGEST_FILE + 1, stop) if status.st_size <= LARGEST_FILE else b""
    finally:
        os.close(fd)
    if max(len(data), status.st_size) > LARGEST_FILE:
        raise FileProblem(f"it is larger than {LARGEST_FILE} bytes")
    return data, status


def is_binary(data: bytes) -> bool:
    """Whether a file that begins like this is no text."""
    return b"\0" in data[:BINARY_PROBE]


def reason(error: OSError | ValueError) -> str:
    """Why a file cannot be used, in words."""
    if isinstance(error, FileProblem):
        return str(error)
    if isinstance(error, OSError):
        text = os.strerror(error.errno) if error.errno is not None else str(error)
        return f"{text}. Use Glob to find the right path." if error.errno == errno.ENOENT else text
    # `os` raises these for a NUL and for half a character.
    return "no file can have that name"


def failure(verb: str, path: str, error: OSError | ValueError) -> ToolOutput:
    """The result of a call that could not do its work on a file."""
    return ToolOutput(f"Failed to {verb} file {path}: {reason(error)}", status="error")
