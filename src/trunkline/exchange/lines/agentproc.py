"""A bridge's process behind `trunkline agentproc serve AGENT --attach`: one turn of a shared session."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from trunkline.base import shapes
from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.core.events import UserMessage
from trunkline.core.faults import BudgetExceeded, ConfigError, Fault, StoreUnavailable
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.connection import LocalConnection
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import LOCAL
from trunkline.wires.agentproc import codec, serve_files
from trunkline.wires.agentproc.messages import DIALECTS, TurnRequest
from trunkline.wires.agentproc.serve import AgentProcServer
from trunkline.wires.agentproc.serve_dialects import dialect_writer


async def serve(
    exchange: Exchange, live: LiveSession, header: AttachHeader, connection: LocalConnection
) -> AttachEnding:
    """Serve until the turn has ended. A turn whose bridge leaves goes on."""
    turn = _turn(header)
    dialect = next((each for each in DIALECTS if each == header.dialect), DIALECTS[0])
    named = turn.session_id if codec.is_session_id(turn.session_id) else codec.portable_id(live.id)
    fetching = serve_files.brought(
        turn,
        images=live.session.capabilities.images is not False,
        private=header.private_urls,
        enabled=header.fetch,
    )
    over: list[AgentProcServer] = []

    def removed() -> None:
        """The session is at work here no more: nothing of the turn would be heard."""
        for server in over:
            server.lose(_moved())

    staying = exchange.switchboard.attached(live.id, removed, by=turn.from_user or LOCAL.name, wire="agentproc")
    async with staying as live, fetching as message:
        writer = dialect_writer(dialect, named, streaming=turn.streaming)
        server = AgentProcServer(live.session, connection, writer, client=LOCAL.name)
        over.append(server)
        if live.session.is_closing:
            raise _moved()
        try:
            server.greet()
            server.expected(await _submitted(exchange, live, server.expect(message)))
            # Only now: a bridge that gives up names no turn.
            hearing = asyncio.get_running_loop().create_task(_hear(server, connection), name="hear the bridge")
            try:
                return AttachEnding(await server.over)
            finally:
                hearing.cancel()
                await asyncio.wait({hearing})
        finally:
            live.session.detach(server)


async def _submitted(exchange: Exchange, live: LiveSession, message: UserMessage) -> int:
    """Taken in: it is answered even if this process does not live to do so. Gives its turn."""
    try:
        return await exchange.switchboard.submit(live, message)
    except BudgetExceeded as fault:
        # Refused in its turn, which is how a bridge hears of it.
        return live.session.submit(message, fault)


def _turn(header: AttachHeader) -> TurnRequest:
    try:
        return shapes.decode(TurnRequest, dict(header.turn or {}))
    except ValueError as error:
        raise ConfigError(f"The turn cannot be understood: {error}.") from None


async def _hear(server: AgentProcServer, connection: LocalConnection) -> None:
    """What the bridge answers, until it is gone; then nothing is said to it any more."""
    try:
        async with aclosing(connection.read()) as pieces:
            async for data in pieces:
                server.feed(data)
    except (ConnectionError, Fault) as error:
        connection.let_go(error)
    else:
        server.end()
        connection.let_go(ConnectionResetError("the bridge has disconnected"))


def _moved() -> StoreUnavailable:
    return StoreUnavailable("The session was removed, or is moving to another node.", retryable=True)
