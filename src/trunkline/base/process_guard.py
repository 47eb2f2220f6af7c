"""The parent's side of the watchdog: who is told what, and when.

One watchdog per process, started at the first spawn. It learns of a tree *before* the tree is spawned, so that there
is no moment in which the death of this process could leave something behind. A watchdog that was killed is noticed at
the next spawn, replaced, and told of every live tree; until then those trees are unguarded.

Fork: the pipe's end closes itself on `exec`; a child made by `os.fork` drops it, and starts a watchdog of its own when
it spawns. A fork that Python does not see (in a C library) keeps the pipe open; on Linux the watchdog therefore also
watches the parent itself by pidfd, elsewhere it looks from time to time whether it still has that parent.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque

from trunkline.base.watchdog import END_SECONDS

#: The lowest file descriptor for what we open for children: 0, 1 and 2 may be closed here, but mean something to them.
_LOWEST_FD = 3
#: A watchdog that leaves its pipe full this long is stuck (stopped, starved) and is replaced.
_STUCK_MS = 250
#: How long a watchdog may take to end after its pipe was closed: it may have trees to end.
_STOP_SECONDS = END_SECONDS + 1.0
#: How long a tree that is gone is still known by its leader's number: no system gives it away again within that.
_REMEMBERED_SECONDS = 0.25
#: Between looks for its end, while it is being stopped.
_STOP_LOOK_SECONDS = 0.005

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watchdog.py")


def make_pipe() -> tuple[int, int]:
    """A pipe (read end, write end) that no child inherits by itself and that never takes the place of 0, 1 or 2."""
    ends = os.pipe()
    if min(ends) >= _LOWEST_FD:
        return ends
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD) for end in ends)
    for end in ends:
        os.close(end)
    return read, write


def open_null() -> int:
    """`/dev/null`, to read and to write, under a number that is not 0, 1 or 2 either."""
    fd = os.open(os.devnull, os.O_RDWR)
    if fd >= _LOWEST_FD:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    finally:
        os.close(fd)


class Guard:
    """Keeps a watchdog running and its register true. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trees: dict[str, int | None] = {}
        self._leaders: set[int] = set()
        self._released: deque[tuple[float, int]] = deque()
        self._pid: int | None = None
        self._fd: int | None = None

    @property
    def pid(self) -> int | None:
        """The watchdog's process, if one was started."""
        return self._pid

    def is_leader(self, pid: int) -> bool:
        """Whether it leads a registered tree, or led one a moment ago: it is in no other one then."""
        return pid in self._leaders

    def forget_old(self) -> None:
        """Forget leaders that ended a while ago: their numbers may be somebody else's by now."""
        oldest = time.monotonic() - _REMEMBERED_SECONDS
        with self._lock:
            while self._released and self._released[0][0] < oldest:
                self._leaders.discard(self._released.popleft()[1])

    def announce(self, cookie: str) -> None:
        """Register a tree that is about to be spawned.

        Raises:
            OSError: no watchdog could be started.
        """
        with self._lock:
            self._trees[cookie] = None
            try:
                if not self._tell(f"+{cookie}\n"):
                    self._restart()
            except OSError:
                del self._trees[cookie]
                raise

    def expect(self, pid: int) -> None:
        """It will be confirmed as the leader of a tree. Never waits."""
        self._leaders.add(pid)

    def give_up(self, pid: int) -> None:
        """It has not become the leader of a tree after all."""
        self._leaders.discard(pid)

    def confirm(self, cookie: str, pgid: int) -> None:
        """Say which process group the announced tree became."""
        self._leaders.add(pgid)
        with self._lock:
            self._trees[cookie] = pgid
            if self._tell(f"={cookie} {pgid}\n"):
                return
            # It was killed since `announce`. The tree runs already, so a new one that cannot be had must wait.
            with contextlib.suppress(OSError):
                self._restart()

    def release(self, cookie: str) -> None:
        """Take a tree back: it is gone, or was never spawned."""
        with self._lock:
            if cookie in self._trees:
                pgid = self._trees.pop(cookie)
                self._tell(f"-{cookie}\n")
                if pgid is not None:
                    self._released.append((time.monotonic(), pgid))

    def stop(self) -> None:
        """End the watchdog, and with it whatever is still registered. The next spawn starts a new one."""
        with self._lock:
            self._trees.clear()
            self._leaders.clear()
            self._released.clear()
            self._close_pipe()
            deadline = time.monotonic() + _STOP_SECONDS
            while self._is_running() and time.monotonic() < deadline:
                time.sleep(_STOP_LOOK_SECONDS)
            self._discard()

    def forget(self) -> None:
        """In a forked child: nothing of the parent's is ours."""
        self._lock = threading.Lock()
        self._trees = {}
        self._leaders = set()
        self._released = deque()
        self._pid = None
        self._close_pipe()

    def _restart(self) -> None:
        """A new watchdog that knows all that is registered."""
        self._discard()
        if not sys.executable:
            raise FileNotFoundError("`sys.executable` is empty, so no watchdog can be started")
        read, write = make_pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-E", _SCRIPT, str(os.getpid())],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                close_fds=True,
            )
        except BaseException:
            os.close(write)
            raise
        finally:
            os.close(read)
        # We wait for it ourselves; this keeps `Popen` from complaining that it still runs when Python ends.
        process.returncode = 0
        os.set_blocking(write, False)
        self._pid, self._fd = process.pid, write
        lines = (f"+{cookie}\n" if pgid is None else f"={cookie} {pgid}\n" for cookie, pgid in self._trees.items())
        for line in lines:
            if not self._tell(line):
                self._discard()
                raise BlockingIOError("the watchdog does not read its input")

    def _tell(self, line: str) -> bool:
        """Write one line; `False` when the watchdog is gone (nobody else has the pipe's other end) or stuck."""
        if self._fd is None:
            return False
        data = line.encode("ascii")
        try:
            try:
                os.write(self._fd, data)
            except BlockingIOError:
                poller = select.poll()
                poller.register(self._fd, select.POLLOUT)
                poller.poll(_STUCK_MS)
                os.write(self._fd, data)
        except OSError:
            return False
        return True

    def _is_running(self) -> bool:
        if self._pid is None:
            return False
        try:
            ended, _ = os.waitpid(self._pid, os.WNOHANG)
        except ChildProcessError:
            # Where SIGCHLD is ignored the system reaps for us, and only the pipe can tell.
            ended = 0 if self._has_reader() else self._pid
        if ended:
            self._pid = None
            self._close_pipe()
        return not ended

    def _has_reader(self) -> bool:
        if self._fd is None:
            return False
        poller = select.poll()
        poller.register(self._fd, 0)
        return not poller.poll(0)

    def _discard(self) -> None:
        """Make sure that the old watchdog does nothing any more. It is ours and not yet reaped, so the pid is its."""
        if self._is_running() and self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = None
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


guard = Guard()
os.register_at_fork(after_in_child=guard.forget)
