"""What the launcher makes in the workspace so that commands cannot make it, and what becomes of it at the end.

A name can only be kept from commands where something has it. So there is an empty directory, an empty file, or one that
says `.`, while a session has its sandbox, and for longer if the agent is killed. The last session that works there
removes it: what is taken away outside is taken away in every sandbox.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress

from trunkline.base.unlinked import opened_parent
from trunkline.tools.sandbox.launcher import SAYS
from trunkline.tools.sandbox.policy import Walls


class Placeholders:
    """Those of one session. Its methods may block."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._paths: dict[str, None] = {}
        self._locks: dict[str, int] = {}
        """Directories that have one, each opened and locked with all others who work there."""

    def expect(self, built: Walls) -> None:
        """The launcher makes what is missing for these walls."""
        for path in (*built.make, *built.point):
            self._paths[path] = None
            parent = os.path.dirname(path.rstrip(os.sep))
            if parent not in self._locks:
                with suppress(OSError):
                    self._locks[parent] = _locked(parent)

    def remove(self) -> None:
        """Remove those that are as they were made, unless others need them."""
        paths, self._paths = self._paths, {}
        locks, self._locks = self._locks, {}
        alone = {parent for parent, lock in locks.items() if _is_alone(lock)}
        # The innermost first: what was made last may lie in what was made before.
        for path in reversed(paths):
            if os.path.dirname(path.rstrip(os.sep)) in alone:
                with suppress(OSError):
                    self._remove(path)
        for lock in locks.values():
            os.close(lock)

    def _remove(self, path: str) -> None:
        # A command may have put links in the way.
        with opened_parent(self._workspace, os.path.relpath(path, self._workspace)) as (folder, name):
            if path.endswith(os.sep):
                os.rmdir(name, dir_fd=folder)
            elif _is_as_made(name, folder):
                os.unlink(name, dir_fd=folder)


def _locked(directory: str) -> int:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _is_alone(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_as_made(name: str, folder: int) -> bool:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and os.read(fd, len(SAYS) + 1) in (b"", SAYS)
    finally:
        os.close(fd)
