"""A session's events over HTTP: whole, in order, from where a reader was; and what becomes of readers that are slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from starlette.applications import Starlette

from tests.exchange.api_world import Reader, World, token, world
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.base.vocabulary import Mode
from trunkline.core.events import (
    Envelope,
    Failed,
    Notice,
    StopAsked,
    TextDelta,
    ThinkingDelta,
    ToolRequested,
    TurnEnded,
)
from trunkline.core.feed import FEW
from trunkline.core.turns import State
from trunkline.core.usage import Usage
from trunkline.exchange.api import events
from trunkline.exchange.api.broadcast import BACKLOG_BYTES
from trunkline.exchange.api.event_form import NAMES


async def test_a_reader_comes_back_after_the_event_that_it_saw_last(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        await net.say(id, "one")
        whole = net.read(id)
        await until(lambda: "turn_ended" in whole.kinds)
        readers = [net.read(id, "?since=2"), net.read(id, last=2)]
        # What the browser has seen since is newer than the address that it was given.
        readers.append(net.read(id, "?since=0", last=2))
        await net.say(id, "two")
        for reader in readers:
            await until(lambda reader=reader: reader.kinds.count("turn_ended") == 2)  # type: ignore[misc]
            assert [data["seq"] for _, data in reader.events] == [3, 4, 5, 6]
        assert [data["seq"] for _, data in whole.events] == [1, 2, 3, 4, 5, 6]
        await whole.leave()


async def test_everything_that_happens_has_its_name_and_its_members_side_by_side(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id)
        await net.say(id, who="talker", msg_id="m1", files=["a.txt"])
        await until(lambda: net.fake.busy)
        request = ToolRequested("c1", "Bash", "exec", {"command": "ls"}, "List files")
        net.fake.say(ThinkingDelta("hm"), TextDelta("line\r\nline\u2028\ud800"), Notice("note"), request)
        await until(lambda: "tool_requested" in reader.kinds)
        net.fake.say(Failed("provider", "Overloaded.", True), TurnEnded("error", Usage(3, 4)))
        await until(lambda: "turn_ended" in reader.kinds)
        found = dict(reader.events)
        for data in found.values():
            assert (data["session"], data["turn"]) == (id, 1)
        assert found["turn_started"] | {"at": 0} == {
            "session": id, "seq": 1, "turn": 1, "at": 0,
            "message": "Hello", "by": "talker", "files": ["a.txt"], "msg_id": "m1",
        }  # fmt: skip
        assert found["text_delta"]["text"] == "line\r\nline\u2028\ud800"
        assert found["thinking_delta"]["text"] == "hm"
        assert found["notice"]["message"] == "note"
        assert found["tool_requested"].items() >= {"call_id": "c1", "name": "Bash", "category": "exec"}.items()
        assert found["tool_requested"]["args"] == {"command": "ls"}
        assert found["failed"].items() >= {"kind": "provider", "message": "Overloaded.", "retryable": True}.items()
        assert (found["turn_ended"]["outcome"], found["turn_ended"]["usage"]["input_tokens"]) == ("error", 3)


def test_kinds_are_in_snake_case() -> None:
    wanted = (
        "turn_started text_delta thinking_delta tool_requested tool_started tool_finished tool_cancelled progress "
        "notice failed turn_ended mode_changed"
    )
    assert set(wanted.split()) <= set(NAMES.values())


async def test_a_silent_stream_says_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 * events.HEARTBEAT_SECONDS < 15
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)
    async with world(tmp_path) as net:
        reader = net.read(await net.session())
        await until(lambda: reader.text.count(": alive\n\n") >= 3)
        assert reader.events == []


async def test_a_slow_reader_is_told_what_it_missed_and_holds_nobody_up(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        slow, quick = net.read(id), net.read(id)
        await until(lambda: len(net.app.state.streams.open) == 2 and slow.chunks and quick.chunks)
        slow.may_read.clear()
        await net.say(id)
        await until(lambda: net.fake.busy)
        words, many = "x" * 1000, 2 * BACKLOG_BYTES // 1000
        for _ in range(many):
            net.fake.say(TextDelta(words))
        net.fake.say(TurnEnded("success"))
        await until(lambda: b"event: turn_ended" in quick.chunks[-1])
        # What is kept for it is bounded.
        assert max(stream.backlog.size for stream in net.app.state.streams.open) <= BACKLOG_BYTES
        slow.may_read.set()
        await until(lambda: b"event: turn_ended" in slow.chunks[-1])
        gaps = [data for kind, data in slow.events if kind == "gap"]
        shown = {data["seq"] for kind, data in slow.events if kind != "gap"}
        missing = {seq for gap in gaps for seq in range(gap["first"], gap["last"] + 1)}
        assert gaps
        assert not shown & missing
        assert shown | missing == set(range(1, many + 3))
        assert net.app.state.streams.all_drops >= 1


async def test_over_a_socket_readers_get_all_of_it_in_order_and_a_slow_one_is_told_what_it_missed(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as net, served(net.app) as port, asyncio.timeout(PATIENCE_SECONDS):
        id = await net.session()
        slow, *quick = [SocketReader(port, id) for _ in range(FEW + 2)]
        reading = [asyncio.create_task(reader.read()) for reader in quick]
        late = asyncio.create_task(slow.read())
        await until(lambda: len(net.app.state.streams.open) == FEW + 2)
        await net.say(id)
        await until(lambda: net.fake.busy)
        slow.may_read.clear()
        said, at_once = 0, 50
        # However much the sockets hold.
        while not net.app.state.streams.all_drops:
            net.fake.say(*[TextDelta("x" * 10_000)] * at_once)
            said += at_once
            await until(partial(_have, quick, said))
        net.fake.say(TurnEnded("success"))
        await asyncio.gather(*reading)
        everything = list(range(1, said + 3))
        assert all(seqs(reader.stream) == everything for reader in quick)
        slow.may_read.set()
        await late
        lines = slow.stream.split(b"\n")
        gaps = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ") and b'"first"' in line]
        missing = {seq for gap in gaps for seq in range(gap["first"], gap["last"] + 1)}
        assert gaps
        assert sorted([*seqs(slow.stream), *missing]) == everything


def _have(readers: list[SocketReader], seq: int) -> bool:
    return all(reader.last >= seq for reader in readers)


class SocketReader:
    """Reads a stream of events from a port, chunk by chunk, while it may."""

    def __init__(self, port: int, session: str) -> None:
        self.stream = bytearray()
        self.last = 0
        """The number of the last event that was read."""
        self.may_read = asyncio.Event()
        self.may_read.set()
        self._port = port
        self._path = f"/api/sessions/{session}/events"

    async def read(self) -> None:
        """Until the turn has ended."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1024 * 1024)
        writer.write(f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode())
        writer.write(f"Authorization: Bearer {token('admin')}\r\n\r\n".encode())
        while await reader.readline() != b"\r\n":
            pass
        while b"event: turn_ended" not in self.stream[-1000:]:
            await self.may_read.wait()
            size = int(await reader.readline(), 16)
            chunk = await reader.readexactly(size + 2)
            self.stream += chunk[:-2]
            self.last = max([self.last, *seqs(chunk)])
        writer.close()


def seqs(stream: bytes | bytearray) -> list[int]:
    """The numbers of its events."""
    return [int(line[4:]) for line in stream.split(b"\n") if line.startswith(b"id: ")]


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[int]:
    """The application on a port."""
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    begun = partial(_set, port)
    serving = asyncio.create_task(asgi.serve(app, "127.0.0.1", 0, stop, begun, stopping=app.state.streams.close))
    try:
        yield await port
    finally:
        stop.set()
        await serving


def _set(port: asyncio.Future[int], host: str, found: int) -> None:
    port.set_result(found)


async def test_a_reader_that_takes_nothing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STALLED_SECONDS", 0.01)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id, slow=True)
        await until(reader.task.done)
        assert not reader.ended, "it must not take what it has for everything"
        live = net.exchange.switchboard.live(id)
        assert live is not None
        assert live.clients == 0


async def test_a_reader_that_leaves_leaves_nothing_behind(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        live = net.exchange.switchboard.live(id)
        assert live is not None
        readers = [net.read(id) for _ in range(3)]
        await until(lambda: live.clients == 3)
        await net.say(id)
        for reader in readers:
            await reader.leave()
        assert (live.clients, len(net.app.state.streams.open)) == (0, 0)
        assert live.session.status is State.RUNNING


async def test_a_reader_stays_when_the_agent_is_started_again(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id)
        await net.say(id, "one")
        await until(lambda: net.fake.busy)
        net.fake.crash(RuntimeError("gone"))
        await until(lambda: "turn_ended" in reader.kinds)
        net.clock.now += 60_000
        before = net.exchange.switchboard.live(id)
        assert await net.say(id, "two") == 2
        assert net.exchange.switchboard.live(id) is before
        await until(lambda: len(net.fake.heard) == 2)
        net.fake.say(TurnEnded("success"))
        await until(lambda: reader.kinds.count("turn_ended") == 2)
        seqs = [data["seq"] for _, data in reader.events]
        assert seqs == sorted(set(seqs))
        assert [data["turn"] for kind, data in reader.events if kind == "turn_started"] == [1, 2]


async def test_what_was_said_can_be_read_while_the_agent_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RETRY_SECONDS", 0.01)
    async with world(tmp_path) as net:
        id = await net.session("echo", session_id="s1")
        await net.say(id, "one")
        reader = net.read(id)
        await until(lambda: "turn_ended" in reader.kinds)
    async with world(tmp_path) as net:
        settings = net.exchange.settings
        without = {name: agent for name, agent in settings.agents.items() if name != "echo"}
        await net.exchange.take_up(settings.replace(agents=without))
        whole, rest = net.read(id), net.read(id, "?since=1")
        await until(lambda: "turn_ended" in whole.kinds and "turn_ended" in rest.kinds)
        assert whole.kinds == ["turn_started", "text_delta", "turn_ended"]
        assert rest.kinds == whole.kinds[1:]
        # As soon as it can be had, its readers are there.
        await net.exchange.take_up(settings)
        await net.say(id, "two")
        await until(lambda: whole.kinds.count("turn_ended") == 2)
        assert whole.kinds == 2 * ["turn_started", "text_delta", "turn_ended"]


async def test_a_stream_ends_with_its_session(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id)
        await net.say(id)
        await until(lambda: "turn_started" in reader.kinds)
        assert (await net.ask("DELETE", f"/api/sessions/{id}")).status_code == 200
        await until(lambda: reader.ended)
        assert reader.kinds[-1] == "turn_ended"
        assert (await net.get(f"/api/sessions/{id}/events")).status_code == 404


async def test_all_streams_end_when_the_server_does(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id)
        await until(lambda: reader.chunks)
        net.app.state.streams.close()
        await until(lambda: reader.ended)
        late = net.read(id)
        await until(lambda: late.ended)


@pytest.mark.parametrize("since", ["-1", "x", "1.5", "9" * 5000, "١", "0x10", "1&since=2"])
async def test_what_is_no_number_of_an_event_is_refused(tmp_path: Path, since: str) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert (await net.get(f"/api/sessions/{id}/events?since={since}")).status_code == 400


async def test_a_number_beyond_the_last_event_waits_for_what_comes(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        reader = net.read(id, "?since=4000")
        await until(lambda: reader.chunks)
        await net.say(id)
        await until(lambda: "turn_ended" in reader.kinds)


async def test_a_session_that_is_not_there_has_no_events(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        refused = await net.get("/api/sessions/none/events")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "session_not_found")


async def test_a_head_request_gets_the_head_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = await net.ask("HEAD", f"/api/sessions/{await net.session()}/events")
        assert (found.status_code, found.content) == (200, b"")
        assert found.headers["content-type"].startswith("text/event-stream")


async def test_many_readers_get_the_same_bytes_made_once(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        readers = [net.read(id) for _ in range(20)]
        await until(lambda: all(reader.chunks for reader in readers))
        await net.say(id, "Hello")
        await until(lambda: all("turn_ended" in reader.kinds for reader in readers))
        assert len({reader.text for reader in readers}) == 1


def all_wait(net: World) -> bool:
    """Whether all streams have sent everything."""
    return all(stream._is_waiting for stream in net.app.state.streams.open)


def writing_now(net: World, id: str, may_write: Callable[[], bool]) -> tuple[Reader, list[bytes]]:
    """A reader whose server writes chunks at once, as often as it may; and these chunks."""
    written: list[bytes] = []

    def write_now(framed: bytes) -> bool:
        if not may_write():
            return False
        data = framed.split(b"\r\n", 1)[1].removesuffix(b"\r\n")
        written.append(data)
        reader.chunks.append(data)
        return True

    headers = {"authorization": f"Bearer {token('observer')}"}
    reader = Reader(net.app, f"/api/sessions/{id}/events", headers, write_now=write_now)
    return reader, written


async def test_what_is_written_at_once_does_not_overtake_what_had_to_wait(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        live = await net.exchange.switchboard.find(id)
        allowed = iter([True, False])
        reader, written = writing_now(net, id, lambda: next(allowed, True))
        await until(lambda: reader.chunks)
        modes: list[list[Mode]] = [["yolo"], ["default", "yolo"]]
        for together in modes:
            await until(lambda: all_wait(net))
            for mode in together:
                live.session.set_mode(mode)
                live.session.flush()
        await until(lambda: len(reader.events) == 3)
        seqs = [data["seq"] for _, data in reader.events]
        assert seqs == sorted(seqs)
        assert len(written) == 1
        await reader.leave()


async def test_who_loses_the_token_is_written_nothing_at_once_either(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        reader, written = writing_now(net, id, lambda: True)
        await until(lambda: reader.chunks)
        await until(lambda: all_wait(net))
        settings = net.exchange.settings
        await net.exchange.take_up(settings.replace(people={"admin": settings.people["admin"]}))
        await net.say(id, "A secret")
        await until(lambda: reader.ended)
        assert written == []
        assert "secret" not in reader.text


async def test_a_reader_of_a_session_that_is_closed_and_woken_again_reads_nothing_twice(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        board = net.exchange.switchboard
        await net.say(id, "one")
        live = await board.find(id)
        await live.session.at_rest()
        reader = net.read(id)
        await until(lambda: "turn_ended" in reader.kinds)
        del board._live[id]
        await live.close()
        await until(lambda: board.live(id) is not None)
        await net.say(id, "two")
        await until(lambda: reader.kinds.count("turn_started") > 1 and reader.kinds[-1] == "turn_ended")
        assert reader.kinds == 2 * ["turn_started", "text_delta", "turn_ended"]


async def test_what_is_for_the_log_alone_is_not_read_while_the_agent_cannot_be_had(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session(session_id="s1")
        await net.say(id)
        await until(lambda: net.fake.busy)
        await net.post(f"/api/sessions/{id}/stop")
        await (await net.exchange.switchboard.find(id)).session.at_rest()
        records = [type(item.event) for item in net.exchange.switchboard.peek(id).records if isinstance(item, Envelope)]
        assert StopAsked in records
    async with world(tmp_path) as net:
        settings = net.exchange.settings
        await net.exchange.take_up(settings.replace(agents={"echo": settings.agents["echo"]}))
        reader = net.read(id)
        await until(lambda: "turn_ended" in reader.kinds)
        assert "stop_asked" not in reader.kinds
