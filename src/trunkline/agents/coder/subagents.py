"""Sub-agents: the same work on a task of its own, with an empty context. People see their tools, not their words.

They stand under the same approvals: their calls are requested like the agent's own, under ids of their own. What they
use counts as the turn's. Users may define some: their instructions, their tools, their model. Each has an id, by which
it can be asked to go on with what it knows, also in a session that was resumed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.compaction import Compaction
from trunkline.agents.coder.history import History, NoJournal
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.subagents_kept import KeptAgents
from trunkline.agents.coder.turn_runner import TurnRunner
from trunkline.agents.turn_stream import TurnStream
from trunkline.base.nearest import suggestion
from trunkline.core.events import Event, Failed, Notice, Progress
from trunkline.core.faults import Fault
from trunkline.core.usage import Usage
from trunkline.models.messages import Text
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.spawn import SpawnTool, SubAgentOutcome, Task
from trunkline.tools.threads import in_thread
from trunkline.tools.tool import Report
from trunkline.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from trunkline.agents.coder.extending.own_agents import OwnAgent, OwnAgents

#: Bytes of a sub-agent's id: there are a few in a session.
_ID_BYTES = 4


class _Work(NamedTuple):
    """A task, and who does it."""

    task: Task
    id: str
    agent: str
    """Which of the user's own; empty: none."""
    client: ModelClient
    calls: Calls
    history: History


class Subagents:
    """Runs tasks for the turn under way.

    Args:
        client: makes a client that knows nothing of the conversation, for instructions and the id of a model, either of
            which may be empty, and for some tools.
        calls: makes the calls of a sub-agent: the beginning of their ids, and its name.
        own: the agents that were defined; asked for when the first message comes.
    """

    def __init__(
        self,
        client: Callable[[str, str, Toolbox], ModelClient],
        calls: Callable[[str, str], Calls],
        compaction: Compaction,
        kept: KeptAgents,
        own: Callable[[], OwnAgents],
    ) -> None:
        self._client = client
        self._calls = calls
        self._compaction = compaction
        self._kept = kept
        self._make_own = own
        self._own: OwnAgents | None = None
        self._listed: Mapping[str, OwnAgent] = {}
        self._count = 0
        self.tell: TurnStream | None = None
        """The turn under way."""

    @property
    def listed(self) -> Mapping[str, OwnAgent]:
        """The agents that are defined, by name, as they were found last."""
        return self._listed

    async def refresh(self, offer: Callable[[SpawnTool], None]) -> list[str]:
        """Look which agents are defined, and offer them; gives what people should be told."""
        own = self._own = self._own or self._make_own()
        found = await in_thread(lambda stop: own.look())
        if found is not self._listed and (found or self._listed):
            offer(SpawnTool(self, {agent.name: agent.description for agent in found.values()}))
        self._listed = found
        notes, own.notes = own.notes, []
        return notes

    async def spawn(self, tasks: Sequence[Task], report: Report) -> Sequence[SubAgentOutcome]:
        resumed = [task.resume for task in tasks if task.resume]
        if len(set(resumed)) < len(resumed):
            raise ToolInputError("A sub-agent can go on with one task at a time: two tasks have the same `resume`.")
        wanted = [await self._prepared(task) for task in tasks]
        async with asyncio.TaskGroup() as group:
            working = [
                group.create_task(self._work(work, report), name=f"sub-agent {work.task.name}") for work in wanted
            ]
        return [work.result() for work in working]

    async def _prepared(self, task: Task) -> _Work:
        """Who does it, and what that one knows.

        Raises:
            ToolInputError: there is nobody of that name or id.
        """
        name, known, agent_id = task.agent, [], os.urandom(_ID_BYTES).hex()
        if task.resume:
            before = self._kept.find(task.resume)
            if before is None:
                there = ", ".join(f"`{each}`" for each in self._kept.ids) or "none"
                raise ToolInputError(f"There is no sub-agent `{task.resume}` that could go on. There are: {there}.")
            name, known, agent_id = name or before.agent, list(before.messages), before.id
        agent = self._listed.get(name)
        if name and agent is None:
            there = ", ".join(f"`{each}`" for each in self._listed) or "none"
            raise ToolInputError(f"There is no agent `{name}`.{suggestion(name, self._listed)} There are: {there}.")
        self._count += 1
        calls = self._calls(f"sub{self._count}.", task.name)
        if agent is not None:
            agent.narrow(calls.toolbox)
        try:
            instructions = "" if agent is None else await in_thread(lambda stop: agent.instructions())
            client = self._client(instructions, agent.model if agent is not None else "", calls.toolbox)
        except Fault as fault:
            raise ToolInputError(f"The agent `{name}` cannot be used: {fault}") from None
        history = History(NoJournal(known))
        history.user((Text(task.prompt),))
        return _Work(task, agent_id, name, client, calls, history)

    async def _work(self, work: _Work, report: Report) -> SubAgentOutcome:
        tell, task = self.tell, work.task
        if tell is None:
            raise RuntimeError("a sub-agent works for a turn")
        aside = _Aside(tell, task.name)
        compaction = self._compaction.alike(work.client, work.history, work.calls.specs)
        runner = TurnRunner(work.client, work.history, work.calls, compaction, aloud=False)
        report(f"{task.name}{f' (agent {work.agent})' if work.agent else ''}: at work")
        try:
            ended = await runner.run(aside)
        finally:
            # A stop does not make it cheaper.
            used = aside.usage or Usage()
            tell.usage = (tell.usage or Usage()) + used
            self._kept.keep(work.id, task.name, work.agent, work.history)
        ok = ended.outcome == "success"
        rounds = "1 round" if runner.rounds == 1 else f"{runner.rounds} rounds"
        report(f"{task.name}: {'done' if ok else 'failed'} after {rounds} of tools")
        text = runner.answer if ok else aside.failure or "It ended badly."
        return SubAgentOutcome(task.name, ok, text, runner.rounds, used, work.id)


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
