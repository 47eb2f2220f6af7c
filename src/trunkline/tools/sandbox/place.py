"""Where the temporary files of a session are while it has a sandbox: a directory of its own, removed at the end.

What lies in it was put there by commands, so whoever removes it must not be led elsewhere. An agent that was killed
leaves its directory behind: the next one removes it, and knows it by the lock that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import suppress

from trunkline.base.own_python import script_command
from trunkline.tools.sandbox import launcher_path, seccomp

#: How long it may take to open what is closed even to its owner.
OPEN_SECONDS = 20.0

_PREFIX = "trunkline-sandbox-"
_LOCK, _UNNAMED_LOCK, _TEMPORARY = "lock", "lock.new", "tmp"


class SandboxPlace:
    """One such directory, made at once. Its methods may block."""

    def __init__(self) -> None:
        """Raises:
        OSError: it cannot be made.
        """
        # Resolved: what the launcher mounts has no links in it.
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
        self.temporary = os.path.join(self.path, _TEMPORARY)
        """The part of it that commands may write to."""
        os.mkdir(self.temporary, 0o700)
        # It has its name only once it is held: another agent that looks for what is left would take it, and the place.
        unnamed = os.path.join(self.path, _UNNAMED_LOCK)
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(unnamed, os.path.join(self.path, _LOCK))
        around = os.path.dirname(self.path)
        threading.Thread(target=_remove_left, args=(around,), name="sandbox, what is left", daemon=True).start()

    def remove(self) -> None:
        """Remove it with all that is in it."""
        _remove(self.path)
        os.close(self._lock)


def _remove(place: str) -> None:
    # (It follows no links, also if somebody puts one there meanwhile.)
    shutil.rmtree(place, ignore_errors=True)
    if not os.path.lexists(place):
        return
    # Some of it is closed even to its owner. That is opened in a sandbox, where no link leads to anything else.
    options = [f"--cwd={place}", f"--write={place}", f"--seccomp={seccomp.program().hex()}"]
    argv = script_command(launcher_path(), ["run", *options, "--", "/bin/sh", "-c", "chmod -R u+rwX ."])
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=OPEN_SECONDS, check=False)
    shutil.rmtree(place, ignore_errors=True)


def _remove_left(around: str) -> None:
    """Remove what agents have left that are not there any more."""
    with suppress(OSError), os.scandir(around) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_unlocked(entry.path)


def _remove_unlocked(place: str) -> None:
    # One without a lock has only just been made, and one of another user's cannot be opened.
    with suppress(OSError):
        fd = os.open(os.path.join(place, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(place)
        finally:
            os.close(fd)
