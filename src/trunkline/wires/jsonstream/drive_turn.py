"""One turn of a driven program: the messages that it sends, as events of the core. Sans-IO.

The translation is `_TABLE`, at the end of the file. What is not in it (`stream_start`, `pong`, a second `ready`, noise)
tells the user nothing. Messages of another turn, which programs send late or by mistake, are left out; an empty or
absent `msg_id` means the turn in progress, because programs in the field leave it out.

How a turn comes out:

- `success`: it was ended by `stream_end`;
- `error`: it was ended by `stream_end` right after an `error`, or the program died. An `error` after which the program
  goes on to speak or to use tools was not the end, and does not count;
- `cancelled`: we sent `stop`, whatever came after it;
- `unknown`: the program died while a tool that changes things was allowed to run and had not ended. It may or may not
  have happened; nobody should repeat the turn without having looked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from trunkline.core import events as core
from trunkline.core.fault_table import JsonStreamCode
from trunkline.core.faults import AgentFailed, RemoteProtocolError
from trunkline.core.usage import Usage
from trunkline.wires.jsonstream import messages
from trunkline.wires.jsonstream.codec import Noise

Heard: TypeAlias = messages.Event | Noise | RemoteProtocolError
End: TypeAlias = Literal["stream_end", "silence", "death"]

#: Calls that are open at once. Models ask for a few dozen; a program that never closes any must not fill memory.
MAX_OPEN_CALLS = 1000
#: Broken lines that the user is told of in one turn. More of them say nothing new.
MAX_COMPLAINTS = 3

#: What a code says about whose fault it is. A `protocol_error` is about a command of ours, but for the user it is this
#: agent that failed: a host further up has done nothing wrong.
_KINDS: dict[JsonStreamCode, str] = {
    "provider_error": "provider",
    "tool_error": "tool",
    "config_error": "config",
    "protocol_error": "agent",
    "internal_error": "agent",
}
#: What still matters of a turn that the user has stopped: the fate of tools that were running.
_AFTER_STOP = (core.ToolStarted, core.ToolFinished, core.ToolCancelled)


class _Call:
    """A tool call that is not over."""

    __slots__ = ("name", "released")

    def __init__(self, name: str, released: bool) -> None:
        self.name = name
        self.released = released
        """Whether it may be running: somebody approved it, or the program did not ask."""


class TurnAccount:
    """What one turn has come to."""

    def __init__(self, msg_id: str, *, expected_refusals: int = 0) -> None:
        """`expected_refusals`: commands sent ahead of the message that the program may not know."""
        self.msg_id = msg_id
        self._awaited = {msg_id}
        """The messages whose end makes the turn's: its own, and those that were put into it."""
        self._own = {msg_id}
        self._ended_badly = False
        """Whether one of them ended with an `error`."""
        self.begun = False
        """Whether the program has shown that it works on this message."""
        self.ended = False
        """Whether its `stream_end` has come, and those of the messages that were put into it."""
        self.failed = False
        """Whether the last thing that it said was an `error`."""
        self.stopped = False
        """Whether we have asked it to stop."""
        self.usage: Usage | None = None
        self._calls: dict[str, _Call] = {}
        self._complaints = 0
        self._expected_refusals = expected_refusals

    @property
    def seems_over(self) -> bool:
        """After an `error`, with no tool or approval to wait for: silence now means that no `stream_end` will come."""
        return self.failed and not self._calls

    def read(self, item: Heard) -> core.Event | None:
        """What a message means to the user, if anything.

        Raises:
            AgentFailed: the program has more open calls than anybody could answer.
        """
        translate = _TABLE.get(type(item))
        event = translate(self, item) if translate else None
        return None if self.stopped and not isinstance(event, _AFTER_STOP) else event

    def join(self, msg_id: str) -> None:
        """Another message was put into the turn. Should it come too late for that, its answer is the turn's as well."""
        self._own.add(msg_id)
        self._awaited.add(msg_id)

    def awaits(self, call_id: str) -> bool:
        """Whether a call waits for a decision."""
        call = self._calls.get(call_id)
        return call is not None and not call.released

    def decided(self, call_id: str, approved: bool) -> None:
        """A decision has been sent. A denied call stays open until the program cancels it."""
        if approved:
            self._calls[call_id].released = True

    def outcome(self, end: End) -> core.Outcome:
        """How the turn comes out, when it ends like that."""
        if self.stopped:
            return "cancelled"
        if end == "death":
            # What it was about to do, and how far it came, nobody can know.
            return "unknown"
        return "error" if self.failed or self._ended_badly or end != "stream_end" else "success"

    def settle(self, reason: str) -> list[core.Event]:
        """Close the calls that the program left open."""
        cancelled: list[core.Event] = [core.ToolCancelled(call_id, reason) for call_id in self._calls]
        self._calls.clear()
        return cancelled

    # The lines of the table.

    def _is_ours(self, msg_id: str | None) -> bool:
        return not msg_id or msg_id in self._own

    def _goes_on(self, msg_id: str) -> bool:
        """Note that the program works on our message, if it is ours."""
        if not self._is_ours(msg_id):
            return False
        self.begun = True
        self.failed = False
        return True

    def _start(self, message: messages.StreamStart) -> None:
        self._goes_on(message.msg_id)

    def _text(self, message: messages.TextDelta) -> core.Event | None:
        return core.TextDelta(message.text) if self._goes_on(message.msg_id) else None

    def _thinking(self, message: messages.Thinking) -> core.Event | None:
        return core.ThinkingDelta(message.text) if self._goes_on(message.msg_id) else None

    def _request(self, message: messages.ToolRequest) -> core.Event | None:
        tool, call_id = message.tool, message.call_id
        # After our `stop` the program cancels it by itself; and nobody is asked twice.
        if not self._goes_on(message.msg_id) or self.stopped or call_id in self._calls:
            return None
        self._open(call_id, _Call(tool.name, released=False))
        return core.ToolRequested(call_id, tool.name, tool.category, tool.args, tool.description)

    def _running(self, message: messages.ToolRunning) -> core.Event | None:
        if not self._goes_on(message.msg_id):
            return None
        call = self._calls.get(message.call_id)
        if call is None:
            call = self._open(message.call_id, _Call(message.tool_name, released=True))
        call.released = True
        return core.ToolStarted(message.call_id, message.tool_name or call.name)

    def _result(self, message: messages.ToolResult) -> core.Event | None:
        if not self._is_ours(message.msg_id):
            return None
        self.begun = True
        call = self._calls.pop(message.call_id, None)
        return core.ToolFinished(
            message.call_id,
            message.tool_name or (call.name if call else ""),
            message.status,
            message.output,
            message.output_type,
            message.metadata,
        )

    def _cancelled(self, message: messages.ToolCancelled) -> core.Event | None:
        if not self._is_ours(message.msg_id):
            return None
        self._calls.pop(message.call_id, None)
        return core.ToolCancelled(message.call_id, message.reason)

    def _end(self, message: messages.StreamEnd) -> None:
        # One without an id counts only for a turn that has begun: it may be the second one of the turn before.
        if message.msg_id not in self._awaited and (message.msg_id or not self.begun):
            return
        self._awaited.discard(message.msg_id or self.msg_id)
        self._ended_badly = self._ended_badly or self.failed
        self.failed = False
        self.ended = not self._awaited
        if message.usage is not None:
            self.usage = message.usage if self.usage is None else self.usage + message.usage

    def _error(self, message: messages.Error) -> core.Event | None:
        if not self._is_ours(message.msg_id):
            return None
        error = message.error
        text = error.message or "The program reports an error and does not say which."
        if error.code == "protocol_error" and not message.msg_id and (self.begun or self._expected_refusals > 0):
            # Not about the message: about an answer or a setting, which the turn survives.
            self._expected_refusals -= 1
            return core.Notice(f"The program refused a command: {text}")
        self.failed = True
        return core.Failed(_KINDS[error.code], text, error.retryable)

    def _info(self, message: messages.Info) -> core.Event | None:
        return core.Notice(message.message) if self._is_ours(message.msg_id) else None

    def _mcp_ready(self, message: messages.McpReady) -> core.Event:
        return core.Extension(core.MCP_READY, {"name": message.name, "tools": list(message.tools)})

    def _complaint(self, fault: RemoteProtocolError) -> core.Event | None:
        self._complaints += 1
        if self._complaints > MAX_COMPLAINTS:
            return None
        return core.Notice(f"The program sent a line that breaks the protocol: {fault}")

    def _open(self, call_id: str, call: _Call) -> _Call:
        if len(self._calls) >= MAX_OPEN_CALLS:
            raise AgentFailed(f"The program has more than {MAX_OPEN_CALLS} tool calls open at once.")
        self._calls[call_id] = call
        return call


#: The translation: what a program says, and what that is in the core.
_TABLE: dict[type, Callable[[TurnAccount, Any], core.Event | None]] = {
    messages.StreamStart: TurnAccount._start,  # nothing: the session has begun the turn already
    messages.TextDelta: TurnAccount._text,  # TextDelta
    messages.Thinking: TurnAccount._thinking,  # ThinkingDelta
    messages.ToolRequest: TurnAccount._request,  # ToolRequested
    messages.ToolRunning: TurnAccount._running,  # ToolStarted
    messages.ToolResult: TurnAccount._result,  # ToolFinished
    messages.ToolCancelled: TurnAccount._cancelled,  # ToolCancelled
    messages.StreamEnd: TurnAccount._end,  # the usage of TurnEnded
    messages.Error: TurnAccount._error,  # Failed, or a Notice
    messages.Info: TurnAccount._info,  # Notice
    messages.McpReady: TurnAccount._mcp_ready,  # Extension
    RemoteProtocolError: TurnAccount._complaint,  # Notice
}
