"""The client over WebSockets: it sees what it sees over TCP."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.support.loop import until
from tests.support.tryll_served import Peer, Served, echo, served
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, encode, frame
from trunkline.wires.tryll.drive import Reconnect, Tryll
from trunkline.wires.tryll.drive.address import ServerAddress
from trunkline.wires.tryll.drive.websocket import open_streams
from trunkline.wires.tryll.drive_sync import SyncTryll
from trunkline.wires.tryll.errors import TryllError

QUICK = Reconnect(attempts=3, first_seconds=0.01)


@pytest.fixture
async def address(server: Served) -> str:
    _, port = await server.server.listen_websocket("127.0.0.1", 0)
    return f"ws://127.0.0.1:{port}"


@asynccontextmanager
async def strange(react: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[str]:
    """The address of somebody else's server, which does this."""
    async with serve(react, "127.0.0.1", 0) as server:
        (sock,) = server.sockets
        yield f"ws://127.0.0.1:{sock.getsockname()[1]}"


async def test_everything_that_works_over_tcp_works(server: Served, address: str) -> None:
    async with Tryll(address) as tryll:
        assert (tryll.host, f"ws://127.0.0.1:{tryll.port}") == ("127.0.0.1", address)
        agent = await tryll.create_agent(echo(), default_model="any")
        long = "word " * 15_000
        assert (await agent.ask(long)).text == f"You said: {long}"
        assert (await tryll.health()).sessions == 1
        with pytest.raises(TryllError) as refused:
            await tryll.load_model("none such")
        assert refused.value.code == 6002
    await until(lambda: not server.server.connections)


async def test_code_that_waits_can_use_it_too(address: str) -> None:
    def wait() -> str:
        with SyncTryll(address) as tryll:
            return tryll.create_agent(echo(), default_model="any").ask("hi").text

    assert await asyncio.to_thread(wait) == "You said: hi"


async def test_a_connection_that_breaks_is_made_again_with_its_session(server: Served, address: str) -> None:
    async with Tryll(address, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(echo(), default_model="any")
        assert (await agent.ask("one")).text == "You said: one"
        (connection,) = server.server.connections
        connection.cut()
        await until(lambda: not tryll.session_id)
        assert (await agent.ask("two")).text == "You said: two"


async def test_what_is_no_server_is_told(server: Served, address: str, unused_tcp_port: int) -> None:
    for where, why in (
        (f"ws://127.0.0.1:{unused_tcp_port}", "Connection refused"),
        (f"ws://127.0.0.1:{server.port}", "it does not speak WebSocket there"),
    ):
        with pytest.raises(TryllError, match=f"The server at {where} cannot be reached: {why}") as refused:
            await Tryll(where, reconnect=None).connect()
        assert refused.value.code == 1001


async def test_a_server_that_refuses_is_quoted() -> None:
    async def never(_: ServerConnection) -> None:
        raise AssertionError

    async with serve(
        never, "127.0.0.1", 0, process_request=lambda socket, _: socket.respond(403, "not \x1byou\n")
    ) as made:
        (sock,) = made.sockets
        with pytest.raises(TryllError, match=r"HTTP 403: not \\x1byou"):
            await Tryll(f"ws://127.0.0.1:{sock.getsockname()[1]}", reconnect=None).connect()


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    async def silent(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with strange(silent) as where:
        with pytest.raises(TryllError) as late:
            await Tryll(where, reconnect=None, timeout=0.2).connect()
        assert late.value.code == 1003


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (encode(m.SessionReady(3)), 5004),
        (b"nonsense", 5001),
        ('{"type":"SessionReady"}', 5001),
        (bytes(MAX_FRAME + 1), 5003),
        (None, 1002),
    ],
)  # fmt: skip
async def test_a_server_that_breaks_the_protocol_is_given_up(said: bytes | str | None, code: int) -> None:
    async def wrong(socket: ServerConnection) -> None:
        if said is not None:
            await socket.send(said)
            await socket.wait_closed()

    async with strange(wrong) as where:
        with pytest.raises(TryllError) as given_up:
            await Tryll(where, reconnect=None).connect()
        assert given_up.value.code == code


async def test_frames_may_be_written_in_any_pieces(address: str) -> None:
    reader, writer = await open_streams(ServerAddress.parse(address))
    peer = Peer(reader, writer)
    await peer.get(m.SessionReady)
    for byte in frame(encode(m.HealthRequest(5))) + struct.pack("<I", 0) + frame(encode(m.HealthRequest(6))):
        writer.write(bytes((byte,)))
    assert (await peer.get(m.HealthResponse)).request_id == 5
    assert (await peer.get(m.ErrorResponse)).code == 5001
    assert (await peer.get(m.HealthResponse)).request_id == 6
    peer.say(m.HealthRequest(7), m.HealthRequest(8))
    assert [(await peer.get(m.HealthResponse)).request_id for _ in range(2)] == [7, 8]
    writer.write_eof()
    assert await peer.hear() is None
    writer.close()


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("127.0.0.1:9100", ServerAddress("127.0.0.1", 9100)),
        ("[::1]:9100", ServerAddress("::1", 9100)),
        ("ws://localhost:9101", ServerAddress("localhost", 9101, "ws")),
        ("ws://localhost:9101/any?format=json", ServerAddress("localhost", 9101, "ws")),
        ("wss://game.example", ServerAddress("game.example", 443, "wss")),
        ("ws://[::1]:9101", ServerAddress("::1", 9101, "ws")),
    ],
)  # fmt: skip
def test_an_address_is_a_host_and_a_port_or_that_of_a_websocket(text: str, parsed: ServerAddress) -> None:
    assert ServerAddress.parse(text) == parsed
    assert ServerAddress.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "localhost:0",
        ":9100",
        "host:99999",
        "http://h:1",
        "ws://",
        "ws://h:0",
        "ws://h:x",
        "ws://a@h:1",
    ],
)
def test_nothing_else_is(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # of whatever the parser says
        ServerAddress.parse(text)


async def test_over_tls_it_is_wss(tmp_path: Path) -> None:
    from tests.wires.tryll.drive.test_drive_served import _vouched_for

    context, trusting = await _vouched_for(tmp_path)
    async with served(tmp_path) as server:
        _, port = await server.server.listen_websocket("127.0.0.1", 0, context)
        async with Tryll(f"wss://127.0.0.1:{port}", ssl=trusting) as tryll:
            agent = await tryll.create_agent(echo(), default_model="any")
            assert (await agent.ask("hush " * 20_000)).text.startswith("You said: hush")
        # Nobody vouches for it elsewhere.
        with pytest.raises(TryllError) as refused:
            await Tryll(f"wss://127.0.0.1:{port}", reconnect=None).connect()
        assert refused.value.code == 1001
