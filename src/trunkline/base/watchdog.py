"""Find the processes of a tree and end them; run as a script, do so when the parent is gone.

A *tree* is everything that came from one spawned leader. A process belongs to it when one of these is true:

- it is in the leader's process group or session;
- its environment, as it was at its last `exec`, holds the tree's cookie in `TRUNKLINE_TREE` (Linux);
- its parent belongs to the tree (Linux).

As a script (`python -I -S -E watchdog.py PARENT_PID`) this file is the watchdog: it reads what its parent registers
from standard input and, when the parent has ended in whatever way, ends what is still registered and exits within
`END_SECONDS`. The lines are `+COOKIE` (a tree is about to be spawned), `=COOKIE PGID` (it was) and `-COOKIE` (it is
gone). It imports little and nothing of ours, because it starts beside every process that spawns anything.

Where `/proc` is missing only process groups are known.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: The variable that marks every process of a tree: the cookies of all trees around it, outermost first.
TREE_VARIABLE = "TRUNKLINE_TREE"
#: Between cookies of nested trees.
COOKIE_SEPARATOR = ":"

#: How long trees of a dead parent may take to obey SIGTERM: all must be over in two seconds, and nobody is waiting.
ORPHAN_GRACE_SECONDS = 0.5
#: A leader whose parent died between `fork` and `exec` shows its cookie only after `exec`: look for it this long.
PENDING_SECONDS = 1.0
#: The watchdog gives up here (a process in uninterruptible sleep cannot be killed), inside the promised two seconds.
END_SECONDS = 1.8
#: Between two looks at the process table: short against the grace, long against the cost of a look (1-2 ms).
LOOK_SECONDS = 0.02
#: A process that is inside `exec` shows an empty environment for some microseconds: this many looks tell.
CLEAR_LOOKS = 2

#: After a line came, more are awaited this long: a busy parent wakes the watchdog 20 times a second, not 3,000.
COALESCE_MS = 50
#: Without a pidfd, how often to look whether the parent is still the parent.
PARENT_CHECK_MS = 500
#: Comfortably more than a pipe holds.
READ_BYTES = 1 << 17
#: More than most `/proc` files hold. A buffer for the largest costs more to have than they cost to read.
PROC_BYTES = 1 << 12

#: From `proc(5)`: the fields of `stat` after the name, and the flag of kernel threads.
_STATE, _PPID, _PGRP, _SESSION, _FLAGS, _THREADS, _STARTED = 0, 1, 2, 3, 6, 17, 19
_KERNEL_THREAD = 0x00200000
_DEAD_STATES = (b"Z", b"X", b"x")
_MARK = b"\0" + TREE_VARIABLE.encode() + b"="


class Tree:
    """One registered tree: its cookie, and once they are known its process group and the leader's start time."""

    __slots__ = ("cookie", "pgid", "started")

    def __init__(self, cookie: bytes, pgid: int | None = None) -> None:
        self.cookie = cookie
        self.pgid = pgid
        self.started: int | None = None


class Stat:
    """What one look at a live process told."""

    __slots__ = ("alive", "pgrp", "ppid", "session", "started")

    def __init__(self, fields: list[bytes]) -> None:
        # A process whose first thread has ended looks like a zombie, but its other threads are counted.
        dead = fields[_STATE] in _DEAD_STATES and int(fields[_THREADS]) <= 1
        self.alive = not dead and not int(fields[_FLAGS]) & _KERNEL_THREAD
        self.ppid = int(fields[_PPID])
        self.pgrp = int(fields[_PGRP])
        self.session = int(fields[_SESSION])
        self.started = int(fields[_STARTED])


class TreeMembers:
    """The members of some trees: pid -> start time, which together name a process for ever.

    `unsure` says that a process was seen whose environment could not be told yet.
    """

    __slots__ = ("members", "unsure")

    def __init__(self) -> None:
        self.members: dict[int, int] = {}
        self.unsure = False


def _proc_is_ours() -> bool:
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


#: Whether `/proc` exists and speaks of the pid namespace that we live in. Does not change while we run.
HAS_PROC = _proc_is_ours()


def all_pids() -> list[int]:
    """Every process there is, as far as `/proc` tells; nothing where there is no `/proc`."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if HAS_PROC else []


def read_file(path: str) -> bytes | None:
    """The whole of a small `/proc` file, or `None` when it is gone or not for us to see."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, PROC_BYTES)
        if len(data) == PROC_BYTES:
            while chunk := os.read(fd, READ_BYTES):
                data += chunk
        return data
    except OSError:
        return None
    finally:
        os.close(fd)


def read_stat(pid: int) -> Stat | None:
    """What `/proc` says of `pid`, zombies included; `None` when there is no such process."""
    data = read_file(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name may hold blanks and parentheses, so count from its last one.
    return Stat(data[data.rindex(b")") + 2 :].split())


def read_cookies(pid: int) -> list[bytes] | None:
    """The cookies that `pid` carries; `None` while it shows no environment at all although it may be read."""
    environment = read_file(f"/proc/{pid}/environ")
    if environment is None:
        return []
    if not environment:
        return None
    environment = b"\0" + environment
    start = environment.find(_MARK)
    if start < 0:
        return []
    start += len(_MARK)
    end = environment.find(b"\0", start)
    return environment[start : end if end >= 0 else None].split(COOKIE_SEPARATOR.encode())


def find(trees: Iterable[Tree], pids: Iterable[int] | None = None) -> TreeMembers:
    """Look once for live members of `trees` among `pids` (all processes unless told). Never finds the caller."""
    groups: set[int | None] = set()
    cookies: set[bytes] = set()
    for tree in trees:
        cookies.add(tree.cookie)
        if tree.pgid is not None and group_is_ours(tree):
            groups.add(tree.pgid)
    found = TreeMembers()
    others: dict[int, Stat] = {}
    me = os.getpid()
    for pid in all_pids() if pids is None else pids:
        stat = read_stat(pid) if pid != me else None
        if stat is None or not stat.alive:
            continue
        if stat.pgrp in groups or stat.session in groups:
            found.members[pid] = stat.started
            continue
        carried = read_cookies(pid)
        if carried is None:
            found.unsure = True
        if carried and not cookies.isdisjoint(carried):
            found.members[pid] = stat.started
        else:
            others[pid] = stat
    _add_descendants(found.members, others)
    return found


def _add_descendants(members: dict[int, int], others: dict[int, Stat]) -> None:
    grew = bool(members)
    while grew:
        adopted = {pid: stat.started for pid, stat in others.items() if stat.ppid in members}
        members |= adopted
        for pid in adopted:
            del others[pid]
        grew = bool(adopted)


def group_is_ours(tree: Tree) -> bool:
    """Whether the tree's process group number still means the tree.

    The number of a group is not given away while a member lives, so it can only mean something else when there is a
    process of that number which is not the leader we know.
    """
    if tree.pgid is None:
        return False
    if tree.started is None:
        return True
    stat = read_stat(tree.pgid)
    return stat is None or stat.started == tree.started


def anything_left(trees: list[Tree]) -> bool:
    """Whether a live member of the trees can be found (by group alone where there is no `/proc`)."""
    if HAS_PROC:
        return bool(find(trees).members)
    return any(tree.pgid is not None and group_exists(tree.pgid) for tree in trees)


def group_exists(pgid: int) -> bool:
    """Whether a group has a member that could be signalled. On Linux a zombie counts as one."""
    try:
        os.killpg(pgid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def open_pidfd(pid: int) -> int | None:
    """A pidfd, or `None` where system, kernel or sandbox has none, or the process is gone."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def signal_group(pgid: int, number: int) -> None:
    """Signal a whole group. That it is empty, or that parts of it are another user's, is not an error."""
    try:
        os.killpg(pgid, number)
    except (ProcessLookupError, PermissionError):
        return


def signal_members(members: dict[int, int], number: int) -> set[int]:
    """Signal each process, unless its number has passed to another one since it was found.

    Returns those that we may not signal, because they have become another user's.
    """
    refused: set[int] = set()
    for pid, started in members.items():
        pidfd = open_pidfd(pid)
        try:
            # The pidfd is held first: what is checked after that is what will be signalled.
            stat = read_stat(pid)
            if stat is None or stat.started != started:
                continue
            if pidfd is not None and hasattr(signal, "pidfd_send_signal"):
                signal.pidfd_send_signal(pidfd, number)
            else:
                os.kill(pid, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            refused.add(pid)
        finally:
            if pidfd is not None:
                os.close(pidfd)
    return refused


def still_alive(members: dict[int, int]) -> dict[int, int]:
    """Those of the members that have not ended, whether or not they could still be recognised as members."""
    lives = {}
    for pid, started in members.items():
        stat = read_stat(pid)
        if stat is not None and stat.alive and stat.started == started:
            lives[pid] = started
    return lives


class Registry:
    """What the parent has registered, fed from the bytes of its pipe."""

    def __init__(self) -> None:
        self.trees: dict[bytes, Tree] = {}
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in lines; an unfinished one waits for its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            verb, cookie, *pgid = line[:1], *line[1:].split(b" ")
            if verb == b"-":
                self.trees.pop(cookie, None)
            else:
                self.trees[cookie] = Tree(cookie, int(pgid[0]) if pgid else None)
        self._note_start_times()

    def _note_start_times(self) -> None:
        # After the whole batch: a leader whose tree is still registered is not reaped, so its number is its own.
        for tree in self.trees.values():
            if tree.pgid is not None and tree.started is None:
                stat = read_stat(tree.pgid)
                tree.started = stat.started if stat else None


def read_until_parent_ends(registry: Registry, parent: int, fd: int) -> None:
    """Feed the registry from `fd` until the parent has closed its end or is gone, then with all that is left there."""
    os.set_blocking(fd, False)
    pidfd = open_pidfd(parent)
    ended = select.poll()
    ended.register(fd, 0)
    if pidfd is not None:
        ended.register(pidfd, select.POLLIN)
    news = select.poll()
    news.register(fd, select.POLLIN)
    if pidfd is not None:
        news.register(pidfd, select.POLLIN)
    while os.getppid() == parent:
        events = news.poll(PARENT_CHECK_MS if pidfd is None else None)
        if events and not ended.poll(COALESCE_MS):
            # Neither the pipe's end nor the parent's: only lines.
            _read_available(registry, fd)
        elif events:
            break
    _read_available(registry, fd)
    if pidfd is not None:
        os.close(pidfd)


def _read_available(registry: Registry, fd: int) -> None:
    try:
        while data := os.read(fd, READ_BYTES):
            registry.feed(data)
    except BlockingIOError:
        return


def end_trees(trees: list[Tree]) -> None:
    """SIGTERM, a short grace, SIGKILL, until nothing of the trees is found; bounded by `END_SECONDS`."""
    if not trees:
        return
    begun = time.monotonic()
    pending = any(tree.pgid is None for tree in trees)
    known = _signal_all(trees, {}, signal.SIGTERM).members
    _signal_all(trees, known, signal.SIGCONT)
    while time.monotonic() - begun < ORPHAN_GRACE_SECONDS and anything_left(trees):
        time.sleep(LOOK_SECONDS)
    clear = 0
    while True:
        found = _signal_all(trees, known, signal.SIGKILL)
        known = {}
        clear = 0 if found.members else clear + 1
        if clear >= CLEAR_LOOKS and not (pending and time.monotonic() - begun < PENDING_SECONDS):
            return
        # Asked last: on a machine that lets us go on only after the time is over, what is left gets its SIGKILL, too.
        if time.monotonic() - begun >= END_SECONDS:
            return
        time.sleep(LOOK_SECONDS)


def _signal_all(trees: list[Tree], known: dict[int, int], number: int) -> TreeMembers:
    """Signal the groups, what a look finds, and what an earlier look had found (it may have lost its marks since)."""
    found = find(trees)
    for tree in trees:
        if tree.pgid is not None and group_is_ours(tree):
            signal_group(tree.pgid, number)
    signal_members(known | found.members, number)
    return found


def main(parent: int) -> None:
    """Be the watchdog of `parent`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    registry = Registry()
    read_until_parent_ends(registry, parent, fd=0)
    end_trees(list(registry.trees.values()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
