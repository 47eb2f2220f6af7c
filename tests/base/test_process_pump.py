from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.base.processes import is_alive, python, read_all
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import process_pump, process_tree, watchdog
from trunkline.base.process import Child, spawn
from trunkline.base.process_pump import Pump, pump

pytestmark = pytest.mark.process

MEGABYTE = 1 << 20


@pytest.fixture(params=["with pidfd", "without"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        for module in (process_pump, process_tree, watchdog):
            monkeypatch.setattr(module, "open_pidfd", lambda _: None)


@pytest.mark.usefixtures("_each_way")
def test_input_and_output_flow_both_ways_at_once() -> None:
    data = bytes(range(256)) * (4 * MEGABYTE // 256)
    with spawn(["cat"], stdin="pipe") as child:
        assert read_all(child, data) == (data, b"")
        assert child.wait(PATIENCE_SECONDS) == 0


@pytest.mark.usefixtures("_each_way")
def test_a_grandchild_that_holds_the_pipes_does_not_hold_us() -> None:
    with spawn(["sh", "-c", "sleep 600 & printf tail"]) as child:
        assert read_all(child) == (b"tail", b"")
        assert child.stdout is None


def test_a_grandchild_that_never_stops_talking_does_not_hold_us() -> None:
    with spawn(["sh", "-c", "yes & exit 0"]) as child:
        heard, _ = read_all(child)
        assert heard.startswith(b"y\n")


def test_all_that_the_leader_said_is_heard_although_it_has_ended_long_ago() -> None:
    with spawn(python("print('x' * 60000, end='')")) as child:
        child.wait(PATIENCE_SECONDS)
        assert len(read_all(child)[0]) == 60000


def run_to_the_end(child: Child) -> tuple[bytes, bytes]:
    """What `Pump.run` reads, as `read_all` gives it."""
    said = {"stdout": b"", "stderr": b""}

    def take(name: str, chunk: bytes) -> None:
        said[name] += chunk

    with Pump(child) as pipes:
        pipes.run(take)
    return said["stdout"], said["stderr"]


@pytest.mark.parametrize("read", [read_all, run_to_the_end])
def test_what_lies_in_the_pipe_when_its_time_is_over_is_still_heard(
    read: Callable[[Child], tuple[bytes, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pump, "DRAIN_SECONDS", 0.0)
    monkeypatch.setattr(process_pump, "CHUNK_BYTES", 1000)
    with spawn(["sh", "-c", "sleep 600 & head -c 60000 /dev/zero"]) as child:
        child.wait(PATIENCE_SECONDS)
        assert len(read(child)[0]) == 60000


def test_output_comes_while_the_child_runs() -> None:
    with spawn(["sh", "-c", "echo one; exec sleep 600"], stdin="pipe") as child:
        steps = pump(child, timeout=PATIENCE_SECONDS)
        assert next(steps) == ("stdout", b"one\n")
        steps.close()
        assert (child.stdin, child.stdout, child.stderr) == (None, None, None)


@pytest.mark.usefixtures("_each_way")
def test_a_child_that_never_reads_runs_into_the_timeout_and_is_left_running() -> None:
    with spawn(["sleep", "600"], stdin="pipe") as child:
        with pytest.raises(TimeoutError, match="did not end in time"):
            list(pump(child, b"x" * MEGABYTE, timeout=0.1))
        assert is_alive(child.pid)


def test_a_child_that_closes_its_input_early_is_no_error() -> None:
    with spawn(["sh", "-c", "exec 0<&-; echo fine"], stdin="pipe") as child:
        assert read_all(child, b"x" * MEGABYTE) == (b"fine\n", b"")


def test_input_is_written_although_output_has_ended() -> None:
    with spawn(["sh", "-c", "exec >&- 2>&-; wc -c >/dev/null; exit 3"], stdin="pipe") as child:
        assert read_all(child, b"x" * MEGABYTE) == (b"", b"")
        assert child.wait(PATIENCE_SECONDS) == 3
