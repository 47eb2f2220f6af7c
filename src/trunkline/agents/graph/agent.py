"""A graph agent: one conversation that walks over nodes.

    agent = GraphAgent(graph, host, default_model="smollm2-135m")
    await agent.open()
    ending = await agent.turn("hello", listener)     # which is told the answer, as it comes
    agent.close()

A turn begins at the start node and follows the exit that each node takes, until one leads nowhere. Whatever happens in
it, it has an ending; only whoever cancels the task that awaits it gets none. Nothing runs between turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from contextlib import aclosing
from typing import Any

from trunkline.agents.graph.diagnostics import Diary, by_kind
from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.loop_budget import of_loop
from trunkline.agents.graph.nodes import Node
from trunkline.agents.graph.params import check_unchanged, check_values, models_of
from trunkline.agents.graph.plan import make_nodes
from trunkline.agents.graph.turn import ApproveCall, Delta, GraphTurn, TurnEvent
from trunkline.core.faults import AgentBusy, BadParameter, Fault, NodeFailed, TooManySteps, UnknownNode
from trunkline.core.graph import queueing
from trunkline.core.graph.description import GraphDescription, NodeParams
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.core.graph.turns import DescribeError, Ending, Listener

logger = logging.getLogger(__name__)

#: Nodes that one turn may run, unless the agent says otherwise.
MAX_STEPS = 64
#: The most that an agent may say.
MAX_MAX_STEPS = 10_000


class GraphAgent:
    """One agent of a session.

    `max_steps` 0 is the default. `diagnostics`: each turn ends with a `debug_info`, and `describe` gives what it tells
    of a fault.

    Raises:
        GraphError: the graph cannot work.
    """

    def __init__(
        self,
        graph: GraphDescription,
        host: Host,
        *,
        default_model: str = "",
        diagnostics: bool = False,
        max_steps: int = 0,
        describe: DescribeError = by_kind,
    ) -> None:
        self.graph = graph
        self.dialog = Dialog()
        self._host = host
        self._default_model = default_model
        self._diagnostics = diagnostics
        self._describe = describe
        self._max_steps = min(max_steps, MAX_MAX_STEPS) or MAX_STEPS
        self._nodes: dict[str, Node[Any]] = make_nodes(graph, default_model)
        self._changing = False
        self._running: GraphTurn | None = None
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None
        """That runs the turn, once it has begun."""

    @property
    def busy(self) -> bool:
        """Whether a turn or a change is under way."""
        return self._running is not None or self._changing

    def models(self) -> tuple[str, ...]:
        """The language models that the graph names, each once."""
        needed = (name for node in self._nodes.values() for name in models_of(node.params, self._default_model))
        return tuple(dict.fromkeys(needed))

    async def open(self) -> None:
        """Get storages, then models.

        Raises:
            GraphError, StorageError, ModelError: it cannot work, or as the host says.
        """
        for node in sorted(self._nodes.values(), key=_needs_models):
            await node.open(self._host, self._default_model)

    def close(self) -> None:
        """Cancel a turn, and let go of everything. Idempotent."""
        self.cancel()
        for node in self._nodes.values():
            node.close()

    # Turns.

    def turn(self, text: str, listener: Listener, approve: ApproveCall | None = None) -> Coroutine[Any, Any, Ending]:
        """Begin to answer a message; it goes on as what is returned is awaited, and the listener is told.

        `approve` is asked about each call of a tool. One that it denies was not called.

        Whoever cancels the task that awaits it stops the turn without an ending.

        Raises:
            AgentBusy: a turn is under way, or a change.
        """
        if self.busy:
            raise AgentBusy("The agent is in a turn.")
        turn = self._running = GraphTurn(text, approve)
        self._cancelled = False
        return self._run(turn, listener)

    def cancel(self) -> None:
        """End the turn, if there is one, as cancelled. What was said until then stays said."""
        if self._running is None or self._cancelled:
            return
        self._cancelled = True
        # A listener may do it, in the middle of what it is told.
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self, turn: GraphTurn, listener: Listener) -> Ending:
        task = self._task = asyncio.current_task()
        cancelling = task.cancelling() if task is not None else 0
        diary = Diary(turn, self._describe) if self._diagnostics else None
        error: Fault | None = None
        account = queueing.WaitAccount()
        outer = queueing.account.set(account)
        try:
            try:
                if not self._cancelled:
                    await self._walk(turn, diary, listener)
            except Fault as failure:
                error = failure
            except Exception as crash:
                logger.exception("a turn failed")
                error = NodeFailed(f"The turn failed ({type(crash).__name__}).")
            if listener.full and not self._cancelled:
                # What is said at its end can be long, too, and is not even put together before that.
                await listener.room()
        except asyncio.CancelledError:
            # Ours, or that of whoever runs the task: theirs goes on.
            if not self._cancelled or task is None or task.uncancel() > cancelling:
                raise
        finally:
            queueing.account.reset(outer)
            self._running = self._task = None
            if turn.events:
                turn.take_back()
            if answer := turn.answer:
                self.dialog.add(turn.text, answer)
        return _ending(turn, diary, error, account.seconds, cancelled=self._cancelled)

    async def _walk(self, turn: GraphTurn, diary: Diary | None, listener: Listener) -> None:
        steps = 0
        name = self.graph.start_node
        while name:
            if steps == self._max_steps:
                problem = f"The turn ran {steps} nodes and was not at its end; the next one was `{name}`."
                raise TooManySteps(problem)
            node = self._nodes[name]
            if (steps or node.heavy) and (budget := of_loop()).used_up():
                await budget.wait()
            steps += 1
            if diary is not None:
                turn.data = diary.node(name, node.type)
            run = self._stream(node, turn, diary, listener) if node.streams else node.run(turn, self.dialog)
            exit_name = await run
            if diary is not None:
                diary.left(exit_name)
            while turn.events:
                # Before each: while this turn was at its work, others have filled the reader.
                if listener.full:
                    await listener.room()
                    if self._cancelled:
                        return
                _tell(turn.events.pop(0), diary, listener)
                if self._cancelled:
                    break
            if self._cancelled:
                return
            name = node.exits[exit_name]

    async def _stream(self, node: Node[Any], turn: GraphTurn, diary: Diary | None, listener: Listener) -> str:
        """Run a node that tells what happens; gives the name of the exit, or "" if it was cut off."""
        lead = turn.lead
        async with aclosing(node.stream(turn, self.dialog)) as events:
            async for event in events:
                if listener.full:
                    await listener.room()
                    if self._cancelled:
                        return ""
                if isinstance(event, Delta):
                    turn.pieces.append(event.text)
                    if lead:
                        event, lead = Delta(lead + event.text), ""
                _tell(event, diary, listener)
                if listener.full:
                    # The node does not go on for a reader that is behind.
                    await listener.room()
                if self._cancelled:
                    return ""
        return "default"

    # Between turns.

    async def change(self, node_name: str, params: NodeParams) -> None:
        """Give a node other parameters: with all of them from the next turn on, or with none.

        Raises:
            AgentBusy: a turn is under way.
            UnknownNode: there is no such node.
            FixedParameter: something that cannot change has.
            BadParameter: a value does not work.
            StorageError: a storage does not.
        """
        if self.busy:
            raise AgentBusy("The agent is in a turn.")
        node = self._nodes.get(node_name)
        if node is None:
            raise UnknownNode(f"The graph has no node `{node_name}`.")
        if type(params) is not type(node.params):
            raise BadParameter(f"The node `{node_name}` is a {node.type} node: these are parameters of another kind.")
        check_unchanged(node_name, node.params, params)
        check_values(node_name, params)
        self._changing = True
        try:
            await node.change(params, self._host)
        finally:
            self._changing = False

    def history(self) -> list[tuple[str, str]]:
        """What was said: each message that was answered, and its answer."""
        return self.dialog.exchanges()

    def history_size(self) -> int:
        """The bytes that the history takes."""
        return self.dialog.size()

    def forget(self, size: int) -> None:
        """Drop the oldest exchanges until the history takes no more than this."""
        self.dialog.forget(size)

    def restore(self, exchanges: Iterable[tuple[str, str]], append: bool = False) -> None:
        """Go on from another conversation, or as if this had been said, too.

        Raises:
            AgentBusy: a turn is under way.
        """
        if self.busy:
            raise AgentBusy("The agent is in a turn.")
        if append:
            for user, assistant in exchanges:
                self.dialog.add(user, assistant)
        else:
            self.dialog.restore(exchanges)
        self._host.start_over()


def _tell(event: TurnEvent, diary: Diary | None, listener: Listener) -> None:
    if diary is not None:
        diary.told(event)
    event.tell(listener)


def _ending(turn: GraphTurn, diary: Diary | None, error: Fault | None, waited: float, *, cancelled: bool) -> Ending:
    status = TurnStatus.CANCELLED if cancelled else TurnStatus.SUCCESS if error is None else TurnStatus.ERROR
    debug = "" if diary is None else diary.finished(status, turn.tokens, None if cancelled else error)
    fault = None if cancelled else error
    counts = (turn.tokens, turn.prompt_tokens, turn.cached_tokens)
    return Ending(status, debug, *counts, fault, waited, turn.by_model())


def _needs_models(node: Node[Any]) -> int:
    return hasattr(node.params, "model_name") + hasattr(node.params, "tts_model_name")
