"""Sub-agents: the same work on a task of its own, with an empty context. People see their tools, not their words.

They stand under the same approvals: their calls are requested like the agent's own, under ids of their own. What they
use counts as the turn's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NoReturn

from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.compaction import Compaction
from trunkline.agents.coder.history import History, NoJournal
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.turn_runner import TurnRunner
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.events import Event, Failed, Notice, Progress
from trunkline.core.usage import Usage
from trunkline.models.messages import Text
from trunkline.tools.spawn import SubAgentOutcome, Task
from trunkline.tools.tool import Report


class Subagents:
    """Runs tasks for the turn under way."""

    def __init__(
        self, client: Callable[[], ModelClient], calls: Callable[[str, str], Calls], compaction: Compaction
    ) -> None:
        self._client = client
        """Makes a client that knows nothing of the conversation."""
        self._calls = calls
        """Makes the calls of a sub-agent: the beginning of their ids, and its name."""
        self._compaction = compaction
        self._count = 0
        self.tell: TurnStream | None = None
        """The turn under way."""

    async def spawn(self, tasks: Sequence[Task], report: Report) -> Sequence[SubAgentOutcome]:
        async with asyncio.TaskGroup() as group:
            working = [group.create_task(self._work(task), name=f"sub-agent {task.name}") for task in tasks]
        return [work.result() for work in working]

    async def _work(self, task: Task) -> SubAgentOutcome:
        tell = self.tell
        if tell is None:
            raise RuntimeError("a sub-agent works for a turn")
        self._count += 1
        aside = _Aside(tell, task.name)
        calls = self._calls(f"sub{self._count}.", task.name)
        history = History(NoJournal())
        history.user((Text(task.prompt),))
        client = self._client()
        work = TurnRunner(client, history, calls, self._compaction.alike(client, history, calls.specs), aloud=False)
        try:
            ended = await work.run(aside)
        finally:
            # A stop does not make it cheaper.
            used = aside.usage or Usage()
            tell.usage = (tell.usage or Usage()) + used
        ok = ended.outcome == "success"
        return SubAgentOutcome(
            task.name, ok, work.answer if ok else aside.failure or "It ended badly.", work.rounds, used
        )


class _Aside(TurnStream):
    """What a sub-agent says reaches the same ears, except that its failure is not the turn's."""

    def __init__(self, aloud: TurnStream, name: str) -> None:
        super().__init__(_nothing)
        self._aloud = aloud
        self._name = name
        self.failure = ""

    async def say(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.failure = event.message
        else:
            await self._aloud.say(self._named(event))

    def say_now(self, event: Event) -> None:
        self._aloud.say_now(self._named(event))

    def _named(self, event: Event) -> Event:
        if isinstance(event, Notice | Progress):
            return event.replace(message=f"{self._name}: {event.message}")
        return event


async def _nothing(tell: TurnStream) -> NoReturn:
    raise RuntimeError("a sub-agent's words are told by the turn's own `TurnStream`")
