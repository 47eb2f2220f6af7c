"""One tree of processes that is led by a child of ours: watch the leader, end the tree.

The leader is observed without being reaped (`waitid` with `WNOWAIT`). While it is a zombie its number, which is also
that of its group and session, cannot pass to anybody else; it is reaped only when the tree is gone. Python before 3.13
on macOS has no `waitid`: there the group is killed at the moment the leader is reaped.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import threading
import time
from collections.abc import Sequence

from trunkline.base.process_guard import guard
from trunkline.base.watchdog import (
    HAS_PROC,
    Tree,
    TreeMembers,
    all_pids,
    find,
    group_exists,
    open_pidfd,
    read_file,
    read_stat,
    signal_group,
    signal_members,
    still_alive,
)

#: A signal `n` that ended a process shows as exit code 128 + n, as in a shell.
SIGNAL_EXIT = 128
#: The exit code of a process whose status somebody else has collected.
LOST_EXIT = 255
#: How long SIGKILL may take to clear a tree. Only uninterruptible sleep needs more, and that has no bound.
KILL_SECONDS = 2.0

#: Between two looks for members that were just killed: they need about this long to die.
_DYING_SECONDS = 0.002
#: Between two looks whether a group has obeyed SIGTERM.
_OBEY_SECONDS = 0.01
#: Polling for the leader's end where there is no pidfd: from quick to calm.
_POLL_SECONDS = (0.001, 0.02)
#: A process inside `exec` shows no environment; one with an empty environment never does. This many looks tell.
_UNSURE_LOOKS = 3
#: Up to this many numbers are tried one by one, which is cheaper than listing `/proc`.
_PROBE_LIMIT = 64
#: Up to this many are looked at whether they need to be tried at all.
_RANGE_LIMIT = 1024
#: No machine makes processes faster than this, so numbers cannot have wrapped around sooner.
_MAX_FORKS_PER_SECOND = 100_000
#: How many process numbers there are; where the system does not tell, the fewest that are customary.
_PID_MAX = int(read_file("/proc/sys/kernel/pid_max") or 32_768)

#: What `/proc/loadavg` holds: three averages, running and all threads, and the newest number.
_AVERAGES = 3
_LOADAVG_BYTES = 128
_LAST_STANDARD_FD = 2

_HAS_WAITID = hasattr(os, "waitid")


class _Cookies:
    """Names for trees, different in every process, forked ones included."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._prefix = os.urandom(8).hex()
        self._count = itertools.count(1)

    def next(self) -> str:
        return f"{self._prefix}-{next(self._count)}"


_cookies = _Cookies()
os.register_at_fork(after_in_child=_cookies.renew)


def new_cookie() -> str:
    """A name for a tree that no other tree has."""
    return _cookies.next()


def exit_code(returncode: int) -> int:
    """The exit code of a `subprocess` return code: 128 + n when signal n ended the process."""
    return returncode if returncode >= 0 else SIGNAL_EXIT - returncode


class OwnTree:
    """A tree whose leader is a child of this process. Safe to use from several threads; all waits are bounded."""

    def __init__(self, pid: int, cookie: str, begun: float) -> None:
        self.pid = pid
        self.gone = False
        self._tree = Tree(cookie.encode("ascii"), pid)
        self._begun = begun
        self._code: int | None = None
        self._ended = False
        self._lock = threading.RLock()

    def poll(self) -> int | None:
        """The leader's exit code, `None` while it runs. Does not give its number back."""
        if self._code is None:
            with self._lock:
                if self._code is None:
                    self._observe()
        return self._code

    def wait(self, timeout: float | None) -> int | None:
        """Wait for the leader's end; `None` when `timeout` seconds were not enough."""
        if self._code is not None:
            return self._code
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            if self.poll() is not None:
                return self._code
            # Under the lock nobody reaps, so the number is still the leader's.
            pidfd = open_pidfd(self.pid)
        if pidfd is None:
            return self._wait_by_polling(deadline)
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            poller.poll(None if timeout is None else max(timeout, 0) * 1000)
        finally:
            os.close(pidfd)
        # Usually known at once; a tracer can keep the status from us for a moment longer.
        return self._wait_by_polling(deadline)

    def terminate(self, grace: float) -> None:
        """SIGTERM to the group, up to `grace` seconds for all of it to end, then `kill`."""
        deadline = time.monotonic() + grace
        with self._lock:
            if self.gone:
                return
            # Looked up now, while their parents live: later some could not be recognised any more.
            known = self._find().members
            self._signal_group(signal.SIGTERM)
            # What is stopped cannot obey.
            self._signal_group(signal.SIGCONT)
        self.wait(grace)
        while time.monotonic() < deadline and self._group_lives():
            time.sleep(_OBEY_SECONDS)
        self.kill(known)

    def kill(self, known: dict[int, int] | None = None) -> None:
        """SIGKILL to all of the tree, and to `known` members, until none is found; then reap. At most `KILL_SECONDS`.

        `gone` tells whether it was enough. What has become another user's (`sudo`) cannot be killed and is left.
        """
        deadline = time.monotonic() + KILL_SECONDS
        doomed = known or {}
        killed: dict[int, int] = {}
        refused: set[int] = set()
        looks = 0
        while True:
            with self._lock:
                if self.gone:
                    return
                found = self._find()
                # What was found once is killed for good, although it may have lost its marks meanwhile.
                doomed = still_alive(doomed) | found.members
                self._signal_group(signal.SIGKILL)
                refused |= signal_members(doomed, signal.SIGKILL)
                killed |= doomed
                looks += 1
                unsure = found.unsure and looks < _UNSURE_LOOKS
                if self.poll() is not None and doomed.keys() <= refused and not unsure and self._reap():
                    _reap_adopted(killed)
                    return
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if self.wait(left) is not None:
                time.sleep(_DYING_SECONDS)

    def finish_if_clear(self, *, ended: bool = False) -> bool:
        """Reap the leader if it has ended and a cheap look shows that it left nothing: the end of most processes.

        Never waits and never searches the whole process table. `False` means that `kill` must look. Whoever knows that
        the leader has `ended` spares a question.
        """
        with self._lock:
            if self.gone:
                return True
            if not ended and self.poll() is None:
                return False
            self._ended = True
            if HAS_PROC:
                young = self._young_pids()
                if young is None:
                    return False
                # Most often nobody is younger, and there is nobody to look at.
                found = find([self._tree], young) if young else None
                if found is not None and (found.members or found.unsure):
                    return False
            else:
                self._signal_group(signal.SIGKILL)
            return self._reap()

    def _observe(self) -> None:
        try:
            if _HAS_WAITID:
                state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if state is not None:
                    by_signal = state.si_code != os.CLD_EXITED
                    self._code = state.si_status + (SIGNAL_EXIT if by_signal else 0)
                return
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._code = exit_code(os.waitstatus_to_exitcode(status))
                # The number may be given away from now on, but not while the group has a member.
                self._signal_group(signal.SIGKILL)
                self._tree.pgid = None
        except ChildProcessError:
            # Somebody else has reaped it (`waitpid(-1)`, or SIGCHLD ignored): its number means nothing any more.
            self._code = LOST_EXIT
            self._tree.pgid = None

    def _reap(self) -> bool:
        """Give the leader's number back. A tracer can keep its status from us for a moment: then it is not done."""
        if self._tree.pgid is not None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                code = LOST_EXIT
            else:
                if not ended:
                    return False
                code = exit_code(os.waitstatus_to_exitcode(status))
            if self._code is None:
                self._code = code
        self.gone = True
        return True

    def _wait_by_polling(self, deadline: float | None) -> int | None:
        pause, longest = _POLL_SECONDS
        while self.poll() is None:
            left = longest if deadline is None else deadline - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(pause, left))
            pause = min(pause * 2, longest)
        return self.poll()

    def _signal_group(self, number: int) -> None:
        if self._tree.pgid is not None:
            signal_group(self._tree.pgid, number)

    def _group_lives(self) -> bool:
        with self._lock:
            pgid = self._tree.pgid
            if self.gone or pgid is None:
                return False
            if not HAS_PROC:
                return group_exists(pgid)
            return any(_is_live_member(pid, pgid) for pid in all_pids())

    def _find(self) -> TreeMembers:
        return find([self._tree], self._young_pids())

    def _young_pids(self) -> Sequence[int] | None:
        """The numbers given away since the leader's: no others can be in its tree. `None` if too many, or not known."""
        newest = _newest_pid()
        wrapped = (time.monotonic() - self._begun) * _MAX_FORKS_PER_SECOND >= _PID_MAX
        if wrapped or not self.pid <= newest <= self.pid + _RANGE_LIMIT:
            return None
        # A leader that has ended is no member any more.
        first = self.pid + (self._ended or self._code is not None)
        if first > newest:
            return ()
        # Where many trees run at once, most of the young ones lead them.
        guard.forget_old()
        young = [pid for pid in range(first, newest + 1) if pid == self.pid or not guard.is_leader(pid)]
        return young if len(young) <= _PROBE_LIMIT else None


def _reap_adopted(killed: dict[int, int]) -> None:
    """Where we are the init of a container, orphans become our children, and their zombies ours to reap."""
    for pid, started in killed.items():
        stat = read_stat(pid)
        if stat is not None and stat.started == started and stat.ppid == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _is_live_member(pid: int, pgid: int) -> bool:
    try:
        if os.getpgid(pid) != pgid:
            return False
    except OSError:
        return False
    stat = read_stat(pid)
    return stat is not None and stat.alive


class _NewestPid:
    """The number that was given away last. The file that tells is kept open: it is read at the end of every tree."""

    def __init__(self) -> None:
        self._fd: int | None = None

    def __call__(self) -> int:
        """0 where the system does not tell."""
        newest = self._read()
        if newest is None:
            # Not open yet; or somebody has closed all files and opened others under their numbers.
            self._fd = self._open()
            newest = self._read()
        return newest or 0

    def _open(self) -> int | None:
        try:
            fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        if fd > _LAST_STANDARD_FD:
            return fd
        os.close(fd)
        return None

    def _read(self) -> int | None:
        if self._fd is None:
            return None
        try:
            *averages, threads, newest = os.pread(self._fd, _LOADAVG_BYTES, 0).split()
            return int(newest) if len(averages) == _AVERAGES and b"/" in threads else None
        except (OSError, ValueError):
            return None


_newest_pid = _NewestPid()
