"""What a node does for the others: with its own sessions, what their clients ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import shapes
from trunkline.base.attach_chat import AttachedCommand
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import UserMessage
from trunkline.core.faults import RemoteProtocolError, StoreUnavailable, UnknownCall
from trunkline.exchange.cluster.cluster import Cluster
from trunkline.exchange.cluster.draining import Draining
from trunkline.exchange.cluster.places import MOVED
from trunkline.exchange.commanding import carry_out
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.switchboard import Switchboard


class NodeAnswers:
    """The requests of other nodes, by what they want."""

    def __init__(self, board: Switchboard, cluster: Cluster, draining: Draining) -> None:
        self._board = board
        self._cluster = cluster
        self._draining = draining

    async def __call__(self, request: Mapping[str, Any]) -> Any:
        """Do it.

        Raises:
            Fault: it was not done.
        """
        match request["do"]:
            case "open":
                live = await self._board.open(
                    request["agent"],
                    request["session"],
                    workspace=request["workspace"],
                    by=request["by"],
                    passing=request["passing"],
                    here=True,
                )
                return self._ours(live).id
            case "wake":
                live = await self._live(request)
                return {"capabilities": shapes.encode(live.session.capabilities)}
            case "submit":
                message = shapes.decode(UserMessage, request["message"])
                return await self._board.submit(await self._live(request), message, request["when"])
            case "submit_once":
                live = await self._live(request)
                return await live.submit_once(shapes.decode(UserMessage, request["message"]))
            case "command":
                command = shapes.decode(AttachedCommand, request["command"])
                return await carry_out(self._board, await self._live(request), command, request["by"])
            case "decide":
                return await self._decide(request)
            case "remove":
                return await self._board.remove(request["session"])
            case "drain":
                return await self._draining.begin()
        raise RemoteProtocolError(f"There is no request `{request['do']}`.")

    async def _live(self, request: Mapping[str, Any]) -> LiveSession:
        return self._ours(await self._board.find(request["session"], here=True))

    def _ours(self, live: LiveSession) -> LiveSession:
        if live.is_followed:
            # It has moved since the other node looked.
            raise StoreUnavailable(MOVED, retryable=True, hint="Try again soon.")
        return live

    async def _decide(self, request: Mapping[str, Any]) -> None:
        approval = await self._board.approvals.get(request["approval"])
        if approval is None:
            raise UnknownCall("There is no such approval.")
        command = shapes.decode(AttachedCommand, request["command"])
        live = self._ours(await self._board.find(approval.session, here=True))
        decision = Approve(command.scope, command.narrow) if command.approve else Deny(command.reason)
        await live.decide(approval, decision, request["by"])
