"""What is at a path: a file, a directory, a link, or nothing. Contents have the names that git gives them.

Links are never followed: what is looked at is the entry of the directory itself.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Literal

from trunkline.base.values import Value

#: A larger file is data and no source, and a copy of each of its versions would fill the disk. That it changed is
#: still noticed.
LARGEST_KEPT = 16 * 1024 * 1024

_CHUNK = 1024 * 1024
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW

Kind = Literal["file", "directory", "link", "other"]
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_LETTERS: dict[Kind, str] = {"file": "f", "directory": "d", "link": "l", "other": "o"}
_OF_LETTER: dict[str, Kind] = {letter: kind for kind, letter in _LETTERS.items()}


class PathState(Value):
    """What was at a path, at one moment. Two that are equal are the same to everybody who looks."""

    kind: Kind
    mode: int = 0
    """The permission bits; of a link there are none."""
    blob: str = ""
    """The name of its content, if that is kept; else what tells it from another."""

    @property
    def is_kept(self) -> bool:
        """Whether it can be made again from its content."""
        return self.kind == "directory" or (self.kind != "other" and ":" not in self.blob)


def to_json(state: PathState | None) -> Any:
    """A state as JSON data."""
    return None if state is None else [_LETTERS[state.kind], state.mode, state.blob]


def from_json(data: Any) -> PathState | None:
    """The state of some JSON data.

    Raises:
        ValueError: it is none.
    """
    if data is None:
        return None
    try:
        letter, mode, blob = data
        return PathState(_OF_LETTER[letter], int(mode), str(blob))
    except (KeyError, TypeError, ValueError):
        raise ValueError("not what was at a path") from None


def kind_of(status: os.stat_result) -> Kind:
    """What kind of thing it is."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "other")


def blob_name(data: bytes) -> str:
    """The name that git gives a content."""
    import hashlib

    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def look(
    path: str, status: os.stat_result | None = None, *, dir_fd: int | None = None
) -> tuple[PathState | None, bytes]:
    """What is at a path, and its content, as far as that is kept. `status` is what `lstat` said of it just now; with
    `dir_fd` the path begins in that directory."""
    try:
        status = status or os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        match kind_of(status):
            case "directory":
                return PathState("directory", stat.S_IMODE(status.st_mode)), b""
            case "link":
                target = os.fsencode(os.readlink(path, dir_fd=dir_fd))
                return PathState("link", 0, blob_name(target)), target
            case "file":
                return _look_into(path, status, dir_fd)
            case _:
                blob = f"other:{stat.S_IFMT(status.st_mode)}:{status.st_rdev}"
                return PathState("other", stat.S_IMODE(status.st_mode), blob), b""
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None, b""
        if status is None:
            return PathState("other", 0, "unseen:"), b""
        return PathState(kind_of(status), stat.S_IMODE(status.st_mode), _by_time("unread", status)), b""


def _look_into(path: str, status: os.stat_result, dir_fd: int | None) -> tuple[PathState, bytes]:
    mode = stat.S_IMODE(status.st_mode)
    if status.st_size > LARGEST_KEPT:
        return PathState("file", mode, _by_time("large", status)), b""
    fd = os.open(path, _READ_FLAGS, dir_fd=dir_fd)
    try:
        data = bytearray()
        while len(data) <= LARGEST_KEPT and (chunk := os.read(fd, min(_CHUNK, LARGEST_KEPT + 1 - len(data)))):
            data += chunk
    finally:
        os.close(fd)
    if len(data) > LARGEST_KEPT:
        return PathState("file", mode, _by_time("large", status)), b""
    content = bytes(data)
    return PathState("file", mode, blob_name(content)), content


def changed_at(blob: str) -> float:
    """When a content was last changed that nobody has read, in seconds."""
    return int(blob.rpartition(":")[2]) / 1e9


def _by_time(why: str, status: os.stat_result) -> str:
    """What tells a content that nobody reads from another."""
    return f"{why}:{status.st_size}:{status.st_mtime_ns}"
