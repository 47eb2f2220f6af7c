"""One round of tool calls: all announced together, each decided by itself, run, and answered in the order of the calls.

Tools that change nothing run side by side; the others one after the other, as they are approved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from trunkline.agents.coder.words import UNSEEN
from trunkline.agents.telling import Telling
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Decisions
from trunkline.core.events import Progress, ToolCancelled, ToolFinished, ToolRequested, ToolStarted
from trunkline.core.turns import DENIED
from trunkline.models.messages import Image, ToolResult, ToolUse
from trunkline.models.model import ToolSpec
from trunkline.tools.tool import Tool
from trunkline.tools.toolbox import Toolbox


class Calls:
    """Runs the calls of one conversation's model."""

    def __init__(self, toolbox: Toolbox, decisions: Decisions, prefix: str = "", who: str = "") -> None:
        self.toolbox = toolbox
        self._decisions = decisions
        self._prefix = prefix
        """What makes a sub-agent's call ids differ from its parent's."""
        self._who = who
        """The sub-agent that asks; people see it with each request."""
        self._one_at_a_time = asyncio.Lock()
        self._on_early: Callable[[ToolResult], None] = lambda result: None
        self._alone = True
        self._described: list[Tool | None] = []
        self._specs: tuple[ToolSpec, ...] = ()
        self.done: dict[str, ToolResult] = {}
        """The results of the round under way, by call: what a stop must not lose."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as the model sees them: the same objects as long as they are the same tools."""
        tools = [self.toolbox.find(name) for name in self.toolbox.names]
        if tools != self._described:
            self._described = tools
            self._specs = tuple(ToolSpec(*spec) for spec in self.toolbox.specs())
        return self._specs

    async def run(
        self, calls: Sequence[ToolUse], tell: Telling, on_early: Callable[[ToolResult], None]
    ) -> list[ToolResult]:
        """See all of them through; gives one result each, in order.

        `on_early` hears at once what a crash would make the result of each: of its start, and, where there are
        several, of its end.
        """
        self.done = {}
        self._on_early = on_early
        self._alone = len(calls) == 1
        announced = []
        for call in calls:
            announced.append((call, await self._announce(call, tell)))
        async with asyncio.TaskGroup() as group:
            for call, decision in announced:
                group.create_task(self._see_through(call, decision, tell), name=f"tool call {call.id}")
        return [self.done[call.id] for call in calls]

    async def _announce(self, call: ToolUse, tell: Telling) -> asyncio.Future[Decision] | None:
        """Ask for a decision; not on a call that cannot work, which nobody needs to think about."""
        if call.input is None or self.toolbox.find(call.name) is None:
            return None
        call_id = self._prefix + call.id
        decision = self._decisions.ask(call_id)
        box = self.toolbox
        outside = box.outside(call.name, call.input)
        described = box.describe(call.name, call.input) + (" (outside the workspace)" if outside else "")
        description = f"{self._who}: {described}" if self._who else described
        await tell.say(ToolRequested(call_id, call.name, box.category(call.name), call.input, description, outside))
        return decision

    async def _see_through(self, call: ToolUse, decision: asyncio.Future[Decision] | None, tell: Telling) -> None:
        if decision is not None:
            verdict = await decision
            if not isinstance(verdict, Approve):
                reason = (verdict.reason if isinstance(verdict, Deny) else "") or DENIED
                self._finish(ToolResult(call.id, f"Tool denied: {reason}", is_error=True))
                await tell.say(ToolCancelled(self._prefix + call.id, reason))
                return
        if self.toolbox.concurrent(call.name):
            await self._use(call, tell)
        else:
            async with self._one_at_a_time:
                await self._use(call, tell)

    async def _use(self, call: ToolUse, tell: Telling) -> None:
        call_id = self._prefix + call.id
        self._on_early(ToolResult(call.id, UNSEEN, is_error=True))
        await tell.say(ToolStarted(call_id, call.name))
        output = await self.toolbox.run(call.name, call.input, lambda text: tell.say_now(Progress(text, call_id)))
        pictures = tuple(Image(media_type, data) for media_type, data in output.images)
        self._finish(ToolResult(call.id, output.text, output.status == "error", pictures))
        shown = output.text if output.shown is None else output.shown
        await tell.say(ToolFinished(call_id, call.name, output.status, shown, output.output_type, output.metadata))

    def _finish(self, result: ToolResult) -> None:
        self.done[result.id] = result
        if not self._alone:
            self._on_early(result)
