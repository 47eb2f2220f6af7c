"""A Tryll server has time for everybody: for those whose frames take long, and for those that read slowly."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.loop import run, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, Served, echo, served
from trunkline.agents.graph.mustache import Template, read_template
from trunkline.agents.graph.nodes import classify_llm, generate
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.fitting import NO_DIAGNOSTICS
from trunkline.wires.tryll.serve import ServerSettings
from trunkline.wires.tryll.serve import connection as serve_connection
from trunkline.wires.tryll.serve.connection import HIGH_WATER, ServerConnection
from trunkline.wires.tryll.serve.session import AGENT_BITS

pytestmark = pytest.mark.slow

#: Within which a client has read something, also on a busy machine.
STALL = 2.0


async def test_frames_that_take_long_leave_time_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_connection, "_SHARE_SECONDS", 0.0)
    rounds: list[int] = []
    taken = ServerConnection._take

    def take(connection: ServerConnection, found: list[bytes]) -> None:
        taken(connection, found)
        rounds.append(len(found) - len(connection._backlog or ()))

    async with served(tmp_path) as server, server.peer() as peer:
        monkeypatch.setattr(ServerConnection, "_take", take)
        # Large ones one by one, and small ones a few at a time.
        for text, most in (("x" * 5000, 1), ("x", 7)):
            rounds.clear()
            peer.say(*(m.RestoreHistoryRequest(number, 1, (m.HistoryEntry("user", text),)) for number in range(1, 25)))
            answered = [(await peer.get(m.ErrorResponse)).request_id for _ in range(24)]
            assert answered == list(range(1, 25))
            assert (max(rounds), sum(rounds)) == (most, 24)


async def test_whoever_has_written_meanwhile_comes_before_the_rest_of_ones_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_connection, "_SHARE_SECONDS", 0.0)
    order: list[int] = []
    taken = ServerConnection._take

    async with served(tmp_path) as server, server.peer() as peer, server.peer() as other:

        def take(connection: ServerConnection, found: list[bytes]) -> None:
            taken(connection, found)
            if not order:
                other.say(m.HealthRequest(9))
            order.append(connection.id)

        monkeypatch.setattr(ServerConnection, "_take", take)
        large = (m.HistoryEntry("user", "x" * 5000),)
        peer.say(*(m.RestoreHistoryRequest(number, 1, large) for number in range(1, 4)))
        for _ in range(3):
            await peer.get(m.ErrorResponse)
        await other.get(m.HealthResponse)
        assert order == [1, 2, 1, 1]


LONG = "{{a}}" * 5000


@pytest.mark.parametrize("changed", [False, True], ids=["a new agent", "a change"])
@pytest.mark.parametrize(
    ("short", "long"),
    [
        (m.GenerateParams(), m.GenerateParams(template=LONG)),
        (
            m.ClassifyIntentLLMParams(intents_ids="a,b"),
            m.ClassifyIntentLLMParams(intents_ids="a,b", system_prompt=LONG),
        ),
    ],
    ids=["Generate", "ClassifyIntentLLM"],
)
async def test_templates_that_take_long_to_read_keep_nobody_else_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: m.NodeParams, long: m.NodeParams, changed: bool
) -> None:
    """They are read in a thread, which waits here until somebody else was answered."""
    loop, answered = asyncio.get_running_loop(), threading.Event()

    def slowly(source: str) -> Template:
        if source != LONG:
            return read_template(source)
        with suppress(RuntimeError):
            # On the loop itself it would wait for ever.
            assert asyncio.get_running_loop() is not loop, "templates are read on the loop"
        assert answered.wait(10)
        return read_template(source)

    monkeypatch.setattr(generate, "read_template", slowly)
    monkeypatch.setattr(classify_llm, "read_template", slowly)
    async with served(tmp_path) as server, server.peer() as peer, server.peer() as other:
        node = m.NodeDescription("say", short if changed else long)
        peer.say(m.ConfigureSessionRequest(1), m.CreateAgentRequest(2, m.GraphDescription((node,), "say"), "any"))
        await peer.get(m.ConfigureSessionResponse)
        if changed:
            agent = (await peer.get(m.CreateAgentResponse)).agent_id
            peer.say(m.ChangeAgentParamRequest(3, agent, "say", long))
        await other.ask(m.HealthRequest(3), m.HealthResponse)
        answered.set()
        await peer.get(m.Ack if changed else m.CreateAgentResponse)


def slow_then_long(text: str) -> m.GraphDescription:
    """A model thinks for a moment, and then comes a long answer."""
    think = m.ToolCallParams(tools=(m.ToolDefinition("no"),), no_tool_called_exit="say")
    say = m.CannedResponseParams(inline_strings=(text,))
    return m.GraphDescription((m.NodeDescription("think", think), m.NodeDescription("say", say)), "think")


async def many_turns(server: Served, peer: Peer, count: int, **options: bool) -> ServerConnection:
    """Begin turns that all answer at the same moment, and read nothing."""
    agents = []
    for _ in range(count):
        asked = m.CreateAgentRequest(2, slow_then_long("y" * 200_000), "mock-slow", **options)
        agents.append((await peer.ask(asked, m.CreateAgentResponse)).agent_id)
    transport = peer.writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    peer.say(*(m.SendMessageRequest(number, agent, "x") for number, agent in enumerate(agents, 3)))
    (connection,) = server.server.connections
    await until(lambda: connection.behind)
    return connection


async def test_of_many_turns_of_a_client_that_does_not_read_the_last_words_wait_too(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.peer() as peer:
        connection = await many_turns(server, peer, 60)
        # All others have come to their answer, too.
        await until(lambda: len(connection._waiters or ()) == len(server.server.turns))
        assert connection.transport.get_write_buffer_size() < HIGH_WATER + 300_000
        assert len(server.server.turns) > 20
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        ends = [await end_of_turn(peer) for _ in range(60)]
        assert {end.status for end in ends} == {m.TurnStatus.SUCCESS}


async def test_turns_that_are_cancelled_while_nobody_reads_end_without_diagnostics(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.peer() as peer:
        connection = await many_turns(server, peer, 60, enable_diagnostics=True)
        waiting = list(server.server.turns)
        for turn in waiting:
            turn.cancel()
        await until(lambda: not server.server.turns)
        assert connection.behind
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        ends = [await end_of_turn(peer) for _ in range(60)]
        cancelled = [end.debug_info for end in ends if end.status == m.TurnStatus.CANCELLED]
        assert cancelled == [NO_DIAGNOSTICS] * len(waiting)
        assert all('"nodes"' in end.debug_info for end in ends if end.status == m.TurnStatus.SUCCESS)


async def test_of_those_who_wait_for_a_client_a_few_go_on_at_a_time_and_none_once_it_is_behind_again() -> None:
    server: Any = SimpleNamespace(loop=asyncio.get_running_loop(), reading_again=lambda connection: None)
    connection = ServerConnection(server)
    transport: Any = SimpleNamespace(resume_reading=lambda: None)
    connection.transport = transport
    connection.behind = True
    waiting = [connection.waiter() for _ in range(100)]
    waiting[0].cancel()
    connection.resume_writing()
    for gone_on in (17, 33, 49):
        assert sum(each.done() for each in waiting) == gone_on
        await asyncio.sleep(0)
    connection.behind = True
    await asyncio.sleep(0)
    assert sum(each.done() for each in waiting) == 65
    connection.resume_writing()
    await asyncio.wait(waiting[1:])


async def end_of_turn(peer: Peer) -> m.TurnComplete:
    while not isinstance(found := await peer.hear(), m.TurnComplete):
        assert found is not None
    return found


class Behind:
    """A transport whose client is behind."""

    def __init__(self) -> None:
        self.untaken = 1_000_000
        self.cut_at = 0.0

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.untaken += len(data)

    def abort(self) -> None:
        self.cut_at = asyncio.get_running_loop().time()


def test_a_client_is_cut_off_when_it_has_taken_nothing_for_a_while_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve_connection, "_untaken", lambda transport: transport.untaken)

    async def read_slowly() -> None:
        transport: Any = Behind()
        server: Any = SimpleNamespace(
            loop=asyncio.get_running_loop(), settings=ServerSettings(), flush_soon=lambda _: None
        )
        connection = ServerConnection(server)
        connection.transport = transport
        connection.pause_writing()
        # A system tells of a whole step at once, of what was read at 2 KiB per second: hardly ever, and that is enough.
        for _ in range(20):
            await asyncio.sleep(200)
            # What the client is sent meanwhile does not look as if it had taken less.
            connection.send(bytes(500 * 1024))
            transport.untaken -= 400 * 1024
        # Also the smallest step counts.
        await asyncio.sleep(290)
        transport.untaken -= 1
        last = server.loop.time()
        assert not transport.cut_at
        await asyncio.sleep(1000)
        assert last + 300 <= transport.cut_at <= last + 330

    run(read_slowly())


async def test_a_client_that_reads_slowly_is_waited_for_and_one_that_stops_is_not(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with served(tmp_path, stall_seconds=STALL) as server:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.setblocking(False)
            await loop.sock_connect(slow, (server.host, server.port))
            await loop.sock_recv(slow, 4096)
            (connection,) = server.server.connections
            agent = connection.id << AGENT_BITS | 1
            for each in (
                m.ConfigureSessionRequest(1),
                m.CreateAgentRequest(2, echo(), "any"),
                m.SendMessageRequest(3, agent, " ".join(["x"] * 300_000)),
            ):
                await loop.sock_sendall(slow, frame(encode(each)))
                await loop.sock_recv(slow, 100)
            while not connection.behind:  # noqa: ASYNC110  # it belongs to the server, which has no event for us
                await asyncio.sleep(0.005)
            until = loop.time() + 4 * STALL
            while loop.time() < until:
                assert await loop.sock_recv(slow, 2000)
                await asyncio.sleep(STALL / 40)
            # All the time it was behind, and its turn went on.
            assert connection.behind
            assert server.server.connections == {connection}
            async with asyncio.timeout(PATIENCE_SECONDS):
                while server.server.connections:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
