from __future__ import annotations

import asyncio
import os
import resource
import selectors
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.base.processes import DAEMONIZE, exists, is_alive, python, until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import process_async, process_streams, process_tree, watchdog
from trunkline.base.process import SpawnError, spawn
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.process_pump import CHUNK_BYTES

pytestmark = pytest.mark.process

MEGABYTE = 1 << 20
IGNORES_TERM = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]
REPORTS_TERM = ["sh", "-c", "trap 'echo asked to end' TERM; echo ready; while :; do sleep 1; done"]
#: Longer than a test may take: one that uses it up has failed.
LONG_GRACE = 600.0


@pytest.fixture(autouse=True, params=["pidfd", "no pidfd"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "no pidfd":
        for module in (process_async, process_tree, watchdog):
            monkeypatch.setattr(module, "open_pidfd", lambda _: None)
    spawn(["true"]).close()
    before = os.listdir("/proc/self/fd")
    yield
    # A thread that helped to end a tree may need a moment to let go of its pidfd.
    until(lambda: len(os.listdir("/proc/self/fd")) <= len(before))


async def read_line(child: AsyncChild) -> str:
    data = b""
    while not data.endswith(b"\n"):
        chunk = await asyncio.wait_for(child.read_stdout(), PATIENCE_SECONDS)
        assert chunk, data
        data += chunk
    return data.decode().strip()


async def read_rest(child: AsyncChild) -> bytes:
    data = b""
    while chunk := await asyncio.wait_for(child.read_stdout(), PATIENCE_SECONDS):
        data += chunk
    return data


async def test_a_conversation_with_a_child() -> None:
    async with await spawn_async(["cat"], stdin="pipe") as child:
        child.write(b"hello\n")
        assert await read_line(child) == "hello"
        child.write(b"bye\n")
        child.close_stdin()
        assert await read_rest(child) == b"bye\n"
        assert await child.wait() == 0
    assert not exists(child.pid)


async def test_the_exit_code_is_there_from_the_end_on() -> None:
    async with await spawn_async(["sh", "-c", "read _; exit 3"], stdin="pipe") as child:
        codes = [child.returncode]
        child.close_stdin()
        await child.wait()
        codes.append(child.returncode)
    assert codes == [None, 3]


async def test_a_failed_start_is_a_spawn_error() -> None:
    with pytest.raises(SpawnError):
        await spawn_async(["no-such-program"])


async def test_many_may_wait_and_one_of_them_may_give_up() -> None:
    async with await spawn_async(["cat"], stdin="pipe") as child:
        waiting = [asyncio.create_task(child.wait()) for _ in range(3)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.wait(), 0.01)
        child.close_stdin()
        assert await asyncio.gather(*waiting) == [0, 0, 0]


async def test_a_grandchild_that_holds_the_pipe_does_not_delay_the_end_of_output() -> None:
    async with await spawn_async(["sh", "-c", "sleep 600 & printf tail"]) as child:
        assert await read_rest(child) == b"tail"
        await child.drained()


async def test_the_tail_of_output_is_kept_for_a_reader_who_comes_late() -> None:
    async with await spawn_async(["sh", "-c", "sleep 600 & head -c 60000 /dev/zero"]) as child:
        await child.wait()
        await child.drained()
        assert len(await read_rest(child)) == 60000


async def test_a_flood_is_read_in_bounded_memory() -> None:
    async with await spawn_async(["head", "-c", str(32 * MEGABYTE), "/dev/zero"]) as child:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        total, largest = 0, 0
        while data := await child.read_stdout():
            total += len(data)
            largest = max(largest, len(data))
        assert total == 32 * MEGABYTE
        assert largest <= process_streams.READ_LIMIT + CHUNK_BYTES
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024  # KiB


async def test_a_child_whose_output_nobody_takes_has_to_wait(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"head -c {MEGABYTE} /dev/zero; touch {done}"
    async with await spawn_async(["sh", "-c", script]) as child:
        first = len(await child.read_stdout())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.wait(), 0.1)
        assert not done.exists()
        assert first + len(await read_rest(child)) == MEGABYTE
        assert await child.wait() == 0
    assert done.exists()


async def test_a_child_that_never_reads_does_not_block_the_loop() -> None:
    async with await spawn_async(["sleep", "600"], stdin="pipe") as child:
        child.write(b"x" * 4 * MEGABYTE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.drain(), 0.05)
        with pytest.raises(BufferError, match="does not read"):
            child.write(b"x" * process_streams.WRITE_LIMIT)
        draining = asyncio.create_task(child.drain())
        await child.stop(0.1)
        await asyncio.wait_for(draining, PATIENCE_SECONDS)


async def test_much_input_arrives_whole() -> None:
    async with await spawn_async(["sh", "-c", "sleep 0.05; wc -c"], stdin="pipe") as child:
        for _ in range(8):
            child.write(b"x" * MEGABYTE)
        await asyncio.wait_for(child.drain(), PATIENCE_SECONDS)
        child.close_stdin()
        assert int(await read_rest(child)) == 8 * MEGABYTE


async def test_a_child_that_stops_reading_is_a_state_and_not_an_error() -> None:
    async with await spawn_async(["sh", "-c", "exec 0<&-; echo closed; exec sleep 600"], stdin="pipe") as child:
        assert await read_line(child) == "closed"
        states = [child.stdin_broken]
        child.write(b"x")
        states.append(child.stdin_broken)
        child.write(b"y")
        await child.drain()
        child.close_stdin()
    assert states == [False, True]


async def test_only_one_may_read() -> None:
    async with await spawn_async(["cat"], stdin="pipe") as child:
        reading = asyncio.create_task(child.read_stdout())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="already"):
            await child.read_stdout()
        child.write(b"x")
        assert await reading == b"x"


async def test_a_reader_that_gives_up_loses_nothing() -> None:
    async with await spawn_async(["cat"], stdin="pipe") as child:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.read_stdout(), 0.01)
        child.write(b"here\n")
        assert await read_line(child) == "here"


async def test_streams_that_were_not_asked_for_are_at_their_end() -> None:
    async with await spawn_async(["true"], stdout="null", stderr="null") as child:
        assert await child.read_stdout() == await child.read_stderr() == b""
        child.write(b"dropped")
        await child.drain()
        await child.drained()
        assert await child.wait() == 0


async def test_the_end_of_standard_error_is_kept_for_messages() -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo line $i >&2; done; exit 3"
    async with await spawn_async(["sh", "-c", script]) as child:
        # Two bytes more than the two lines take: what is left of the third says nothing, and is not shown.
        tail = child.keep_stderr_tail(limit=16)
        assert await child.wait() == 3
        await child.drained()
        assert tail.text() == "...line 8\nline 9"


async def test_stop_ends_the_tree_and_may_be_repeated() -> None:
    async with await spawn_async(IGNORES_TERM) as child:
        await read_line(child)
        assert set(await asyncio.gather(child.stop(0.1), child.stop(0.2), child.wait())) == {137}
        assert await child.stop() == 137
        assert not exists(child.pid)


async def test_an_impatient_stop_overtakes_a_patient_one() -> None:
    async with await spawn_async(IGNORES_TERM) as child:
        await read_line(child)
        patient = asyncio.create_task(child.stop(LONG_GRACE))
        await asyncio.sleep(0)
        assert await child.stop(0) == 137
        assert await patient == 137


async def test_stop_goes_on_when_its_caller_is_cancelled() -> None:
    async with await spawn_async(IGNORES_TERM) as child:
        await read_line(child)
        stopping = asyncio.create_task(child.stop(0.1))
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert await asyncio.wait_for(child.wait(), PATIENCE_SECONDS) == 137


async def test_the_loop_turns_while_a_tree_is_being_stopped() -> None:
    async with await spawn_async(IGNORES_TERM) as child:
        await read_line(child)
        stopping = asyncio.create_task(child.stop(LONG_GRACE))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not stopping.done()
        os.killpg(child.pid, signal.SIGKILL)
        assert await stopping == 137


async def test_a_daemon_ends_with_close_and_close_may_be_repeated() -> None:
    child = await spawn_async(python(DAEMONIZE, "sleep", "600"))
    daemon = int(await read_line(child))
    assert await child.wait() == 0
    assert is_alive(daemon)
    await asyncio.gather(child.close(), child.close())
    await child.close()
    assert not is_alive(daemon)
    assert await child.wait() == 0
    assert await child.read_stdout() == b""


async def test_close_goes_on_when_its_caller_is_cancelled() -> None:
    child = await spawn_async(IGNORES_TERM)
    await read_line(child)
    closing = asyncio.create_task(child.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert await asyncio.wait_for(child.wait(), PATIENCE_SECONDS) == 137
    await child.close()
    assert not exists(child.pid)


async def test_a_tree_ends_although_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with await spawn_async(["sleep", "600"]) as child:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert await child.stop() == 143
    assert not exists(child.pid)


async def test_sixty_four_stubborn_children_are_stopped_in_one_grace() -> None:
    children = [await spawn_async(REPORTS_TERM) for _ in range(64)]
    try:
        await asyncio.gather(*(read_line(child) for child in children))
        stopping = [asyncio.create_task(child.stop(LONG_GRACE)) for child in children]
        # All are asked before any grace is over: not one after the other, nor as many as a pool has threads.
        assert set(await asyncio.gather(*(read_line(child) for child in children))) == {"asked to end"}
        for child in children:
            os.killpg(child.pid, signal.SIGKILL)
        assert set(await asyncio.gather(*stopping)) == {137}
    finally:
        await asyncio.gather(*(child.close() for child in children))
    assert not [child.pid for child in children if exists(child.pid)]


@pytest.mark.parametrize("selector", [selectors.SelectSelector, selectors.PollSelector, selectors.EpollSelector])
def test_any_kind_of_loop_will_do(selector: type[selectors.BaseSelector]) -> None:
    async def converse() -> int:
        async with await spawn_async(["sh", "-c", "read line; exit $line"], stdin="pipe") as child:
            child.write(b"6\n")
            return await child.wait()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector())) as runner:
        assert runner.run(converse()) == 6


def test_a_loop_that_closes_does_not_keep_a_tree_alive() -> None:
    async def leave() -> int:
        child = await spawn_async(IGNORES_TERM)
        await read_line(child)
        closing = asyncio.create_task(child.close())
        await asyncio.sleep(0)
        closing.cancel()
        return child.pid

    pid = asyncio.run(leave())
    for thread in threading.enumerate():
        if thread.name == f"end-process-{pid}":
            thread.join(PATIENCE_SECONDS)
    assert not exists(pid)
