"""An agent on a Tryll server, for whoever drives it. It outlives its connection: the next one has it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from trunkline.wires.tryll.drive.connection import ClientConnection, Progress
from trunkline.wires.tryll.drive.events import INTENT_CLASSIFIED, TOOL_CALL, IntentClassified, Listeners, ToolCall, call
from trunkline.wires.tryll.drive.memory import Memory, in_parts, is_known
from trunkline.wires.tryll.drive.needs import check_known
from trunkline.wires.tryll.drive.replay import PASSING, REQUEST_SECONDS
from trunkline.wires.tryll.drive.turn import Reply, Turn
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.fitting import joined
from trunkline.wires.tryll.messages import (
    Ack,
    CancelTurnRequest,
    ChangeAgentParamRequest,
    CreateAgentRequest,
    CreateAgentResponse,
    DestroyAgentRequest,
    HistoryEntry,
    NodeDescription,
    NodeEvent,
    NodeParams,
    RestoreHistoryRequest,
    SaveHistoryRequest,
    SaveHistoryResponse,
)

logger = logging.getLogger(__name__)

#: How long a server may be silent in a turn: a small machine reads a long prompt.
TURN_SECONDS = 120.0


class AgentOwner(Protocol):
    """What an agent needs of the client that made it."""

    async def live(self) -> ClientConnection:
        """The connection; a new one, where everything is there again, if it was lost."""

    def changed(self, agent: RemoteAgent, node: str, params: NodeParams) -> None:
        """A node of the agent has other parameters."""

    def release(self, made: RemoteAgent) -> None:
        """The agent is not to be made again."""


class RemoteAgent:
    """An agent of a session. Made by `Tryll.create_agent`."""

    def __init__(self, owner: AgentOwner, request: CreateAgentRequest) -> None:
        self.id = 0
        """What the server calls it; another number after each loss of the connection."""
        self._owner = owner
        self._request = request
        self._graph = request.graph
        """With all changes."""
        self._home: ClientConnection | None = None
        self._failure: TryllError | None = None
        """Why it could not be made again."""
        self._free = asyncio.Lock()
        self._current: Reply | None = None
        self._unasked: set[Reply] = set()
        """Turns that the server begins."""
        self._quiet = asyncio.Event()
        """Whether there are none."""
        self._quiet.set()
        self._listeners = Listeners()
        self._forgotten: Callable[[TryllError], object] | None = None
        self._memory = Memory()
        self._looking: asyncio.Task[None] | None = None
        self._destroyed = False

    # Turns.

    async def ask(self, text: str, *, timeout: float = TURN_SECONDS, check: bool = True) -> Turn:
        """Send a message and wait for the end of its turn. Cancelling this stops the turn, if the server can.

        It waits for the end of a turn that is going on, also of one that the server has begun.

        Args:
            timeout: the longest silence, in seconds.
            check: whether a turn that failed raises; otherwise its `status` says so.

        Raises:
            TurnFailed: the turn failed.
            TryllError: 1002, the connection was lost (the message is not sent again); 1003, the server was silent;
                3004, the turn before does not end, or the server begins one at the same moment; 5003, the message is
                too long; what the server says; or why the agent could not be made again after a lost connection.
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
        asked = self._current is not None and self._current.request_id
        if self._home is None or not (asked or self._unasked):
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
        check_known((NodeDescription(node, params),), link.extensions)
        await link.request(ChangeAgentParamRequest(0, self.id, node, params), Ack, timeout)
        self._owner.changed(self, node, params)
        if self._graph is not None:
            nodes = tuple(each.replace(params=params) if each.name == node else each for each in self._graph.nodes)
            self._graph = self._graph.replace(nodes=nodes)

    async def change_some(self, node: str, *, timeout: float = REQUEST_SECONDS, **changes: Any) -> None:
        """Give a node other values for some parameters. Raises as `change`; 3005 also without asking."""
        for each in self._graph.nodes if self._graph is not None else ():
            if each.name == node and each.params is not None:
                await self.change(node, each.params.replace(**changes), timeout=timeout)
                return
        raise TryllError(3005, f"The graph has no node `{node}`.")

    async def history(self, *, timeout: float = REQUEST_SECONDS) -> tuple[HistoryEntry, ...]:
        """The conversation so far. Raises as `cancel`."""
        link = await self._live()
        self._need(link, "history", "give a conversation")
        return await self._history(link, timeout)

    async def restore(self, entries: Sequence[HistoryEntry], *, timeout: float = REQUEST_SECONDS) -> None:
        """Go on from another conversation. Raises as `cancel`; 5003 if an exchange of it does not fit into a frame."""
        link = await self._live()
        self._need(link, "history", "take a conversation")
        entries = joined(entries)
        await self._restore(link, entries, timeout)
        self._memory.begin(entries)

    async def answer_kept(self, reply: Reply, *, timeout: float = REQUEST_SECONDS) -> str:
        """What the server keeps of an answer, once its turn is over: of one that was spoken and stopped, what was said.

        If that cannot be told in time, it is what came. "" if nothing is kept.
        """
        try:
            async with asyncio.timeout(timeout):
                await reply.wait_over()
                if self._looking is not None:
                    await asyncio.wait([self._looking])
        except TimeoutError:
            return reply.text
        return reply.text if is_known(reply) else self._memory.answer_to(reply.message)

    async def destroy(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """End it, and a turn of it. From now on no listener hears anything. Idempotent."""
        if self._destroyed:
            return
        self._destroyed = True
        self._listeners.clear()
        self._forgotten = None
        if self._looking is not None:
            self._looking.cancel()
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

    def on_forgotten(self, listener: Callable[[TryllError], object] | None) -> None:
        """Hear why a server did not take the conversation back after a lost connection: the agent began anew."""
        self._forgotten = listener

    # For the client.

    async def create(self, link: ClientConnection, timeout: float, progress: Progress | None = None) -> None:
        """Make it, or make it again, with what is remembered of its conversation if the server takes that.

        Raises:
            TryllError: it cannot be made.
        """
        if self._graph is not None:
            check_known(self._graph.nodes, link.extensions)
        made = (await link.request(self._request, CreateAgentResponse, timeout, progress))[-1]
        if self._destroyed:
            link.write(DestroyAgentRequest(agent_id=made.agent_id))
            return
        self.id, self._home, self._failure = made.agent_id, link, None
        link.listeners[self.id] = self._listeners.tell
        if entries := self._memory.entries:
            try:
                self._need(link, "history", "take a conversation")
                await self._restore(link, entries, REQUEST_SECONDS)
            except TryllError as error:
                if link.lost is not None or error.code in PASSING:
                    raise
                self._forget(error)

    async def change_again(self, link: ClientConnection, node: str, params: NodeParams) -> None:
        """Give a node the parameters that it had. Raises as `create`."""
        if self._home is link:
            await link.request(ChangeAgentParamRequest(0, self.id, node, params), Ack, REQUEST_SECONDS)

    def fail(self, error: TryllError) -> None:
        """It cannot be made again: whatever is asked of it raises that, until there is another connection."""
        logger.warning("an agent could not be made again: %s", error)
        self._failure = error
        if self._home is not None and self._home.lost is None:
            self._home.listeners.pop(self.id, None)
            self._home.write(DestroyAgentRequest(agent_id=self.id))
        self._home = None

    def at(self, link: ClientConnection) -> int:
        """Its number on a connection.

        Raises:
            TryllError: it could not be made there.
        """
        if self._home is not link:
            error = self._failure or TryllError(1002)
            raise TryllError(error.code, error.message)
        return self.id

    def _forget(self, error: TryllError) -> None:
        logger.warning("a server did not take a conversation back: %s", error)
        self._memory.begin(())
        if self._forgotten is not None:
            call(self._forgotten, error, "a forgotten conversation")

    # For its replies.

    async def begin(self, reply: Reply, text: str, timeout: float) -> None:
        """See `Conduct`."""
        try:
            async with asyncio.timeout(timeout):
                await self._take()
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
            self._home.replies.forget(self.id, reply)
        self._free.release()
        self._remember(reply)

    async def _take(self) -> None:
        """Wait until no turn is going on, and nobody else begins one."""
        await self._free.acquire()
        try:
            while self._unasked:
                await self._quiet.wait()
        except BaseException:
            self._free.release()
            raise

    # For turns that the server begins.

    def expect(self, reply: Reply) -> None:
        """The server begins a turn: ours wait for its end."""
        self._unasked.add(reply)
        self._quiet.clear()

    def heard_out(self, reply: Reply) -> None:
        """It is over."""
        self._unasked.discard(reply)
        if not self._unasked:
            self._quiet.set()
        self._remember(reply)

    def stop(self) -> None:
        """Tell the server to stop the turn, if it can, and do not wait for it."""
        if self._home is not None and "cancel" in self._home.extensions:
            self._home.write(CancelTurnRequest(agent_id=self.id))

    # What was said.

    def _remember(self, reply: Reply) -> None:
        self._memory.add(reply.message, reply.text)
        link = self._home
        if reply.status is None or link is None or link.lost is not None or "history" not in link.extensions:
            return
        if not self._destroyed and not is_known(reply) and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._look(link), name="tryll: history")

    async def _look(self, link: ClientConnection) -> None:
        """Remember what the server does."""
        while True:
            version = self._memory.version
            try:
                entries = await self._history(link, REQUEST_SECONDS)
            except TryllError as error:
                logger.info("what the server has of a conversation could not be seen: %s", error)
                return
            if version == self._memory.version:
                self._memory.begin(entries)
                return
            # More was said meanwhile.

    async def _history(self, link: ClientConnection, timeout: float) -> tuple[HistoryEntry, ...]:
        parts = await link.request(SaveHistoryRequest(agent_id=self.id), SaveHistoryResponse, timeout)
        return joined(entry for part in parts for entry in part.entries)

    async def _live(self) -> ClientConnection:
        if self._destroyed:
            raise TryllError(3002)
        link = await self._owner.live()
        self.at(link)
        return link

    async def _restore(self, link: ClientConnection, entries: tuple[HistoryEntry, ...], timeout: float) -> None:
        for number, part in enumerate(in_parts(entries)):
            await link.request(RestoreHistoryRequest(0, self.id, part, number > 0), Ack, timeout)

    @staticmethod
    def _need(link: ClientConnection, extension: str, what: str) -> None:
        if extension not in link.extensions:
            raise TryllError(5002, f"This server cannot {what}.")
