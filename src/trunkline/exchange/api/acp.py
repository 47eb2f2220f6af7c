"""`/acp`: the sessions of the exchange for ACP's clients elsewhere, over HTTP and WebSockets, with a token.

    POST /acp?agent=NAME

`wires.acp.remote` says how they talk. What a client may do is what its role allows. The session goes on when it leaves.
"""

from __future__ import annotations

from trunkline import __version__
from trunkline.base.lines import LineOutput
from trunkline.core.faults import Fault
from trunkline.exchange.api.auth import person, token_in
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.keeper import ExchangeKeeper
from trunkline.exchange.people import LOCAL, Person
from trunkline.wires.acp.codec import RpcMessage
from trunkline.wires.acp.remote import AcpRemote, RemoteRefused, Scope, Visitor
from trunkline.wires.acp.serve import AcpServer

#: How a client's joining and leaving are noted.
WIRE = "acp"


def acp_application(exchange: Exchange) -> AcpRemote:
    """The ASGI application, behind the gate that finds out who is there (`auth.KnownPeople`)."""

    def visitor(scope: Scope) -> Visitor:
        who = person(scope)
        if who is None:
            raise RemoteRefused(401, "Send your token as `Authorization: Bearer TOKEN`.")
        token = None if who is LOCAL else token_in(scope)
        return AcpVisitor(who.name, lambda: token is None or exchange.people.of_token(token) is not None, who, token)

    def connect(who: Visitor, agent: str | None, output: LineOutput) -> ExchangeEnd:
        return ExchangeEnd(exchange, who, agent, output)

    return AcpRemote(connect, visitor)


class AcpVisitor(Visitor):
    """Somebody with a token, or on the socket of this machine."""

    person: Person
    token: str | None


class ExchangeEnd:
    """The agent's end of one connection."""

    def __init__(self, exchange: Exchange, who: Visitor, agent: str | None, output: LineOutput) -> None:
        if not isinstance(who, AcpVisitor):
            raise TypeError("a visitor of the exchange has a role")
        if agent is not None:
            # Now, and not when the first session is opened.
            exchange.directory.find(agent)
        self._keeper = ExchangeKeeper(exchange, who.person, WIRE, who.token)
        self._server = AcpServer(self._keeper, output, agent=agent, version=__version__)

    def take(self, message: RpcMessage) -> None:
        self._server.take(message)

    async def knows(self, session_id: str) -> bool:
        try:
            return await self._keeper.known(session_id) is not None
        except Fault:
            return False

    async def close(self) -> None:
        await self._server.close()
