"""Nothing is left running when the process that spawned it is killed with -9, whatever the moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tests.base.processes import DAEMONIZE, is_alive, marked, python, start_parent, until
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not hasattr(signal, "pidfd_send_signal"), reason="descendants are found through /proc on Linux"),
]

#: Carried by everything that a test starts, so that the test can find what it looks for without our own marks.
MARK = "ORPHAN_TEST_MARK"

TREE = f"""
scripts = [
    ["sleep", "600"],
    ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
    ["sh", "-c", "sleep 600 & wait"],
    ["setsid", "-w", "sleep", "600"],
    ["setsid", "-w", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
    {python(DAEMONIZE, "sleep", "600")!r},
]
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    value = uuid4().hex
    monkeypatch.setenv(MARK, value)
    yield value
    for pid in marked(value):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def parent_of(script: str) -> Iterator[subprocess.Popen[str]]:
    with start_parent(script) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def read(parent: subprocess.Popen[str]) -> str:
    assert parent.stdout is not None
    return parent.stdout.readline().strip()


def assert_nothing_is_left(mark: str) -> None:
    until(lambda: not marked(mark), PATIENCE_SECONDS)


def test_a_killed_parent_leaves_nothing(mark: str) -> None:
    script = TREE + "children = [spawn(argv) for argv in scripts]\nprint('ready', flush=True)\nsignal.pause()"
    with parent_of(script) as parent:
        assert read(parent) == "ready"
        # Parent, watchdog, and at least one process for each script.
        until(lambda: len(marked(mark)) >= 8, PATIENCE_SECONDS)
        parent.kill()
        assert_nothing_is_left(mark)


def test_a_parent_that_just_ends_leaves_nothing(mark: str) -> None:
    script = TREE + "children = [spawn(argv) for argv in scripts]\nprint('ready', flush=True)\nos._exit(3)"
    with parent_of(script) as parent:
        assert read(parent) == "ready"
        assert parent.wait() == 3
        assert_nothing_is_left(mark)


def test_a_parent_that_becomes_another_program_leaves_nothing(mark: str) -> None:
    script = "child = spawn(['sleep', '600'])\nprint(child.pid, flush=True)\nos.execvp('cat', ['cat'])"
    with parent_of(script) as parent:
        child = int(read(parent))
        until(lambda: not is_alive(child), PATIENCE_SECONDS)
        assert parent.poll() is None
        parent.kill()
    assert_nothing_is_left(mark)


def test_a_parent_killed_before_it_could_tell_the_group_leaves_nothing(mark: str) -> None:
    script = """
from trunkline.base.process_guard import Guard
Guard.confirm = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
spawn(["setsid", "sleep", "600"])
"""
    with parent_of(script) as parent:
        assert parent.wait() == -signal.SIGKILL
        assert_nothing_is_left(mark)


def test_a_parent_killed_between_fork_and_exec_leaves_nothing(mark: str) -> None:
    # The moment is held open: the leader is forked by hand and becomes its program long after the parent's death.
    script = """
from trunkline.base import process
spawn(["true"]).close()
class SlowStart:
    def __init__(self, argv, env, **_):
        parent = os.getpid()
        if os.fork():
            os.kill(parent, signal.SIGKILL)
        while os.getppid() == parent:
            time.sleep(0.001)
        os.setsid()
        time.sleep(0.3)
        os.execvpe(argv[0], argv, env)
process._Leader = SlowStart
spawn(["sleep", "600"])
"""
    with parent_of(script) as parent:
        assert parent.wait() == -signal.SIGKILL
        assert_nothing_is_left(mark)


@pytest.mark.parametrize("seed", range(5))
def test_a_parent_killed_at_any_moment_while_it_spawns_leaves_nothing(mark: str, seed: int) -> None:
    script = "print('go', flush=True)\nkept = []\nwhile True: kept.append(spawn(['setsid', '-w', 'sleep', '600']))"
    moment = random.Random(seed).uniform(0, 0.03)
    with parent_of(script) as parent:
        assert read(parent) == "go"
        with pytest.raises(subprocess.TimeoutExpired):
            parent.wait(moment)
        parent.kill()
        assert_nothing_is_left(mark)


def test_trees_are_guarded_again_after_the_watchdog_was_killed(mark: str) -> None:
    script = """
children = [spawn(["sleep", "600"])]
os.kill(guard.pid, signal.SIGKILL)
os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
children.append(spawn(["sleep", "600"]))
print("ready", flush=True)
signal.pause()
"""
    with parent_of(script) as parent:
        assert read(parent) == "ready"
        until(lambda: len(marked(mark)) >= 4, PATIENCE_SECONDS)
        parent.kill()
        assert_nothing_is_left(mark)


def test_a_fork_that_python_does_not_see_does_not_keep_the_dead_alive(mark: str) -> None:
    script = """
import ctypes
child = spawn(["sleep", "600"])
fork = ctypes.PyDLL(None).fork
if fork() == 0:
    time.sleep(600)
print(child.pid, flush=True)
signal.pause()
"""
    with parent_of(script) as parent:
        child = int(read(parent))
        parent.kill()
        until(lambda: not is_alive(child), PATIENCE_SECONDS)
        # The forked copy is nobody's tree: it is ended with the test.


def test_sixty_four_trees_end_together(mark: str) -> None:
    script = """
children = [spawn(["sh", "-c", "setsid sleep 600 & sleep 600"]) for _ in range(64)]
print("ready", flush=True)
signal.pause()
"""
    with parent_of(script) as parent:
        assert read(parent) == "ready"
        parent.kill()
        assert_nothing_is_left(mark)
