"""Files replaced in one step: whoever looks sees the old content or the new one, and never half of it.

The new content goes to a file beside the old one, which is then renamed over it. The old file's permissions are kept,
and its owner, group and extended attributes where the system allows that. A symbolic link stays: its target is written.
Where the directory or a mount does not allow it, the file is written in place: better than not at all.

Known limits: other hard links to the file keep the old content, and it is not forced to the disk: after a power cut
the old content may be back.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trunkline.base.paths import ensure_dir
from trunkline.tools.files import LARGEST_FILE, FileProblem, require_regular

#: A fixed number of locks for all the paths there are: two that share one wait for each other, and nothing piles up.
_LOCKS = tuple(threading.RLock() for _ in range(64))

#: Directories that take no new file, files that are mount points: what can still be written in place.
_NO_RENAME = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)

#: Leaves room in a name of at most 255 bytes for what is added to it.
_LONGEST_STEM = 200


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Held by whoever looks at a file and then replaces it: within this process, nobody else does so meanwhile."""
    with _LOCKS[hash(os.path.realpath(path)) % len(_LOCKS)]:
        yield


def replace_file(path: str, data: bytes, check: Callable[[], None], *, private: bool = False) -> bool:
    """Give a file this content, with the directories that it needs; true if it is new. Call it within `writing`.

    `check` is called right before the change becomes visible, and prevents it by raising. `private`: what has to be
    made is for this user alone.

    Raises:
        FileProblem: it is not a regular file, is read-only, or the content is too large.
        OSError, ValueError: the system does not allow it.
    """
    if len(data) > LARGEST_FILE:
        raise FileProblem(
            f"the content has {len(data)} bytes; the limit is {LARGEST_FILE}. Write it in parts with Bash"
        )
    target = os.path.realpath(path)
    before = _status(target)
    if before is None:
        if private:
            ensure_dir(os.path.dirname(target))
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        _replace(target, data, before, check, 0o600 if private else 0o666)
    except OSError as error:
        if before is None or error.errno not in _NO_RENAME:
            raise
        check()
        _write_in_place(target, data)
    return before is None


def _status(target: str) -> os.stat_result | None:
    """What is there, if it may be replaced."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    require_regular(status)
    if not os.access(target, os.W_OK):
        raise FileProblem("it is read-only")
    return status


def _replace(target: str, data: bytes, before: os.stat_result | None, check: Callable[[], None], new: int) -> None:
    temporary = _temporary(target)
    # Nobody else may look at a content before it has the permissions that it shall have.
    mode = new if before is None else 0o600
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            _write_all(fd, data)
            if before is not None:
                _copy_rights(fd, target, before)
        finally:
            os.close(fd)
        check()
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _temporary(target: str) -> str:
    folder, name = os.path.split(target)
    while len(os.fsencode(name)) > _LONGEST_STEM:
        name = name[:-1]
    return os.path.join(folder, f"{name}.tmp.{os.getpid()}.{os.urandom(4).hex()}")


def _copy_rights(fd: int, target: str, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode)
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(fd, before.st_uid, before.st_gid)
        except PermissionError:
            # Only the superuser gives files away. A program must not run with the rights of somebody else, though.
            mode &= 0o777
    _copy_attributes(fd, target)
    os.fchmod(fd, mode)


def _copy_attributes(fd: int, target: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        for name in os.listxattr(target):
            os.setxattr(fd, name, os.getxattr(target, name))
    except OSError:
        # Not every file system has them, and some are the system's own business.
        return


def _write_in_place(target: str, data: bytes) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _write_all(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
