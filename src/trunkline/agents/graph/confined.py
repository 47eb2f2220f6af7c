"""Paths that clients name: relative to the storage folder, and never out of it."""

from __future__ import annotations

import errno
import os
import re

from trunkline.base.regular import read_regular
from trunkline.core.faults import OutsideStorage, StorageError, StorageMissing

#: The largest file that is read.
MAX_FILE_BYTES = 64 * 1024 * 1024

#: Of a path as it is sent, in UTF-8: no system opens a longer one.
MAX_PATH_BYTES = 4096
#: Folders of a path, and its file. Each is looked up by itself, which takes the longer the more there are before it,
#: in threads that all clients share.
MAX_PARTS = 64

#: How a system says that nothing is there: also below what is no folder, and under a name that is too long to be one.
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)

_DRIVE = re.compile(r"[A-Za-z]:")


def resolve(root: str | None, relative: str) -> str:
    """The real path of what a relative one names, links followed; it need not be there.

    Raises:
        OutsideStorage: it is absolute on some system or leads out of the root, by `..` or by a link.
        StorageMissing: this session has no folder, or no file can be called so.
    """
    check_size(relative)
    if relative.startswith("/") or is_foreign(relative):
        raise OutsideStorage(f"`{relative}` is not relative to the storage folder.")
    # A path written for another system leads to the same place here, and is checked as such.
    relative = relative.replace("\\", "/")
    if root is None:
        # Where there is no folder a path can still lead out of it, and what it is refused for does not depend on that.
        if os.path.normpath(relative).split("/", 1)[0] == "..":
            raise OutsideStorage(f"`{relative}` leads out of the storage folder.")
        raise StorageMissing(f"`{relative}` does not exist: this session has no storage folder.")
    if "\0" in relative:
        raise StorageMissing("A path with a NUL character names no file.")
    base = os.path.realpath(root)
    path = os.path.realpath(os.path.join(base, relative))
    if path != base and not path.startswith(base.rstrip("/") + "/"):
        raise OutsideStorage(f"`{relative}` leads out of the storage folder.")
    return path


def check_size(path: str) -> None:
    """Look whether a path is short enough to be looked up, before anything else is done with it.

    Raises:
        StorageMissing: it is too long, or has too many parts.
    """
    # What has too many characters has too many bytes, too.
    if len(path) > MAX_PATH_BYTES or len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise StorageMissing(f"A path of more than {MAX_PATH_BYTES} bytes names no file.")
    if path.count("/") + path.count("\\") >= MAX_PARTS:
        raise StorageMissing(f"A path of more than {MAX_PARTS} parts names no file here.")


def is_foreign(path: str) -> bool:
    """Whether a path is absolute, or on a drive, on another system."""
    return path.startswith("\\") or _DRIVE.match(path) is not None


def exists(root: str | None, name: str) -> bool:
    """Whether a name is also the path of a file in the root."""
    try:
        return os.path.isfile(resolve(root, name))
    except StorageError:
        return False


def state(root: str | None, relative: str) -> tuple[object, ...] | None:
    """What changes when a file does, and is no other file's; None of one that cannot be looked at.

    Raises:
        OutsideStorage: outside.
        StorageMissing: this session has no folder.
    """
    path = resolve(root, relative)
    try:
        found = os.stat(path)
    except OSError:
        return None
    return path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read(root: str | None, relative: str, unreadable: type[StorageError]) -> bytes:
    """The bytes of a file.

    Raises:
        OutsideStorage: outside.
        StorageMissing: not there.
        StorageError: of the kind `unreadable`, it is no plain file, too large, or refuses.
    """
    path = resolve(root, relative)
    try:
        contents = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        if error.errno in _MISSING:
            raise StorageMissing(f"`{relative}` is not in the storage folder.") from None
        raise unreadable(f"`{relative}` cannot be read: {error.strerror or 'no file'}.") from None
    if contents.cut:
        raise unreadable(f"`{relative}` has more than {MAX_FILE_BYTES} bytes.")
    return contents.data
