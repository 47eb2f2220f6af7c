"""One round of tool calls: all announced together, each decided by itself, run, and answered in the order of the calls.

Tools that change nothing run side by side; the others one after the other, as they are approved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from trunkline.agents.coder.call_hooks import AskedCall, CallHooks, beside, marked, strictest, unhooked
from trunkline.agents.coder.exposure import OTHERS_WORDS, Exposure
from trunkline.agents.coder.words import TOOL_DENIED, UNSEEN
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Decisions
from trunkline.core.events import Progress, ToolCancelled, ToolFinished, ToolRequested, ToolStarted
from trunkline.core.guarded import beyond
from trunkline.core.turns import DENIED
from trunkline.models.messages import Image, ToolResultBlock, ToolUse
from trunkline.models.model import ToolSpec
from trunkline.tools.arguments import BadArguments
from trunkline.tools.tool import CALL_ID, Interrupted, Tool, ToolOutput
from trunkline.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from trunkline.agents.coder.undo.recorder import ChangeRecorder

#: What is said to a model whose call was approved for another place than the one that it would reach now.
MOVED = (
    "Not done: this path leads to another place than when the call was approved, because a link or a directory has "
    "changed since. Call the tool again if that is intended; it will need a new approval."
)


class _Asked(NamedTuple):
    """A call that somebody decides about, as it was read."""

    call: AskedCall
    place: str
    """Where it led when it was judged."""
    outside: bool
    """Whether that was outside the workspace."""
    decision: asyncio.Future[Decision]


class Calls:
    """Runs the calls of one conversation's model."""

    def __init__(
        self,
        toolbox: Toolbox,
        decisions: Decisions,
        prefix: str = "",
        who: str = "",
        unasked: Callable[[ToolRequested], bool] = lambda request: False,
        hooks: CallHooks | None = None,
        changes: ChangeRecorder | None = None,
        exposure: Exposure | None = None,
        on_used: Callable[[str], None] = lambda place: None,
    ) -> None:
        """`changes`: what records what the calls change. `exposure`: what knows what the turn has read. `on_used` hears
        of each place that a call has read or changed."""
        self.toolbox = toolbox
        self._changes = changes
        self._exposure = exposure
        self._on_used = on_used
        self._unasked = unasked
        """Whether what the turn has called says that nobody needs to be asked about a call."""
        self._decisions = decisions
        self._hooks = hooks or unhooked()
        self._prefix = prefix
        """What makes a sub-agent's call ids differ from its parent's."""
        self._who = who
        """The sub-agent that asks; people see it with each request."""
        self._one_at_a_time = asyncio.Lock()
        self._on_early: Callable[[ToolResultBlock], None] = lambda result: None
        self._alone = True
        self._described: list[Tool | None] = []
        self._specs: tuple[ToolSpec, ...] = ()
        self.done: dict[str, ToolResultBlock] = {}
        """The results of the round under way, by call: what a stop must not lose."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as the model sees them: the same objects as long as they are the same tools."""
        tools = [self.toolbox.find(name) for name in self.toolbox.offered]
        if tools != self._described:
            self._described = tools
            self._specs = tuple(ToolSpec(*spec) for spec in self.toolbox.specs())
        return self._specs

    async def run(
        self,
        calls: Sequence[ToolUse],
        tell: TurnStream,
        on_early: Callable[[ToolResultBlock], None],
        done: Mapping[str, ToolResultBlock] | None = None,
    ) -> list[ToolResultBlock]:
        """See all of them through; gives one result each, in order.

        Args:
            on_early: hears at once what a crash would make the result of each: of its start, and, where there are
                several, of its end.
            done: the results of those that an earlier process saw through.
        """
        self.done = dict(done or {})
        self._on_early = on_early
        self._alone = len(calls) == 1
        announced = []
        for call in calls:
            if call.id in self.done:
                continue
            announced.append((call, await self._announce(call, tell)))
        async with asyncio.TaskGroup() as group:
            for call, asked in announced:
                group.create_task(self._see_through(call, asked, tell), name=f"tool call {call.id}")
        return [self.done[call.id] for call in calls]

    async def _announce(self, call: ToolUse, tell: TurnStream) -> _Asked | ToolOutput:
        """Read a call and ask for a decision; not on one that cannot work, which nobody needs to think about."""
        call_id = self._prefix + call.id
        try:
            reading = self.toolbox.read(call.name, call.input)
            asked = await self._hooks.before(call_id, reading, self.toolbox, tell.say)
        except BadArguments as error:
            return ToolOutput(str(error), status="error")
        reading = asked.reading
        decision = self._decisions.ask(call_id)
        place, outside = reading.place, reading.outside
        request = ToolRequested(
            call_id,
            call.name,
            reading.tool.category,
            reading.args,
            outside=outside,
            asking=asked.asking,
            why=asked.why,
            rule_name=getattr(reading.tool, "rule_name", ""),
        )
        if not asked.again:
            request = self._judged(request)
        described = reading.description + (f" ({beyond(reading.tool.category, reading.args)})" if outside else "")
        if request.why and request.asking != "deny":
            described += f" ({request.why})"
        description = f"{self._who}: {described}" if self._who else described
        await tell.say(request.replace(description=description))
        return _Asked(asked, place, outside, decision)

    def _judged(self, request: ToolRequested) -> ToolRequested:
        """The request with what the turn so far says of it: that it has to be confirmed, or that nobody needs to be
        asked."""
        risky = self._exposure.why_confirm(request) if self._exposure is not None else ""
        if risky:
            asking, why = strictest((request.asking, request.why), ("confirm", risky))
            return request.replace(asking=asking, why=why)
        return request.replace(asking="allow") if not request.asking and self._unasked(request) else request

    async def _see_through(self, call: ToolUse, asked: _Asked | ToolOutput, tell: TurnStream) -> None:
        if isinstance(asked, ToolOutput):
            await self._begin(call, tell)
            await self._end(call, asked, tell)
            return
        verdict = await asked.decision
        if not isinstance(verdict, Approve):
            reason = (verdict.reason if isinstance(verdict, Deny) else "") or DENIED
            denied = beside(TOOL_DENIED + reason, asked.call.context)
            self._finish(ToolResultBlock(call.id, denied, is_error=True))
            await tell.say(ToolCancelled(self._prefix + call.id, reason))
        elif asked.call.reading.tool.concurrent:
            await self._use(call, asked, tell)
        else:
            async with self._one_at_a_time:
                await self._use(call, asked, tell)

    async def _use(self, call: ToolUse, asked: _Asked, tell: TurnStream) -> None:
        await self._begin(call, tell)
        call_id = self._prefix + call.id
        # Each call has a task of its own, and with it a context.
        CALL_ID.set(call_id)
        reading = asked.call.reading
        # An answer may take days. What it was given for is where the call led then, and not where it leads by now.
        if (reading.place, reading.outside) != (asked.place, asked.outside):
            await self._end(call, ToolOutput(MOVED, status="error"), tell)
            return
        # What hooks do to a file belongs to the call that they look at.
        async with self._changes.watching(reading) if self._changes else nullcontext():
            try:
                output = await reading.run(lambda text: tell.say_now(Progress(text, call_id)))
            except Interrupted as stop:
                # People have seen that it was stopped; the model is told how far it came.
                self.done[call.id] = _result(call, marked(stop.output.replace(images=())), is_error=True)
                self._on_early(self.done[call.id])
                raise
            self._on_used(asked.place)
            if self._exposure is not None and (output.foreign or reading.tool.name in OTHERS_WORDS):
                self._exposure.shown(reading.description)
            # A stop while hooks look at it must not take it.
            self.done[call.id] = _result(call, marked(output), output.status == "error")
            output, is_error = await self._hooks.after(asked.call, output, tell.say)
        await self._end(call, output, tell, is_error=is_error)

    async def _begin(self, call: ToolUse, tell: TurnStream) -> None:
        self._on_early(ToolResultBlock(call.id, UNSEEN, is_error=True))
        await tell.say(ToolStarted(self._prefix + call.id, call.name))

    async def _end(self, call: ToolUse, output: ToolOutput, tell: TurnStream, *, is_error: bool = True) -> None:
        call_id = self._prefix + call.id
        self._finish(_result(call, output, is_error))
        shown = output.text if output.shown is None else output.shown
        await tell.say(ToolFinished(call_id, call.name, output.status, shown, output.output_type, output.metadata))

    def _finish(self, result: ToolResultBlock) -> None:
        self.done[result.id] = result
        if not self._alone:
            self._on_early(result)


def _result(call: ToolUse, output: ToolOutput, is_error: bool) -> ToolResultBlock:
    pictures = tuple(Image(media_type, data) for media_type, data in output.images)
    return ToolResultBlock(call.id, output.text, is_error, pictures)
