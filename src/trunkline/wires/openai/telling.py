"""The events of a turn, told in either format: what is answer, what is reasoning, and how it ended. No IO.

Agents keep their tools: what they do with them is told as reasoning, which clients show or ignore, but never run.
"""

from __future__ import annotations

from typing import Any, Protocol

from trunkline.base.cutting import cut_between_words
from trunkline.base.jsontext import dumps
from trunkline.core import events as core
from trunkline.core.events import Event
from trunkline.core.fault_kinds import of_kind
from trunkline.core.faults import AgentFailed, Cancelled
from trunkline.core.usage import Usage
from trunkline.wires.openai.cutting import AnswerCutter
from trunkline.wires.openai.errors import STOPPED, OpenAIRefused, of_failed_turn

#: What plain models say: a tool of the client's is to be called.
CLIENT_TOOL_CALL = "client_tool_call"

UNANSWERED = "The agent could not answer and did not say why."
#: How much of a call's arguments is told: enough to recognise it.
SHOWN_ARGUMENTS = 300

#: What an agent says of the end of its answer, as OpenAI calls it. That tools are to be called shows in the calls.
_FINISHES = {"length": "length", "max_turns": "length", "refusal": "content_filter"}

_APART = "\n\n"


class AnswerWriter(Protocol):
    """Writes an answer in one of the formats: `ChatWriter`, `ResponsesWriter`."""

    def text(self, text: str) -> bytes:
        """A piece of the answer."""

    def thought(self, text: str) -> bytes:
        """A piece of what is not the answer."""

    def call(self, id: str, name: str, arguments: str) -> bytes:
        """A tool of the client's that is to be called."""

    def end(self, finish: str, usage: Usage | None) -> bytes:
        """The answer is whole."""

    def fail(self, refused: OpenAIRefused, usage: Usage | None = None, *, stopped: bool = False) -> bytes:
        """There is no answer, or not all of it. `stopped`: because somebody said so."""


class TurnTeller:
    """Tells one turn. `over` is set once it has ended, `refused` if there is no answer."""

    def __init__(self, writer: AnswerWriter, cutter: AnswerCutter | None = None) -> None:
        self._writer = writer
        self._cutter = cutter
        self._failed: core.Failed | None = None
        self._finish = "stop"
        self._last = ""
        """The end of what was said of the answer."""
        self._apart = False
        """Whether something else happened since then: what comes is a paragraph of its own."""
        self._in_line = False
        """Whether the reasoning is in the middle of a line."""
        self.over = False
        self.refused: OpenAIRefused | None = None
        self.stopped = False
        """Whether somebody stopped the turn."""
        self.usage: Usage | None = None

    @property
    def cut(self) -> bool:
        """Whether the client has all that it asked for, although the agent goes on."""
        return self._cutter is not None and self._cutter.cut is not None

    def tell(self, event: Event) -> bytes:
        """One more event, as bytes of a stream."""
        kind = type(event)
        if kind is core.TextDelta:
            return self._say(event.text)  # type: ignore[attr-defined]  # told by its type, as fast as can be
        if kind is core.TurnEnded:
            return self._end(event)  # type: ignore[arg-type]  # the same
        return b"" if self.cut else self._happened(event)

    def _happened(self, event: Event) -> bytes:
        match event:
            case core.ThinkingDelta(text=text):
                self._in_line = not text.endswith("\n")
                return self._writer.thought(text) if text else b""
            case core.ToolRequested():
                return self._note(f"Waiting for approval: {_call_in_words(event)}")
            case core.ToolAnswered(approved=approved, by=by):
                return self._note(f"{'Approved' if approved else 'Denied'}{f' by {by}' if by else ''}.")
            case core.ToolStarted(name=name):
                self._apart = True
                return self._note(f"Using the tool {name}.")
            case core.ToolFinished(name=name, status=status):
                self._apart = True
                return self._note(f"The tool {name} has {'failed' if status == 'error' else 'finished'}.")
            case core.ToolCancelled(reason=reason):
                self._apart = True
                return self._note(f"The tool was not used: {reason}")
            case core.Notice(message=text):
                return self._note(text)
            case core.Plan():
                return self._note(event.words)
            case core.Failed():
                # Not said yet: an agent may try again and succeed.
                self._failed = event
            case core.Extension(kind=name, data=data):
                return self._extension(name, data)
        return b""

    def fail(self, refused: OpenAIRefused) -> bytes:
        """It is over, whatever the agent says."""
        self.over, self.refused = True, refused
        return self._writer.fail(refused)

    def note(self, text: str) -> bytes:
        """A line that is not the agent's."""
        return self._note(text)

    def _say(self, text: str) -> bytes:
        if self._apart:
            self._apart = False
            if self._last and text:
                text = _APART[len(self._last) - len(self._last.rstrip("\n")) :] + text
        if self._cutter is not None:
            text = self._cutter.feed(text)
        if not text:
            return b""
        self._last = text[-2:]
        return self._writer.text(text)

    def _note(self, line: str) -> bytes:
        begin = "\n" if self._in_line else ""
        self._in_line = False
        return self._writer.thought(f"{begin}{line}\n")

    def _extension(self, name: str, data: Any) -> bytes:
        if name == CLIENT_TOOL_CALL:
            return self._writer.call(str(data.get("id")), str(data.get("name")), str(data.get("arguments")))
        if name == core.FINISH:
            self._finish = _FINISHES.get(str(data.get("reason")), self._finish)
        return b""

    def _end(self, ended: core.TurnEnded) -> bytes:
        self.over, self.usage = True, ended.usage
        if self._cutter is not None and self._cutter.cut:
            return self._writer.end(self._cutter.cut, ended.usage)
        if ended.outcome == "success":
            rest = self._cutter.rest() if self._cutter is not None else ""
            said = self._writer.text(rest) if rest else b""
            finish = self._cutter.cut if self._cutter is not None and self._cutter.cut else self._finish
            return said + self._writer.end(finish, ended.usage)
        if ended.outcome == "cancelled":
            self.stopped = True
            self.refused = of_failed_turn(Cancelled(STOPPED))
        elif self._failed is not None:
            failed = self._failed
            self.refused = of_failed_turn(of_kind(failed.kind, failed.message, retryable=failed.retryable))
        else:
            self.refused = of_failed_turn(AgentFailed(UNANSWERED))
        return self._writer.fail(self.refused, ended.usage, stopped=self.stopped)


def _call_in_words(request: core.ToolRequested) -> str:
    said = request.description or dumps(dict(request.args)).decode("utf-8", "replace")
    return f"{request.name}: {cut_between_words(' '.join(said.split()), SHOWN_ARGUMENTS)}"
