from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tests.base.processes import exists, is_alive, run_parent, until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import process_guard, process_tree, watchdog
from trunkline.base.process import TREE_VARIABLE, spawn
from trunkline.base.process_guard import Guard, guard
from trunkline.base.watchdog import Registry, Tree, end_trees, find, read_until_parent_ends

pytestmark = pytest.mark.process

DEAF = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")


@pytest.fixture
def cookie() -> str:
    return uuid4().hex


@pytest.fixture
def orphans(cookie: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that look like a tree of a dead parent; all are reaped at the end."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait(PATIENCE_SECONDS)


@pytest.fixture
def _grace(orphans: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Time to obey SIGTERM on a busy machine, too. Who has ended is reaped meanwhile, as an orphan is by init."""

    def sleep(seconds: float) -> None:
        for process in orphans:
            process.poll()
        time.sleep(seconds)

    monkeypatch.setattr(watchdog, "ORPHAN_GRACE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(watchdog, "END_SECONDS", 2 * PATIENCE_SECONDS)
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))


def start_orphan(orphans: list[subprocess.Popen[bytes]], cookie: str, *argv: str) -> int:
    environment = os.environ | {TREE_VARIABLE: f"outer:{cookie}:inner"}
    orphans.append(subprocess.Popen(argv or ["sleep", "600"], env=environment, start_new_session=True))
    # `Popen` returns in the middle of `exec`, when there is no environment yet.
    until(lambda: watchdog.read_cookies(orphans[-1].pid))
    return orphans[-1].pid


def watchdog_of_a_spawn() -> int:
    spawn(["true"]).close()
    pid = guard.pid
    assert pid is not None
    return pid


def signals(pid: int, kind: str) -> int:
    """The set of signals that a process ignores, blocks or catches, as the kernel shows it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(kind)).split()[1], 16)


def test_one_watchdog_serves_all_spawns() -> None:
    assert watchdog_of_a_spawn() == watchdog_of_a_spawn()


def test_the_watchdog_stands_apart() -> None:
    pid = watchdog_of_a_spawn()
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:")
    assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (1, 2)} == {"/dev/null"}
    ignored = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    until(lambda: signals(pid, "SigIgn") & ignored == ignored)


def test_no_child_holds_the_watchdogs_pipe() -> None:
    pipe = os.readlink(f"/proc/{watchdog_of_a_spawn()}/fd/0")
    with spawn(["sleep", "600"]) as child:
        held = []
        for entry in Path(f"/proc/{child.pid}/fd").iterdir():
            # It may be loading its libraries still, each of which it opens and closes.
            with suppress(FileNotFoundError):
                held.append(os.readlink(entry))
    assert pipe not in held


def test_a_killed_watchdog_is_replaced_at_the_next_spawn() -> None:
    first = watchdog_of_a_spawn()
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first))
    second = watchdog_of_a_spawn()
    assert second != first
    assert is_alive(second)
    assert not exists(first)


def test_a_watchdog_that_does_not_read_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_guard, "_STUCK_MS", 10)
    guard = Guard()
    try:
        guard.announce("first")
        stuck = guard.pid
        assert stuck is not None
        os.kill(stuck, signal.SIGSTOP)
        lines = 0
        while guard.pid == stuck and lines < watchdog.READ_BYTES:
            guard.announce("first")
            lines += 1
        assert guard.pid not in (None, stuck)
        assert not exists(stuck)
    finally:
        guard.release("first")
        guard.stop()


def test_a_watchdog_killed_during_a_spawn_is_replaced_by_the_same_spawn() -> None:
    guard = Guard()
    try:
        guard.announce("first")
        first = guard.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        until(lambda: not is_alive(first))
        guard.confirm("first", os.getpgid(0))
        assert guard.pid not in (None, first)
    finally:
        guard.release("first")
        guard.stop()


def test_a_new_watchdog_is_told_of_all_that_lives(
    cookie: str, orphans: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_guard, "_STOP_SECONDS", PATIENCE_SECONDS)
    guard = Guard()
    guard.announce(cookie)
    guard.confirm(cookie, start_orphan(orphans, cookie))
    first = guard.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first))
    guard.announce("another")
    assert guard.pid not in (None, first)
    guard.stop()
    assert not is_alive(orphans[0].pid)


def test_a_stopped_watchdog_is_gone_and_the_next_spawn_has_a_new_one() -> None:
    first = watchdog_of_a_spawn()
    guard.stop()
    assert not exists(first)
    assert guard.pid is None
    assert watchdog_of_a_spawn() != first


def test_what_was_released_is_left_alone(cookie: str, orphans: list[subprocess.Popen[bytes]]) -> None:
    guard = Guard()
    guard.announce(cookie)
    guard.confirm(cookie, start_orphan(orphans, cookie))
    guard.release(cookie)
    guard.stop()
    assert is_alive(orphans[0].pid)


def test_a_forked_process_drops_the_pipe() -> None:
    parent = """
spawn(["true"]).close()
pipe = os.readlink(f"/proc/{guard.pid}/fd/0")
forked = os.fork()
if forked == 0:
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")]
    os._exit(guard.pid is not None or pipe in held)
print(os.waitpid(forked, 0)[1])
"""
    assert run_parent(parent) == "0\n"


def test_the_register_understands_lines_in_any_pieces() -> None:
    text = b"+a\n+b\n=a 4242424\n-b\n+c\n=c 17\n-c\n+d\n"
    for size in range(1, len(text) + 1):
        registry = Registry()
        for start in range(0, len(text), size):
            registry.feed(text[start : start + size])
        assert {name: tree.pgid for name, tree in registry.trees.items()} == {b"a": 4242424, b"d": None}


@pytest.mark.usefixtures("_grace")
@pytest.mark.parametrize("by_group", [True, False])
def test_an_orphaned_tree_ends(cookie: str, orphans: list[subprocess.Popen[bytes]], by_group: bool) -> None:
    pid = start_orphan(orphans, cookie)
    end_trees([Tree(b"unknown", pid) if by_group else Tree(cookie.encode())])
    assert not is_alive(pid)
    assert orphans[0].wait(PATIENCE_SECONDS) == -signal.SIGTERM


def test_an_orphan_that_ignores_sigterm_is_killed(cookie: str, orphans: list[subprocess.Popen[bytes]]) -> None:
    start_orphan(orphans, cookie, *DEAF)
    until(lambda: signals(orphans[0].pid, "SigIgn") & 1 << (signal.SIGTERM - 1))
    begun = time.monotonic()
    end_trees([Tree(cookie.encode(), orphans[0].pid)])
    assert time.monotonic() - begun >= watchdog.ORPHAN_GRACE_SECONDS
    assert orphans[0].wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_an_orphan_is_killed_although_a_busy_machine_took_all_the_time_there_was(
    cookie: str, orphans: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "END_SECONDS", 0.0)
    start_orphan(orphans, cookie, *DEAF)
    until(lambda: signals(orphans[0].pid, "SigIgn") & 1 << (signal.SIGTERM - 1))
    end_trees([Tree(cookie.encode(), orphans[0].pid)])
    assert orphans[0].wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_a_leader_that_shows_itself_late_is_still_caught(
    cookie: str, orphans: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def look(trees: list[Tree]) -> watchdog.TreeMembers:
        nonlocal looks
        looks += 1
        if looks == 10:
            start_orphan(orphans, cookie)
        return find(trees)

    def monotonic() -> float:
        return 0.0 if looks < 10 else time.monotonic() - begun

    begun = time.monotonic()
    monkeypatch.setattr(watchdog, "find", look)
    # Ten looks take no time.
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))
    end_trees([Tree(cookie.encode())])
    assert orphans[0].wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_a_group_number_that_has_passed_to_another_is_not_signalled(
    cookie: str, orphans: list[subprocess.Popen[bytes]]
) -> None:
    pid = start_orphan(orphans, cookie)
    tree = Tree(b"gone", pid)
    tree.started = 1  # the leader we knew started at boot; this one did not
    end_trees([tree])
    assert is_alive(pid)


def test_a_number_that_has_passed_to_another_is_not_signalled(
    cookie: str, orphans: list[subprocess.Popen[bytes]]
) -> None:
    pid = start_orphan(orphans, cookie)
    watchdog.signal_members({pid: 1}, signal.SIGKILL)
    assert watchdog.still_alive({pid: 1}) == {}
    found = find([Tree(cookie.encode())]).members
    assert watchdog.still_alive(found) == found == {pid: found[pid]}


@pytest.mark.usefixtures("_grace")
def test_processes_are_signalled_without_pidfds_too(
    cookie: str, orphans: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    start_orphan(orphans, cookie)
    end_trees([Tree(cookie.encode())])
    assert orphans[0].wait(PATIENCE_SECONDS) == -signal.SIGTERM


@pytest.mark.usefixtures("_grace")
def test_without_proc_the_group_is_what_can_be_ended(
    cookie: str, orphans: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "HAS_PROC", False)
    monkeypatch.setattr(process_tree, "HAS_PROC", False)
    end_trees([Tree(b"", start_orphan(orphans, cookie, "sh", "-c", "sleep 600 & sleep 600"))])
    assert orphans[0].wait(PATIENCE_SECONDS) == -signal.SIGTERM
    with spawn(["sh", "-c", "sleep 600 & echo $!"]) as child:
        assert child.stdout is not None
        member = int(os.read(child.stdout, 100))
        child.wait(PATIENCE_SECONDS)
    assert child.gone
    until(lambda: not is_alive(member))
    # Elsewhere than on Linux a zombie is no member of its group.
    monkeypatch.setattr(process_tree, "group_exists", is_alive)
    with spawn(["sleep", "600"]) as child:
        assert child.terminate_tree(PATIENCE_SECONDS) == 143


def test_without_waitid_the_group_ends_with_its_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "_HAS_WAITID", False)
    with spawn(["sh", "-c", "sleep 600 & echo $!; setsid sleep 600 & echo $!; exit 3"]) as child:
        member, stray = _read_numbers(child.stdout, 2)
        until(lambda: os.getsid(stray) == stray)
        assert child.wait(PATIENCE_SECONDS) == 3
        until(lambda: not is_alive(member))
        assert is_alive(stray)
    assert not is_alive(stray)


def _read_numbers(fd: int | None, count: int) -> list[int]:
    assert fd is not None
    data = b""
    while data.count(b"\n") < count:
        data += os.read(fd, 100)
    return [int(line) for line in data.split()]


@pytest.mark.parametrize("pidfd", [True, False])
def test_the_end_of_the_pipe_is_the_end_of_the_parent(monkeypatch: pytest.MonkeyPatch, pidfd: bool) -> None:
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    read, write = os.pipe()
    os.write(write, b"+a\n+b\n")
    os.close(write)
    registry = Registry()
    read_until_parent_ends(registry, os.getppid(), read)
    os.close(read)
    assert list(registry.trees) == [b"a", b"b"]


def test_a_changed_parent_is_the_end_of_the_parent_although_the_pipe_is_open() -> None:
    read, write = os.pipe()
    os.write(write, b"+a\n")
    registry = Registry()
    read_until_parent_ends(registry, 1 if os.getppid() != 1 else 2, read)
    os.close(read)
    os.close(write)
    assert list(registry.trees) == [b"a"]
