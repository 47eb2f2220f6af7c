"""Makes a path what it was: one entry of a directory at a time, each in one step, and never through a link."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import AbstractContextManager, suppress

from trunkline.agents.coder.undo.states import PathState, look
from trunkline.base.unlinked import DIRECTORY, ENTRY, opened_parent

#: What the system says of a file or a link that stands where a directory was.
NO_WAY = (errno.ENOTDIR, errno.ELOOP)

#: What the owner needs in order to put something into a directory.
_ENTER = 0o700


class Restorer:
    """Puts back what was in a workspace, or where an absolute path leads."""

    def __init__(self, root: str) -> None:
        self._root = root

    def now(self, path: str) -> PathState | None:
        """What is at a path: nothing, where a directory on the way is a file or a link by now.

        Raises:
            OSError: a directory on the way cannot be passed.
        """
        try:
            with self._parent(path) as (folder, name):
                return look(name, dir_fd=folder)[0]
        except OSError as error:
            if error.errno in (errno.ENOENT, *NO_WAY):
                return None
            raise

    def remove(self, path: str, state: PathState) -> None:
        """Take away what is there: a directory only if it is empty.

        Raises:
            OSError: it cannot be removed.
        """
        with self._parent(path) as (folder, name):
            if state.kind == "directory":
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def make_directory(self, path: str) -> None:
        """Have a directory that can be written to for now; `set_mode` follows.

        Raises:
            OSError: it cannot be made, or changed.
        """
        with self._parent(path) as (folder, name):
            try:
                os.mkdir(name, _ENTER, dir_fd=folder)
            except FileExistsError:
                with suppress(PermissionError):
                    _chmod(folder, name, None)

    def move(self, path: str, state: PathState, source: str) -> None:
        """Bring a file back from where it is now.

        Raises:
            OSError: it cannot be moved.
        """
        with self._parent(path) as (folder, name), self._parent(source) as (there, its_name):
            os.rename(its_name, name, src_dir_fd=there, dst_dir_fd=folder)
            _chmod(folder, name, state.mode)

    def set_mode(self, path: str, state: PathState) -> None:
        """Give a directory its permissions.

        Raises:
            OSError: that is not allowed.
        """
        with self._parent(path) as (folder, name):
            _chmod(folder, name, state.mode)

    def write(self, path: str, state: PathState, data: bytes) -> None:
        """Make a file or a link, in place of another one or of nothing.

        Raises:
            OSError: it cannot be written.
        """
        with self._parent(path) as (folder, name):
            temporary = f".trunkline-undo.{os.getpid()}.{os.urandom(4).hex()}"
            try:
                if state.kind == "link":
                    os.symlink(os.fsdecode(data), temporary, dir_fd=folder)
                else:
                    _write_new(folder, temporary, data, state.mode, like=name)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except PermissionError:
                if state.kind == "link":
                    raise
                # The directory takes no new file; the file may still take another content.
                _write_in_place(folder, name, data, state.mode)
            finally:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)

    def _parent(self, path: str) -> AbstractContextManager[tuple[int, str]]:
        return opened_parent(self._root, path)


def _chmod(folder: int, name: str, mode: int | None) -> None:
    """Of nothing that a link leads to; without a mode: of a directory, so that its owner can work in it."""
    fd = os.open(name, ENTRY if mode is not None else DIRECTORY, dir_fd=folder)
    try:
        own = stat.S_IMODE(os.fstat(fd).st_mode) | _ENTER if mode is None else mode
        # One that was opened without reading it has no other name to be changed by.
        os.chmod(f"/proc/self/fd/{fd}" if hasattr(os, "O_PATH") else fd, own)
    finally:
        os.close(fd)


def _write_new(folder: int, temporary: str, data: bytes, mode: int, *, like: str) -> None:
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        _write_all(fd, data)
        with suppress(OSError):
            # Its owner keeps it, where we may say so.
            there = os.stat(like, dir_fd=folder, follow_symlinks=False)
            os.fchown(fd, there.st_uid, there.st_gid)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _write_in_place(folder: int, name: str, data: bytes, mode: int) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        _write_all(fd, data)
        os.ftruncate(fd, len(data))
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
