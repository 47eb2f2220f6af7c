"""A graph agent: one conversation that walks over nodes.

    agent = GraphAgent(graph, host, default_model="smollm2-135m")
    await agent.open()
    async for event in agent.turn("hello"):
        ...                                   # Delta, Whole, Sound, Event; Ended last
    agent.close()

A turn begins at the start node and follows the exit that each node takes, until one leads nowhere. Whatever happens in
it, it ends with exactly one `Ended`; only closing the iterator ends it without. Nothing runs between turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any, Self

from trunkline.agents.graph.diagnostics import Diary, NoDiary
from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes import Node
from trunkline.agents.graph.params import check_unchanged, check_values
from trunkline.agents.graph.plan import make_nodes
from trunkline.agents.graph.turn import Ended, Turn, TurnEvent
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import GraphDescription, NodeParams, TurnStatus

logger = logging.getLogger(__name__)

#: Nodes that one turn may run, unless the agent says otherwise.
MAX_STEPS = 64
#: The most that an agent may say.
MAX_MAX_STEPS = 10_000
#: Steps after which others have their turn: nodes that wait for nothing would keep the loop to themselves.
_SHARE = 16

_NO_DIARY = NoDiary()


class TurnEvents:
    """The events of one turn, to be read to the end or closed."""

    __slots__ = ("_events", "_over")

    def __init__(self, events: AsyncGenerator[TurnEvent, None], over: Callable[[], None]) -> None:
        self._events = events
        self._over = over

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[TurnEvent]:
        return self._events.__anext__()

    async def aclose(self) -> None:
        """Stop the turn. Idempotent."""
        await self._events.aclose()
        # A generator that was never begun does nothing when it is closed.
        self._over()


class GraphAgent:
    """One agent of a session.

    `max_steps` 0 is the default. `diagnostics`: each turn ends with a `debug_info`.

    Raises:
        TryllError: 3003, 3007 or 3008, the graph cannot work.
    """

    def __init__(
        self,
        graph: GraphDescription,
        host: Host,
        *,
        default_model: str = "",
        diagnostics: bool = False,
        max_steps: int = 0,
    ) -> None:
        self.graph = graph
        self.dialog = Dialog()
        self._host = host
        self._default_model = default_model
        self._diagnostics = diagnostics
        self._max_steps = min(max_steps, MAX_MAX_STEPS) or MAX_STEPS
        self._nodes: dict[str, Node[Any]] = make_nodes(graph, default_model)
        self._changing = False
        self._running: Turn | None = None
        self._cancelled = False
        # The task that runs the turn, how often it was cancelled before that, and the same task while it waits.
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._waiting: asyncio.Task[Any] | None = None

    @property
    def busy(self) -> bool:
        """Whether a turn or a change is under way."""
        return self._running is not None or self._changing

    def models(self) -> tuple[str, ...]:
        """The language models that the graph names, each once."""
        needed = (getattr(node.params, "model_name", "") or self._default_model for node in self._nodes.values()
                  if hasattr(node.params, "model_name"))  # fmt: skip
        return tuple(dict.fromkeys(needed))

    async def open(self) -> None:
        """Get storages, then models.

        Raises:
            TryllError: 3009, 3010, 3011, 3003, 3007, or as the host says.
        """
        for node in sorted(self._nodes.values(), key=_needs_models):
            await node.open(self._host, self._default_model)

    def close(self) -> None:
        """Cancel a turn, and let go of everything. Idempotent."""
        self.cancel()
        for node in self._nodes.values():
            node.close()

    # Turns.

    def turn(self, text: str) -> TurnEvents:
        """Answer a message. Closing the iterator stops the turn, without an `Ended`.

        Raises:
            TryllError: 3004, a turn is under way, or a change.
        """
        if self.busy:
            raise TryllError(3004)
        turn = self._running = Turn(text)
        self._cancelled = False
        return TurnEvents(self._run(turn), lambda: self._over(turn))

    def cancel(self) -> None:
        """End the turn, if there is one, with `Ended(CANCELLED)`. What was said until then stays said."""
        if self._running is None or self._cancelled:
            return
        self._cancelled = True
        if self._waiting is not None and self._waiting is not asyncio.current_task():
            self._waiting.cancel()

    def _over(self, turn: Turn) -> None:
        """The turn is at its end. The next one may have begun already."""
        if self._running is turn:
            self._running = self._waiting = self._task = None
            if answer := turn.answer:
                self.dialog.add(turn.text, answer)

    async def _run(self, turn: Turn) -> AsyncGenerator[TurnEvent, None]:
        # The walk and its end are one generator: each more would cost every event of every turn.
        diary = Diary(turn) if self._diagnostics else _NO_DIARY
        error: TryllError | None = None
        steps = 0
        name = "" if self._cancelled else self.graph.start_node
        try:
            while name:
                self._see_to_steps(steps, name)
                steps += 1
                node = self._nodes[name]
                turn.data = diary.node(name, node.type)
                exit_name = ""
                self._wait()
                if node.streams:
                    async with aclosing(node.stream(turn, self.dialog)) as events:
                        async for event in events:
                            self._waiting = None
                            diary.told(event)
                            yield event
                            if self._cancelled:
                                break
                            self._wait()
                        else:
                            exit_name = "default"
                else:
                    exit_name = await node.run(turn, self.dialog)
                self._waiting = None
                diary.left(exit_name)
                for event in turn.events:
                    diary.told(event)
                    yield event
                    if self._cancelled:
                        break
                turn.events.clear()
                name = "" if self._cancelled else node.exits[exit_name]
                if not steps % _SHARE:
                    self._wait()
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            # Ours, or that of whoever runs the task: theirs goes on.
            if not self._cancelled or self._task is None or self._task.uncancel() > self._cancelling:
                raise
        except TryllError as failure:
            error = failure
        except Exception as crash:
            logger.exception("a turn failed")
            error = TryllError(4001, f"The turn failed ({type(crash).__name__}).")
        finally:
            cancelled = self._cancelled
            self._over(turn)
        yield _ended(turn, diary, None if cancelled else error, cancelled=cancelled)

    def _see_to_steps(self, steps: int, name: str) -> None:
        if steps == self._max_steps:
            raise TryllError(4003, f"The turn ran {steps} nodes and was not at its end; the next one was `{name}`.")

    def _wait(self) -> None:
        """From here on the turn may wait for something, which `cancel` ends. The task may be another for each event."""
        task = asyncio.current_task()
        if task is not self._task and task is not None:
            self._task, self._cancelling = task, task.cancelling()
        self._waiting = task

    # Between turns.

    async def change(self, node_name: str, params: NodeParams) -> None:
        """Give a node other parameters: with all of them from the next turn on, or with none.

        Raises:
            TryllError: 3004, a turn is under way; 3005, no such node; 3006, something that cannot change has; 3007, a
                value does not work; 3009 to 3011, a storage does not.
        """
        if self.busy:
            raise TryllError(3004)
        node = self._nodes.get(node_name)
        if node is None:
            raise TryllError(3005, f"The graph has no node `{node_name}`.")
        if type(params) is not type(node.params):
            raise TryllError(
                3007, f"The node `{node_name}` is a {node.type} node: these are parameters of another kind."
            )
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

    def restore(self, exchanges: Iterable[tuple[str, str]]) -> None:
        """Go on from another conversation.

        Raises:
            TryllError: 3004, a turn is under way.
        """
        if self.busy:
            raise TryllError(3004)
        self.dialog.restore(exchanges)


def _ended(turn: Turn, diary: Diary | NoDiary, error: TryllError | None, *, cancelled: bool) -> Ended:
    status = TurnStatus.CANCELLED if cancelled else TurnStatus.SUCCESS if error is None else TurnStatus.ERROR
    debug = diary.finished(status, turn.tokens, error)
    code = error.code if error is not None else 0
    return Ended(status, debug, turn.tokens, turn.prompt_tokens, turn.cached_tokens, code)


def _needs_models(node: Node[Any]) -> int:
    return hasattr(node.params, "model_name") + hasattr(node.params, "tts_model_name")
