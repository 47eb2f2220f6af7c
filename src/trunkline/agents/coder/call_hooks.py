"""The hooks around one call of a tool: before anybody judges it, and after it was run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trunkline.agents.coder.hooks import STRICTEST_FIRST, Hooks, Say
from trunkline.agents.coder.settings_hooks import NO_HOOKS
from trunkline.agents.coder.words import HOOK_OBJECTS, HOOK_SAYS
from trunkline.core.events import Asking, Notice, ToolRequested
from trunkline.tools.foreign_text import framed
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import PreparedCall, Toolbox


class AskedCall(NamedTuple):
    """A call as it will be judged, shown and run."""

    reading: PreparedCall
    asking: Asking
    why: str
    context: tuple[str, ...] = ()
    """What hooks tell the model about it."""
    again: bool = False
    """Whether an earlier process has asked about it already: then all of it is as it was."""


class CallHooks:
    """Those of one conversation's calls. `asked` are the calls about which an earlier process was asking a person."""

    def __init__(self, hooks: Hooks, asked: Sequence[ToolRequested] = ()) -> None:
        self._hooks = hooks
        self._asked = {request.call_id: request for request in asked}

    async def before(self, call_id: str, reading: PreparedCall, toolbox: Toolbox, say: Say) -> AskedCall:
        """Run what is run before a tool. Changed arguments are read anew: they are what everybody sees from here on.

        Raises:
            BadArguments: the tool cannot be called with what a hook made of its arguments.
        """
        name, own = reading.tool.name, _own(reading)
        if (asked := self._asked.pop(call_id, None)) is not None:
            # Hooks have had their say, and somebody was asked about what came of it.
            return AskedCall(toolbox.read(name, asked.args), asked.asking, asked.why, again=True)
        if not self._hooks.has("pre_tool_use"):
            return AskedCall(reading, own, "")
        said = await self._hooks.run("pre_tool_use", say, *_names(reading), tool_name=name, tool_input=reading.args)
        if said.tool_input is not None:
            reading = toolbox.read(name, said.tool_input)
            own = _own(reading)
        asking, why = strictest((own, ""), (said.decision, _why(said.decision, said.reason)))
        return AskedCall(reading, asking, why, said.context)

    async def after(self, call: AskedCall, output: ToolOutput, say: Say) -> tuple[ToolOutput, bool]:
        """Run what is run after a tool. Gives what the model is told, and whether that is an error."""
        is_error = output.status == "error"
        name = call.reading.tool.name
        if not self._hooks.has("post_tool_use"):
            return told(marked(output), call.context), is_error
        said = await self._hooks.run(
            "post_tool_use",
            say,
            *_names(call.reading),
            tool_name=name,
            tool_input=call.reading.args,
            tool_output=output.text,
        )
        lines = [*call.context, *said.context]
        output = marked(output)
        if said.decision != "deny":
            return told(output, lines), is_error
        reason = said.reason or "it does not say why"
        await say(Notice(f"A hook objects to what {name} did: {reason}"))
        objection = f"{HOOK_OBJECTS}\n{reason}"
        return told(output, lines, objection), True


def strictest(*known: tuple[Asking, str]) -> tuple[Asking, str]:
    """What holds of a call, and why, where several know something of it."""
    return min(known, key=lambda each: STRICTEST_FIRST.index(each[0]))


def marked(output: ToolOutput) -> ToolOutput:
    """An output as the model is given it: what others wrote is marked as such. People are shown what the tool gave."""
    if not output.foreign:
        return output
    return output.replace(text=framed(output.text), shown=output.text if output.shown is None else output.shown)


def told(output: ToolOutput, context: Sequence[str], objection: str = "") -> ToolOutput:
    """An output with what hooks tell the model besides; people are shown what the tool gave."""
    if not context and not objection:
        return output
    shown = output.text if output.shown is None else output.shown
    return output.replace(text=beside(output.text, context, objection), shown=shown)


def beside(text: str, context: Sequence[str], objection: str = "") -> str:
    """A result, and below it what hooks say."""
    return "\n\n".join([text, *(f"{HOOK_SAYS}\n{words}" for words in context), *([objection] if objection else [])])


def _names(reading: PreparedCall) -> tuple[str, ...]:
    """What the tool is called, and what rules call it: a server's tool has both."""
    name, other = reading.tool.name, getattr(reading.tool, "rule_name", "")
    return (name, other) if other else (name,)


def _own(reading: PreparedCall) -> Asking:
    asking: Asking = getattr(reading.tool, "asking", "")
    return asking


def _why(decision: str, reason: str) -> str:
    if decision == "deny":
        return f"A hook denied it: {reason}" if reason else "A hook denied it"
    return f"a hook wants it to be asked about{f': {reason}' if reason else ''}" if decision == "ask" else ""


def unhooked() -> CallHooks:
    """For calls without any."""
    return CallHooks(Hooks(NO_HOOKS))
