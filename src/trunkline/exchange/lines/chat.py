"""People at a terminal behind `trunkline chat --attach`: they see the events of a shared session as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.base.attach_chat import MAX_LINE, AttachedCommand, AttachedReply, Standing
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.core import records
from trunkline.core.events import Envelope
from trunkline.core.faults import Fault, RemoteProtocolError
from trunkline.exchange.commanding import carry_out
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.connection import LocalConnection, joined
from trunkline.exchange.lines.lagging import LaggingSink
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import LOCAL
from trunkline.exchange.switchboard import Switchboard


async def serve(
    exchange: Exchange, live: LiveSession, header: AttachHeader, connection: LocalConnection
) -> AttachEnding:
    """Serve until the client closes its end. The session, and the turn that is under way, go on."""
    async with joined(exchange, live, connection, "chat") as live:
        server = ChatServer(exchange.switchboard, live, connection)
        sink = LaggingSink(live.session, connection, server)
        try:
            async with aclosing(connection.read()) as pieces:
                async for data in pieces:
                    await server.feed(data)
        finally:
            await sink.leave()
    return AttachEnding(0)


class ChatServer:
    """One client."""

    def __init__(self, board: Switchboard, live: LiveSession, connection: LocalConnection) -> None:
        self._board = board
        self._live = live
        self._session = live.session
        self._connection = connection
        self._lines = LineSplitter(MAX_LINE)
        self._session.flush()
        self._say(shapes.encode(_standing(live)))

    async def feed(self, data: bytes) -> None:
        """Bytes from the client."""
        for line in self._lines.feed(data):
            try:
                reply = AttachedReply(await carry_out(self._board, self._live, _command(line), LOCAL.name))
            except Fault as fault:
                reply = AttachedReply(error=self._session.clean(str(fault)), kind=fault.kind)
            self._say(shapes.encode(reply))

    def _say(self, value: Any) -> None:
        self._connection.write(jsontext.dumps(value) + b"\n")
        self._connection.flush()

    # What happens.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session."""
        for envelope in envelopes:
            self._connection.write(records.encode(envelope) + b"\n")
        self._connection.flush()

    def missed(self, count: int) -> None:
        """So many events were left out: say so, and where the session is now."""
        self._session.flush()
        self._say(shapes.encode(_standing(self._live).replace(missed=count)))


def _standing(live: LiveSession) -> Standing:
    session = live.session
    state = {**session.state.snapshot(), "journal": [], "history": []}
    begun = session.state.open_turns.get(session.turn)
    return Standing(
        session.id,
        live.agent,
        session.mode,
        session.allowed,
        state,
        session.turn if begun else 0,
        shapes.encode(begun.message) if begun else None,
        tuple(map(shapes.encode, session.waiting)),
    )


def _command(line: bytes | OverlongLine) -> AttachedCommand:
    if isinstance(line, OverlongLine):
        raise RemoteProtocolError(f"A command of {line.size} bytes is too long.")
    try:
        return shapes.decode(AttachedCommand, jsontext.loads(line))
    except ValueError as error:
        raise RemoteProtocolError(f"The command cannot be understood: {error}.") from None
