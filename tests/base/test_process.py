from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.base.processes import (
    DAEMONIZE,
    exists,
    is_alive,
    python,
    read_all,
    read_line,
    run_parent,
    until,
)
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import process, process_tree, watchdog
from trunkline.base.process import TREE_VARIABLE, Child, SpawnError, StderrTail, child_env, exit_code, spawn

pytestmark = pytest.mark.process

LONG = "600"
#: Longer than a test may take: one that uses it up has failed.
LONG_GRACE = 600.0


def open_fds() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_a_child_leads_a_session_and_a_group_of_its_own() -> None:
    with spawn(["sleep", LONG]) as child:
        assert os.getsid(child.pid) == child.pid == child.pgid == os.getpgid(child.pid)


def test_standard_input_is_empty_unless_asked_for() -> None:
    with spawn(["cat"]) as child:
        assert child.stdin is None
        assert child.wait(PATIENCE_SECONDS) == 0


def test_a_child_holds_no_file_of_its_parent_but_standard_error() -> None:
    parent = """
r, w = os.pipe()
os.set_inheritable(r, True); os.set_inheritable(w, True)
mine = {os.readlink(f"/proc/self/fd/{n}") for n in (0, 1, r, w)}
with spawn(["ls", "-l", "/proc/self/fd"], stderr="inherit") as child:
    child.wait(60)
    listed = os.read(child.stdout, 100000).decode()
assert "/dev/null" in listed and os.readlink("/proc/self/fd/2") in listed, listed
print([name for name in mine if name in listed])
"""
    assert run_parent(parent) == "[]\n"


@pytest.mark.parametrize("closed", [(2,), (2, 0), (2, 1, 0)])
def test_a_closed_standard_error_is_replaced_by_nothing_of_ours(closed: tuple[int, ...]) -> None:
    parent = f"""
shown = os.dup(1)
for number in {closed}: os.close(number)
with spawn(["sh", "-c", "readlink /proc/self/fd/2; readlink /proc/self/fd/0"], stderr="inherit") as child:
    child.wait(60)
    os.write(shown, f"{{os.read(child.stdout, 1000).decode().split()}} {{child.stdout > 2}}".encode())
"""
    assert run_parent(parent) == "['/dev/null', '/dev/null'] True"


def test_pipes_carry_input_and_both_outputs() -> None:
    with spawn(["sh", "-c", "read line; echo got $line; echo bad >&2"], stdin="pipe") as child:
        assert read_all(child, b"hello\n") == (b"got hello\n", b"bad\n")
        assert child.wait(PATIENCE_SECONDS) == 0


def test_outputs_can_be_thrown_away() -> None:
    with spawn(["sh", "-c", "echo x; echo y >&2"], stdout="null", stderr="null") as child:
        assert (child.stdout, child.stderr) == (None, None)
        assert child.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139), ("kill -USR1 $$", 138)],
)
def test_the_end_by_a_signal_is_an_exit_code_of_128_and_more(script: str, code: int) -> None:
    with spawn(["sh", "-c", script]) as child:
        assert child.wait(PATIENCE_SECONDS) == code == child.poll()


def test_return_codes_of_subprocess_translate_to_exit_codes() -> None:
    assert [exit_code(code) for code in (0, 3, -9, -15)] == [0, 3, 137, 143]


def test_waiting_has_an_end() -> None:
    with spawn(["sleep", LONG]) as child:
        assert child.poll() is None
        with pytest.raises(TimeoutError, match=str(child.pid)):
            child.wait(0.05)


def test_a_tree_that_obeys_is_gone_at_once() -> None:
    with spawn(["sleep", LONG]) as child:
        assert child.terminate_tree(LONG_GRACE) == 143
        assert child.gone


def test_a_child_that_ignores_sigterm_is_killed_after_its_grace() -> None:
    with spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]) as child:
        assert read_line(child.stdout) == "ready"
        begun = time.monotonic()
        assert child.terminate_tree(0.2) == 137
        assert time.monotonic() - begun >= 0.2
        assert not is_alive(child.pid)


def test_a_stopped_child_gets_to_obey() -> None:
    with spawn(["sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done"]) as child:
        assert read_line(child.stdout) == "ready"
        os.kill(child.pid, signal.SIGSTOP)
        assert child.terminate_tree(LONG_GRACE) == 5


def test_the_rest_of_the_group_has_the_same_grace_as_its_leader(tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    member = f"trap 'sleep 0.2; touch {cleaned}; exit' TERM; echo ready; while :; do sleep 0.01; done"
    with spawn(["sh", "-c", f"({member}) & wait"]) as child:
        assert read_line(child.stdout) == "ready"
        assert child.terminate_tree(LONG_GRACE) == 143
    assert cleaned.exists()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep 600 & echo $!", id="same group"),
        pytest.param("set -m; sleep 600 & echo $!", id="own group"),
        pytest.param("setsid sleep 600 & echo $!", id="own session"),
        pytest.param("setsid -f sh -c 'echo $$; exec sleep 600'", id="own session, orphaned"),
    ],
)
@pytest.mark.parametrize("end", [Child.close, Child.kill_tree, lambda child: child.terminate_tree(0.1)])
@pytest.mark.parametrize("leader", ["ends", "lives"])
def test_what_a_leader_started_ends_with_the_tree(script: str, end: object, leader: str) -> None:
    assert callable(end)
    with spawn(["bash", "-c", script + ("" if leader == "ends" else "; sleep 600")]) as child:
        descendant = int(read_line(child.stdout))
        if leader == "ends":
            assert child.wait(PATIENCE_SECONDS) == 0
        assert is_alive(descendant)
        end(child)
        assert child.gone
        assert not is_alive(descendant)


def test_a_daemon_that_forked_twice_is_found_by_its_cookie() -> None:
    with spawn(python(DAEMONIZE, "sleep", LONG)) as child:
        daemon = int(read_line(child.stdout))
        assert child.wait(PATIENCE_SECONDS) == 0
        assert os.getsid(daemon) != child.pid
        assert is_alive(daemon)
    assert not is_alive(daemon)


def test_a_descendant_that_cleared_its_environment_is_found_through_its_living_parent() -> None:
    script = "env -i setsid sh -c 'echo $$; exec sleep 600' & wait"
    with spawn(["sh", "-c", script]) as child:
        descendant = int(read_line(child.stdout))
        until(lambda: b"sleep" in Path(f"/proc/{descendant}/cmdline").read_bytes())
        # The leader obeys at once: when SIGKILL's turn comes, nothing ties the descendant to the tree any more.
        assert child.terminate_tree(LONG_GRACE) == 143
        assert not is_alive(descendant)


def test_a_descendant_in_the_middle_of_exec_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def read(pid: int) -> list[bytes] | None:
        nonlocal looks
        looks += pid == stray
        return None if pid == stray and looks <= 2 else watchdog_read(pid)

    watchdog_read = watchdog.read_cookies
    with spawn(["setsid", "-f", "sh", "-c", "echo $$; exec sleep 600"]) as child:
        stray = int(read_line(child.stdout))
        child.wait(PATIENCE_SECONDS)
        monkeypatch.setattr(watchdog, "read_cookies", read)
    assert looks > 2
    assert not is_alive(stray)


def test_whoever_knows_that_a_leader_has_ended_need_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with spawn(["sh", "-c", "exit 3"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        monkeypatch.setattr(process_tree.OwnTree, "_young_pids", lambda self: ())
        monkeypatch.setattr(process_tree.OwnTree, "_observe", lambda self: pytest.fail("it was asked for"))
        assert child.finish_if_clear(ended=True)
        assert child.wait() == 3


def test_a_leader_whose_status_is_withheld_by_a_tracer_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with spawn(["true"]) as child:
        child.wait(PATIENCE_SECONDS)
        with monkeypatch.context() as patch:
            patch.setattr(process_tree.OwnTree, "_young_pids", lambda self: ())
            patch.setattr(os, "waitpid", lambda pid, options: (0, 0))
            assert not child.finish_if_clear(ended=True)
        assert not child.gone
    assert child.gone


def test_cookies_of_nested_trees_accumulate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_OUTER_TREES", "outer")
    for env in (None, {"PATH": os.environ["PATH"]}):
        with spawn(["sh", "-c", f"echo ${TREE_VARIABLE}"], env=env) as child:
            outer, own = read_line(child.stdout).split(":")
        assert outer == "outer"
        assert own


def test_a_tree_inside_a_tree_ends_with_the_outer_one() -> None:
    inner = """
from trunkline.base.process import spawn
from trunkline.base.process_guard import guard
child = spawn(["setsid", "-w", "sleep", "60"])
print(child.pid, guard.pid, flush=True)
child.wait()
"""
    with spawn([sys.executable, "-c", inner]) as child:
        sleeper, watchdog = map(int, read_line(child.stdout).split())
        assert is_alive(sleeper)
        child.kill_tree()
        assert not is_alive(sleeper)
        assert not is_alive(watchdog)


def test_the_leaders_number_is_kept_until_the_tree_is_gone() -> None:
    with spawn(["true"]) as child:
        assert child.wait(PATIENCE_SECONDS) == 0
        assert exists(child.pid)
        assert not child.gone
    assert not exists(child.pid)
    assert child.gone


def test_ending_a_tree_again_and_after_its_end_is_harmless() -> None:
    with spawn(["sleep", LONG]) as child:
        assert child.terminate_tree() == 143
        assert child.terminate_tree() == 143
        assert child.kill_tree() == 143
        assert child.wait() == 143
    child.close()


def test_many_threads_may_end_one_tree() -> None:
    with spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]) as child:
        read_line(child.stdout)
        codes: list[int] = []
        ends = [lambda: child.terminate_tree(0.1), child.wait, child.kill_tree, lambda: child.wait(PATIENCE_SECONDS)]
        threads = [threading.Thread(target=lambda end=end: codes.append(end())) for end in ends * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert codes == [137] * len(threads)


def test_sixty_four_children_live_at_once_and_leave_nothing() -> None:
    before = open_fds()
    with ExitStack() as stack:
        children = [stack.enter_context(spawn(["cat"], stdin="pipe")) for _ in range(64)]
        for number, child in enumerate(children):
            assert child.stdin is not None
            os.write(child.stdin, b"%d\n" % number)
        assert [read_line(child.stdout) for child in children] == [str(number) for number in range(64)]
    assert not [child.pid for child in children if exists(child.pid)]
    assert len(open_fds()) <= len(before) + 1  # the watchdog's pipe, if this was the first spawn


def test_no_descriptor_and_no_zombie_is_left() -> None:
    spawn(["true"]).close()
    before = open_fds()
    for _ in range(5):
        with spawn(["sh", "-c", "sleep 600 & echo x"], stdin="pipe") as child:
            read_all(child)
        with pytest.raises(SpawnError):
            spawn(["no-such-program"], stdin="pipe")
        with pytest.raises(SpawnError):
            spawn(["true", "\0"], stdin="pipe")
    assert open_fds() == before
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if not is_alive(int(pid))]


def test_a_forgotten_child_is_ended_with_a_warning() -> None:
    child = spawn(["sleep", LONG])
    pid = child.pid
    with pytest.warns(ResourceWarning, match=f"{pid} was never closed"):
        del child
    assert not exists(pid)


def test_a_forked_copy_does_not_end_what_is_not_its_own() -> None:
    parent = """
child = spawn(["sleep", "60"])
forked = os.fork()
if forked == 0:
    child.terminate_tree(0); child.close()
    with spawn(["true"]) as own:
        os._exit(own.wait(60))
print(os.waitpid(forked, 0)[1], child.poll(), child.stdout is not None)
child.close()
print(child.poll())
"""
    assert run_parent(parent) == "0 None True\n137\n"


def test_exit_codes_are_right_although_the_host_ignores_sigchld() -> None:
    parent = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
with spawn(["sh", "-c", "exit 7"]) as child:
    print(child.wait(60))
"""
    assert run_parent(parent) == "7\n"


def test_a_status_that_somebody_else_took_is_255_and_the_tree_still_ends() -> None:
    parent = """
child = spawn(["sh", "-c", "setsid sleep 600 & echo $!"])
sleeper = int(os.read(child.stdout, 100))
os.waitpid(child.pid, 0)
print(child.wait(60), os.path.exists(f"/proc/{sleeper}"))
child.close()
print(os.path.exists(f"/proc/{sleeper}/exe"))
"""
    assert run_parent(parent) == "255 True\nFalse\n"


def test_a_descendant_of_another_user_does_not_hold_us(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pidfd: int, number: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with spawn(["bash", "-c", "setsid sleep 600 & echo $!"]) as child:
        stranger = int(read_line(child.stdout))
        until(lambda: os.getsid(stranger) == stranger)
        child.wait(PATIENCE_SECONDS)
        with monkeypatch.context() as patch:
            patch.setattr(signal, "pidfd_send_signal", refuse)
            patch.setattr(process_tree, "KILL_SECONDS", LONG_GRACE)
            child.close()
    assert child.gone
    os.kill(stranger, signal.SIGKILL)


def test_orphans_that_the_system_gives_to_us_are_reaped_too() -> None:
    parent = """
import ctypes
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
with spawn(["sh", "-c", "setsid sleep 600 & sleep 600 & echo $!"]) as child:
    child.wait(60)
    os.read(child.stdout, 100)
with open(f"/proc/self/task/{os.getpid()}/children") as children:
    print(children.read().split() == [str(guard.pid)])
"""
    assert run_parent(parent) == "True\n"


def test_nothing_here_needs_an_event_loop() -> None:
    parent = "import trunkline.base.process_pump\nprint('asyncio' in sys.modules)"
    assert run_parent(parent) == "False\n"


def test_an_environment_is_built_from_parts() -> None:
    base = {"PATH": "/bin", "SECRET_A": "1", "SECRET_B": "2", "X": "3"}
    assert child_env(base, {"X": "4", "SECRET_B": "5"}, ["SECRET_"]) == {"PATH": "/bin", "X": "4", "SECRET_B": "5"}
    assert child_env() == dict(os.environ)


def test_the_tail_of_standard_error_is_bounded() -> None:
    tail = StderrTail(limit=10)
    assert tail.text() == ""
    tail.feed(b"first\n")
    assert tail.text() == "first"
    tail.feed(b"second\n")
    tail.feed(b"third\n")
    # Not the rest of `second`: of a secret, that would be a half that nobody recognises.
    assert tail.text() == "...third"
    tail.feed(b"x" * 1000)
    assert tail.text() == "..."
    tail.feed(b" a word")
    assert tail.text() == "...a word"
