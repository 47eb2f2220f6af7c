"""A connection to one program: start, ready, talk, end. Each test has a real process on the other side."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.misbehaving import PROGRAM, argv, connected, has_ended
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, Fault, LocalProtocolError
from trunkline.wires.jsonstream import messages
from trunkline.wires.jsonstream.codec import Noise
from trunkline.wires.jsonstream.drive import Connection
from trunkline.wires.jsonstream.drive_turn import Heard

pytestmark = pytest.mark.process


async def answer(connection: Connection, text: str) -> list[messages.Event]:
    """All events of one message."""
    found = []
    msg_id = connection.ask(text)
    async for event in connection.events():
        found.append(event)
        if isinstance(event, messages.StreamEnd) and event.msg_id == msg_id:
            return found
    raise AssertionError("the program ended")


def said(events: list[messages.Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, messages.TextDelta))


@pytest.fixture
def patient_with_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that closes its output has as long to end as a busy machine gives it."""
    monkeypatch.setattr("trunkline.wires.driven_process.EXIT_SECONDS", PATIENCE_SECONDS)


async def fault_of_start(habit: str, **options: Any) -> Fault:
    """The fault that starting the program with a habit ends with."""
    with pytest.raises(Fault) as caught:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await Connection.start(argv(habit), name="nasty", **options)
    return caught.value


async def test_a_program_is_started_asked_and_answers() -> None:
    async with connected("none") as connection:
        assert connection.ready.version == "0.1.0"
        assert connection.ready.capabilities.tool_approval
        assert connection.session_id == "fresh"
        events = await answer(connection, "hello")
        assert [event.type for event in events] == ["stream_start", "text_delta", "stream_end"]
        assert said(events) == "hello"


async def test_it_is_started_where_and_with_what_it_was_told(tmp_path: Path) -> None:
    async with connected("none", cwd=str(tmp_path), env=dict(os.environ) | {"COLOUR": "blue"}) as connection:
        assert said(await answer(connection, "cwd")).strip('"') == str(tmp_path)
        assert said(await answer(connection, "env COLOUR")) == "blue"


async def test_every_message_has_an_id_of_its_own() -> None:
    async with connected("none") as first, connected("none") as second:
        ids = [first.ask("a"), first.ask("b"), second.ask("a")]
        assert len(set(ids)) == 3


async def test_leaving_the_events_early_loses_none() -> None:
    async with connected("none") as connection:
        connection.ask("hello")
        kinds = []
        for _ in range(3):
            async for event in connection.events():
                kinds.append(event.type)
                break
        assert kinds == ["stream_start", "text_delta", "stream_end"]


async def test_noise_is_told_apart_from_the_protocol() -> None:
    async with connected("noisy") as connection:
        connection.ask("hello")
        heard: list[Heard] = []
        while not any(isinstance(item, messages.StreamEnd) for item in heard):
            heard += await connection.receive()
        events = [item for item in heard if isinstance(item, messages.Event)]
        assert [event.type for event in events] == ["stream_start", "text_delta", "stream_end"]
        assert Noise(b"DEBUG got a message") in heard


async def test_a_program_that_is_never_ready_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    await_ready = Connection._await_ready

    async def once_it_has_begun(connection: Connection, seconds: float) -> None:
        await until(connection._process._stderr.text)
        await await_ready(connection, seconds)

    monkeypatch.setattr(Connection, "_await_ready", once_it_has_begun)
    fault = await fault_of_start("mute", ready_seconds=0.5)
    assert isinstance(fault, AgentTimeout)
    assert "`ready` within 0.5 s" in str(fault)
    assert "still loading" in str(fault)


async def test_a_program_that_says_why_it_cannot_work_is_quoted() -> None:
    fault = await fault_of_start("fatal")
    assert isinstance(fault, ConfigError)
    assert str(fault) == "ANTHROPIC_API_KEY not set"


async def test_a_program_that_cannot_work_and_does_not_leave_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.wires.jsonstream.drive_connection.FATAL_SECONDS", 0.1)
    fault = await fault_of_start("fatal-lingers")
    assert isinstance(fault, ConfigError)
    assert str(fault) == "no such model"


@pytest.mark.usefixtures("patient_with_the_end")
async def test_a_program_that_ends_early_is_reported_with_its_last_words_and_no_secret() -> None:
    secret = "sk-live-0123456789abcdef"
    fault = await fault_of_start("quits", env=dict(os.environ) | {"NASTY_API_KEY": secret})
    assert isinstance(fault, AgentFailed)
    assert "exit code 3" in str(fault)
    assert "boom: cannot log in with" in str(fault)
    assert secret not in str(fault)


@pytest.mark.usefixtures("patient_with_the_end")
async def test_last_words_on_the_wrong_stream_are_heard_too() -> None:
    fault = await fault_of_start("quits-on-stdout")
    assert "exit code 2" in str(fault)
    assert "usage: nasty [--sane]" in str(fault)


@pytest.mark.parametrize("version", ["1.0.0", "2.x", "3"])
async def test_an_incompatible_version_is_refused(version: str) -> None:
    fault = await fault_of_start(f"version:{version}")
    assert isinstance(fault, ConfigError)
    assert version in str(fault)


@pytest.mark.parametrize(
    ("version", "understood"),
    [("0.1.0", (0, 1, 0)), ("0.2.10", (0, 2, 10)), ("v0.3", (0, 3, 0)), ("0.1.0-rc.1", (0, 1, 0)), ("later", None)],
)
async def test_a_compatible_version_is_accepted(version: str, understood: tuple[int, int, int] | None) -> None:
    async with connected(f"version:{version}") as connection:
        assert connection.version == understood
        assert said(await answer(connection, "hello")) == "hello"


@pytest.mark.parametrize(("version", "has_content"), [("0.1.0", False), ("0.1.11", True), ("later", True)])
async def test_newer_programs_are_told_the_text_under_its_newer_name_too(version: str, has_content: bool) -> None:
    async with connected(f"version:{version}") as connection:
        told = said(await answer(connection, "commands"))
        assert ('"content": "commands"' in told) is has_content
        assert '"input": "commands"' in told


async def test_a_program_that_says_next_to_nothing_of_itself_is_good_enough() -> None:
    async with connected("sessionless") as connection:
        assert connection.session_id is None
        assert said(await answer(connection, "hello")) == "hello"


@pytest.mark.parametrize("program", ["/nowhere/at/all", "no-such-program-on-path"])
async def test_a_program_that_does_not_exist_is_a_fault_of_the_configuration(program: str) -> None:
    with pytest.raises(ConfigError, match=program):
        await Connection.start([program])


async def test_lone_surrogates_go_both_ways() -> None:
    async with connected("none") as connection:
        assert said(await answer(connection, "half \ud83d of it")) == "half \ud83d of it"


async def test_a_message_over_the_limit_is_not_sent() -> None:
    async with connected("none", max_line=1000) as connection:
        with pytest.raises(LocalProtocolError, match="1000"):
            connection.ask("x" * 1000)
        assert said(await answer(connection, "hello")) == "hello"


async def test_what_is_never_read_is_held_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.base.process_streams.WRITE_LIMIT", 1_000_000)
    async with connected("never-reads") as connection:
        large = "x" * 450_000
        connection.ask(large)
        connection.ask(large)
        assert not await connection.is_reading()
        with pytest.raises(AgentFailed, match="does not read"):
            connection.ask(large)


async def test_a_program_that_reads_is_seen_to_read() -> None:
    async with connected("none") as connection:
        await answer(connection, "x" * 1_000_000)
        assert await connection.is_reading()


async def test_output_that_nobody_reads_makes_the_program_wait() -> None:
    async with connected("floods") as connection:
        msg_id = connection.ask("flood")
        items = await connection.receive()
        # By now megabytes would have come if nothing held them back.
        for _ in range(5):
            before = len(items)
            items += await connection.receive()
            assert len(items) - before < 10_000
        assert all(item.msg_id == msg_id for item in items if isinstance(item, messages.TextDelta))


async def test_the_end_of_a_program_is_told() -> None:
    async with connected("is-killed") as connection:
        connection.ask("hello")
        assert [event.type async for event in connection.events()] == ["stream_start"]
        ending = await connection.ending()
        assert ending.code == 137
        assert "SIGKILL" in str(ending)
        assert not connection.usable
        with pytest.raises(AgentFailed, match="ended"):
            connection.ask("are you there?")


async def test_a_program_that_closes_its_output_and_stays_is_ended() -> None:
    async with connected("closes-stdout") as connection:
        connection.ask("hello")
        assert [event.type async for event in connection.events()] == ["stream_start"]
        assert "closed its output" in str(await connection.ending())
        await has_ended(connection.pid)


async def test_closing_lets_a_program_leave_by_itself(tmp_path: Path) -> None:
    async with connected("talks-at-eof", cwd=str(tmp_path)) as connection:
        await connection.close()
        await connection.close()
    assert (tmp_path / "left").exists()


async def test_closing_ends_a_program_that_does_not_leave() -> None:
    async with connected("ignores-eof") as connection:
        await answer(connection, "hello")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await connection.close(0.05)
        await has_ended(connection.pid)


async def test_closing_goes_on_when_the_one_who_closes_is_cancelled() -> None:
    async with connected("ignores-eof") as connection:
        await answer(connection, "hello")
        closer = asyncio.create_task(connection.close(0.05))
        await asyncio.sleep(0)
        closer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closer
        await has_ended(connection.pid)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    fifo = os.open(tmp_path / "started", os.O_RDONLY | os.O_NONBLOCK)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fifo, started.set)
    tell_pid = "import os, sys; print(os.getpid(), file=open('started', 'w')); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-S", "-c", tell_pid, sys.executable, "-S", PROGRAM, "mute"]
    start = asyncio.create_task(Connection.start(command, cwd=str(tmp_path)))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await started.wait()
            start.cancel()
            with pytest.raises(asyncio.CancelledError):
                await start
            await has_ended(int(os.read(fifo, 100)))
    finally:
        loop.remove_reader(fifo)
        os.close(fifo)
