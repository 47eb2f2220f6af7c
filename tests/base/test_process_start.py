from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.base.processes import read_all, run_parent
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.process import SpawnError, spawn
from trunkline.base.process_guard import guard

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


def without_children() -> bool:
    """Whether no child of ours has ended without being waited for."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return True


@pytest.mark.usefixtures("unusual_parent")
def test_a_child_has_what_it_was_given_and_nothing_else_of_its_parent(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "GREETING": "grüß = Gott", "EMPTY": "", "BYTES": "\udcff"}
    traits, *rest = portrait(str(tmp_path), env)
    (ignored,) = (line for line in traits if line.startswith("SigIgn:"))
    # Python ignores SIGPIPE, which programs do not expect; what its user ignores is left as it is.
    assert not int(ignored.split()[1], 16) & 1 << (signal.SIGPIPE - 1)
    assert rest == [
        ["True"],
        # The last is that of the folder which `ls` reads.
        ["0", "1", "2", "3"],
        ["/dev/null", str(tmp_path)],
        ["ä b||\udcff|"],
        [f"{name}={value}" for name, value in env.items()],
    ]


def test_a_start_that_fails_leaves_neither_a_child_nor_a_file(tmp_path: Path) -> None:
    with spawn(["true"]) as child:
        child.wait(PATIENCE_SECONDS)
    before = os.listdir("/proc/self/fd")
    for argv, cwd in ((["no-such-program"], None), ([str(tmp_path)], None), (["true"], str(tmp_path / "missing"))):
        with pytest.raises(SpawnError):
            spawn(argv, cwd=cwd)
    assert without_children()
    assert os.listdir("/proc/self/fd") == before


def test_a_leader_is_known_by_its_number_before_it_is_confirmed_and_not_if_it_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numbers: list[int] = []
    expect, confirm = guard.expect, guard.confirm

    def watch(number: int) -> None:
        expect(number)
        numbers.append(number)

    def check(cookie: str, number: int) -> None:
        assert numbers == [number]
        assert guard.is_leader(number)
        confirm(cookie, number)

    monkeypatch.setattr(guard, "expect", watch)
    monkeypatch.setattr(guard, "confirm", check)
    spawn(["true"]).close()
    with pytest.raises(SpawnError):
        spawn([str(tmp_path)])
    assert len(numbers) == 2
    assert not guard.is_leader(numbers[1])


def test_a_start_that_fails_is_one_although_the_system_collects_children() -> None:
    parent = """
import threading
from trunkline.base.process import SpawnError
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def start():
    try:
        spawn(["/no/such/program"])
    except SpawnError as error:
        print(error.reason)
# Only the main thread could change that.
thread = threading.Thread(target=start)
thread.start()
thread.join()
"""
    assert run_parent(parent) == "not-found\n"


def test_exit_codes_are_kept_from_the_first_start_of_the_main_thread_on() -> None:
    parent = """
import threading
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def start():
    with spawn(["sh", "-c", "exit 3"]) as child:
        codes.append(child.wait(60))
codes = []
thread = threading.Thread(target=start)
thread.start()
thread.join()
start()
print(codes[1:])
"""
    assert run_parent(parent) == "[3]\n"


@pytest.mark.parametrize("closed", ["0", "1", "2", "0, 1", "0, 1, 2"])
def test_a_parent_without_standard_files_gives_its_child_the_right_ones(closed: str) -> None:
    parent = f"""
said = os.dup(1)
spawn(["true"]).close()
for fd in ({closed},):
    os.close(fd)
with spawn(["sh", "-c", "cat; echo out; echo err >&2; readlink /proc/$$/fd/0"]) as child:
    code = child.wait(60)
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
    child.wait(60)
print(seen[-1])
"""
    assert run_parent(parent) == "['sh', '-c', 'exit 0']\n"
