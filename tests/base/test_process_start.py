from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.base.processes import PATIENCE_SECONDS, read_all, run_parent
from trunkline.base import process_start
from trunkline.base.process import SpawnError, spawn

pytestmark = pytest.mark.process

#: What the system tells of a process: nothing that differs from one to the next, and nothing that a shell changes.
TRAITS = ("Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "SigCgt", "NoNewPrivs")


def said_by(argv: list[str], cwd: str, env: dict[str, str]) -> list[str]:
    with spawn(argv, cwd=cwd, env=env) as child:
        output, errors = read_all(child)
        assert (child.wait(PATIENCE_SECONDS), errors) == (0, b"")
        return output.decode("utf-8", "surrogateescape").splitlines()


def portrait(cwd: str, env: dict[str, str]) -> list[list[str]]:
    """All that a child can tell of how it was started."""
    status = said_by(["cat", "/proc/self/status"], cwd, env)
    number, *stat = said_by(["cat", "/proc/self/stat"], cwd, env)[0].split()
    return [
        [line for line in status if line.startswith(TRAITS)],
        # Its process group and its session are its own.
        [str(stat[3:5] == [number, number])],
        said_by(["ls", "/proc/self/fd"], cwd, env),
        said_by(["readlink", "/proc/self/fd/0", "/proc/self/cwd"], cwd, env),
        said_by(["printf", "%s|", "ä b", "", "\udcff"], cwd, env),
        [line for line in said_by(["env"], cwd, env) if not line.startswith("TRUNKLINE_TREE=")],
    ]


@pytest.fixture
def unusual_parent() -> Iterator[None]:
    """One with an inheritable file, a signal that it ignores, one that it handles, and one that it blocks."""
    fd = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(fd, True)
    ignored = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    handled = signal.signal(signal.SIGUSR2, lambda number, frame: None)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    signal.signal(signal.SIGUSR2, handled)
    signal.signal(signal.SIGUSR1, ignored)
    os.close(fd)


def count_popen(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    # The watchdog comes with the first spawn, and is not counted.
    spawn(["true"]).close()
    calls: list[object] = []
    popen = subprocess.Popen

    def call(*args: object, **more: object) -> object:
        calls.append(args)
        return popen(*args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", call)
    return calls


def without_children() -> bool:
    """Whether no child of ours has ended without being waited for."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return True


@pytest.mark.usefixtures("unusual_parent")
def test_both_ways_make_the_same_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "GREETING": "grüß = Gott", "EMPTY": "", "BYTES": "\udcff"}
    calls = count_popen(monkeypatch)
    quick = portrait(str(tmp_path), env)
    assert bool(calls) is (process_start._fork_exec is None)
    monkeypatch.setattr(process_start, "_fork_exec", None)
    assert portrait(str(tmp_path), env) == quick
    assert quick[1:] == [
        ["True"],
        # The last is that of the folder which `ls` reads.
        ["0", "1", "2", "3"],
        ["/dev/null", str(tmp_path)],
        ["ä b||\udcff|"],
        [f"{name}={value}" for name, value in env.items()],
    ]


def test_the_quick_way_is_for_the_versions_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 14)
    assert (process_start._fork_exec is not None) is known
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    assert process_start._find_fork_exec() is None


@pytest.mark.parametrize("module", [None, object()], ids=["missing", "empty"])
def test_a_python_without_the_function_is_no_error(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    monkeypatch.setitem(sys.modules, "_posixsubprocess", module)
    assert process_start._find_fork_exec() is None


@pytest.mark.parametrize(
    "refuse",
    [lambda: None, lambda *_: int("no number"), lambda *_: os.stat("/no/such/file")],
    ids=["other arguments", "a bad value", "an error of the system"],
)
def test_a_function_that_refuses_leaves_it_to_popen(
    monkeypatch: pytest.MonkeyPatch, refuse: Callable[..., int]
) -> None:
    monkeypatch.setattr(process_start, "_fork_exec", refuse)
    calls = count_popen(monkeypatch)
    before = os.listdir("/proc/self/fd")
    with spawn(["sh", "-c", "exit 3"]) as child:
        assert child.wait(PATIENCE_SECONDS) == 3
    assert len(calls) == 1
    assert os.listdir("/proc/self/fd") == before


def test_a_start_that_fails_leaves_neither_a_child_nor_a_file(tmp_path: Path) -> None:
    with spawn(["true"]) as child:
        child.wait(PATIENCE_SECONDS)
    before = os.listdir("/proc/self/fd")
    for argv, cwd in ((["no-such-program"], None), ([str(tmp_path)], None), (["true"], str(tmp_path / "missing"))):
        files = (subprocess.DEVNULL, subprocess.DEVNULL, None)
        assert process_start._start_quickly(argv, files, cwd, dict(os.environ)) is None
        with pytest.raises(SpawnError):
            spawn(argv, cwd=cwd)
    assert without_children()
    assert os.listdir("/proc/self/fd") == before


def test_a_start_that_fails_is_one_although_the_system_collects_children() -> None:
    parent = """
import signal
from trunkline.base import process_start
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(process_start._start_quickly(["/no/such/program"], (0, 1, 2), None, {}))
"""
    assert run_parent(parent) == "None\n"


@pytest.mark.parametrize("closed", ["0", "1", "2", "0, 1", "0, 1, 2"])
def test_a_parent_without_standard_files_gives_its_child_the_right_ones(closed: str) -> None:
    parent = f"""
said = os.dup(1)
spawn(["true"]).close()
for fd in ({closed},):
    os.close(fd)
with spawn(["sh", "-c", "cat; echo out; echo err >&2; readlink /proc/$$/fd/0"]) as child:
    code = child.wait(5)
    outputs = os.read(child.stdout, 100), os.read(child.stderr, 100)
os.write(said, repr((code, *outputs)).encode())
"""
    assert run_parent(parent) == repr((0, b"out\n/dev/null\n", b"err\n"))


def test_who_audits_python_sees_the_start() -> None:
    parent = """
import sys
seen = []
sys.addaudithook(lambda event, args: event == "subprocess.Popen" and seen.append(list(args[1])))
with spawn(["sh", "-c", "exit 0"]) as child:
    child.wait(5)
print(seen[-1])
"""
    assert run_parent(parent) == "['sh', '-c', 'exit 0']\n"
