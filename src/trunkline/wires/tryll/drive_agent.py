"""An agent on a Tryll server, for whoever drives it. It outlives its connection: the next one has it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from trunkline.wires.tryll.drive_connection import Connection, Progress
from trunkline.wires.tryll.drive_events import INTENT_CLASSIFIED, TOOL_CALL, IntentClassified, Listeners, ToolCall
from trunkline.wires.tryll.drive_turn import Reply, Turn
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    Ack,
    CancelTurnRequest,
    ChangeAgentParamRequest,
    CreateAgentRequest,
    CreateAgentResponse,
    DestroyAgentRequest,
    HistoryEntry,
    NodeEvent,
    NodeParams,
    RestoreHistoryRequest,
    SaveHistoryRequest,
    SaveHistoryResponse,
)

#: How long a server may be silent in a turn: a small machine reads a long prompt.
TURN_SECONDS = 120.0
#: How long anything may take that needs no model.
REQUEST_SECONDS = 30.0
#: What is remembered of a conversation for a server that has lost it, in characters: more than small models read.
REMEMBERED = 256 * 1024

_TOO_LARGE = 5003


class Owner(Protocol):
    """What an agent needs of the client that made it."""

    async def live(self) -> Connection:
        """The connection; a new one, where everything is there again, if it was lost."""

    def release(self, made: RemoteAgent) -> None:
        """The agent is not to be made again."""


class RemoteAgent:
    """An agent of a session. Made by `Tryll.create_agent`."""

    def __init__(self, owner: Owner, request: CreateAgentRequest) -> None:
        self.id = 0
        """What the server calls it; another number after each loss of the connection."""
        self._owner = owner
        self._request = request
        self._home: Connection | None = None
        self._free = asyncio.Lock()
        self._current: Reply | None = None
        self._listeners = Listeners()
        self._remembered: list[HistoryEntry] = []
        self._destroyed = False

    # Turns.

    async def ask(self, text: str, *, timeout: float = TURN_SECONDS, check: bool = True) -> Turn:
        """Send a message and wait for the end of its turn. Cancelling this stops the turn, if the server can.

        Args:
            timeout: the longest silence, in seconds.
            check: whether a turn that failed raises; otherwise its `status` says so.

        Raises:
            TurnFailed: the turn failed.
            TryllError: 1002, the connection was lost (the message is not sent again); 1003, the server was silent;
                3004, the turn before does not end; 5003, the message is too long; or what the server says.
        """
        async with self.stream(text, timeout=timeout, check=check) as reply:
            return await reply.result()

    def stream(self, text: str, *, timeout: float = TURN_SECONDS, check: bool = True) -> Reply:
        """The same, piece by piece. A second message waits for the end of the first one's turn."""
        return Reply(self, text, timeout, check=check)

    async def cancel(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """Stop the turn that is running, if one is: it ends as cancelled.

        Raises:
            TryllError: 5002, the server cannot do that; or as `ask`.
        """
        if self._current is None or self._home is None or not self._current.request_id:
            return
        self._need(self._home, "cancel", "stop a turn")
        await self._home.request(CancelTurnRequest(agent_id=self.id), Ack, timeout)

    # Between turns.

    async def change(self, node: str, params: NodeParams, *, timeout: float = REQUEST_SECONDS) -> None:
        """Give a node other parameters: all of them, of the same kind.

        Raises:
            TryllError: 3004 to 3011, it cannot be done; or as `ask`.
        """
        link = await self._live()
        await link.request(ChangeAgentParamRequest(0, self.id, node, params), Ack, timeout)
        graph = self._request.graph
        if graph is not None:
            nodes = tuple(each.replace(params=params) if each.name == node else each for each in graph.nodes)
            self._request = self._request.replace(graph=graph.replace(nodes=nodes))

    async def change_some(self, node: str, *, timeout: float = REQUEST_SECONDS, **changes: Any) -> None:
        """Give a node other values for some parameters. Raises as `change`; 3005 also without asking."""
        graph = self._request.graph
        for each in graph.nodes if graph is not None else ():
            if each.name == node and each.params is not None:
                await self.change(node, each.params.replace(**changes), timeout=timeout)
                return
        raise TryllError(3005, f"The graph has no node `{node}`.")

    async def history(self, *, timeout: float = REQUEST_SECONDS) -> tuple[HistoryEntry, ...]:
        """The conversation so far. Raises as `cancel`."""
        link = await self._live()
        self._need(link, "history", "give a conversation")
        parts = await link.request(SaveHistoryRequest(agent_id=self.id), SaveHistoryResponse, timeout)
        return tuple(entry for part in parts for entry in part.entries)

    async def restore(self, entries: Sequence[HistoryEntry], *, timeout: float = REQUEST_SECONDS) -> None:
        """Go on from another conversation. Raises as `cancel`."""
        link = await self._live()
        self._need(link, "history", "take a conversation")
        await self._restore(link, tuple(entries), append=False, timeout=timeout)
        self._remembered = list(entries)

    async def destroy(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """End it, and a turn of it. From now on no listener hears anything. Idempotent."""
        if self._destroyed:
            return
        self._destroyed = True
        self._listeners.clear()
        self._owner.release(self)
        if self._home is None or self._home.lost is not None:
            return
        self._home.listeners.pop(self.id, None)
        try:
            await self._home.request(DestroyAgentRequest(agent_id=self.id), Ack, timeout)
        except TryllError:
            # With its connection it is gone, too.
            if self._home.lost is None:
                raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.destroy()

    # Listeners: they are called from the event loop, in between frames, and must not wait for anything.

    def on_tool_call(self, listener: Callable[[ToolCall], object] | None) -> None:
        """Hear which tools the model wants. One that is badly formed comes as a `NodeEvent`."""
        self._listeners.listen(TOOL_CALL, listener)

    def on_intent_classified(self, listener: Callable[[IntentClassified], object] | None) -> None:
        """Hear what the user wants."""
        self._listeners.listen(INTENT_CLASSIFIED, listener)

    def on(self, event_type: str, listener: Callable[[Any], object] | None) -> None:
        """Hear the events of a type."""
        self._listeners.listen(event_type, listener)

    def on_node_event(self, listener: Callable[[NodeEvent], object] | None) -> None:
        """Hear all events whose type nobody else listens to."""
        self._listeners.listen_to_others(listener)

    # For the client.

    async def create(self, link: Connection, timeout: float, progress: Progress | None = None) -> None:
        """Make it, or make it again, with what is remembered of its conversation if the server takes that.

        Raises:
            TryllError: it cannot be made.
        """
        made = (await link.request(self._request, CreateAgentResponse, timeout, progress))[-1]
        self.id, self._home = made.agent_id, link
        link.listeners[self.id] = self._listeners.tell
        if self._remembered and "history" in link.extensions:
            await self._restore(link, tuple(self._remembered), append=False, timeout=REQUEST_SECONDS)

    # For its replies.

    async def begin(self, reply: Reply, text: str, timeout: float) -> None:
        """See `Conduct`."""
        try:
            async with asyncio.timeout(timeout):
                await self._free.acquire()
        except TimeoutError:
            raise TryllError(3004, f"The turn before did not end within {timeout:g} s.") from None
        self._current = reply
        try:
            link = await self._live()
            await link.begin_turn(self.id, reply, text)
        except BaseException:
            self.ended(reply)
            raise

    def give_up(self, reply: Reply) -> None:
        """See `Conduct`."""
        if self._current is reply:
            self.stop()

    def ended(self, reply: Reply) -> None:
        """See `Conduct`."""
        if self._current is not reply:
            return
        self._current = None
        if self._home is not None:
            self._home.forget_turn(self.id, reply)
        self._free.release()
        if reply.text:
            self.remember(reply.message, reply.text)

    def stop(self) -> None:
        """Tell the server to stop the turn, if it can, and do not wait for it."""
        if self._home is not None and "cancel" in self._home.extensions:
            self._home.write(CancelTurnRequest(agent_id=self.id))

    def remember(self, message: str, answer: str) -> None:
        """Keep what was said, for a server that has lost it."""
        self._remembered += (HistoryEntry("user", message), HistoryEntry("assistant", answer))
        characters = sum(len(entry.text) for entry in self._remembered)
        while characters > REMEMBERED and self._remembered:
            characters -= len(self._remembered.pop(0).text)

    async def _live(self) -> Connection:
        if self._destroyed:
            raise TryllError(3002)
        return await self._owner.live()

    async def _restore(
        self, link: Connection, entries: tuple[HistoryEntry, ...], *, append: bool, timeout: float
    ) -> None:
        try:
            await link.request(RestoreHistoryRequest(0, self.id, entries, append), Ack, timeout)
        except TryllError as error:
            if error.code != _TOO_LARGE or len(entries) < 2:
                raise
            half = len(entries) // 2
            # Not between a message and its answer.
            half += half % 2
            await self._restore(link, entries[:half], append=append, timeout=timeout)
            await self._restore(link, entries[half:], append=True, timeout=timeout)

    @staticmethod
    def _need(link: Connection, extension: str, what: str) -> None:
        if extension not in link.extensions:
            raise TryllError(5002, f"This server cannot {what}.")
