"""What was said in a session, turn by turn, for those who read it later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from trunkline.core.events import (
    Envelope,
    Failed,
    Gap,
    Steered,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from trunkline.core.fault_table import told
from trunkline.core.keeper import KnownSession
from trunkline.wires.mcp.messages import Json

#: What is told of one message or answer. Longer ones are cut: what is read goes into a model's prompt.
TOLD_CHARS = 20_000


class SaidTurn:
    """One turn: its message, its answer, and its tools."""

    def __init__(self, number: int, message: str, sender: str | None) -> None:
        self.number = number
        self.message = message
        self.sender = sender
        self.answer: list[str] = []
        self.tools: dict[str, Json] = {}
        self.outcome = ""
        self.error = ""
        self._new_part = False

    def take(self, event: Any) -> None:
        """One more event of the turn."""
        match event:
            case TextDelta(text=text):
                self.answer += ["\n\n", text] if self._new_part and self.answer else [text]
                self._new_part = False
            case Steered(message=message):
                self.message += f"\n\n{message.text}"
            case ToolStarted(call_id=call_id, name=name):
                self.tools[call_id] = {"name": name, "status": "running"}
                self._new_part = True
            case ToolFinished(call_id=call_id, name=name, status=status):
                self.tools[call_id] = {"name": name, "status": status}
                self._new_part = True
            case ToolCancelled(call_id=call_id) if call_id in self.tools:
                self.tools[call_id]["status"] = "cancelled"
            case Failed(kind=kind, message=words):
                self.error = told(kind, words)
            case TurnEnded(outcome=outcome):
                self.outcome = outcome
            case _:
                pass

    def value(self) -> Json:
        """The turn as JSON."""
        made: Json = {"number": self.number, "message": _cut(self.message), "answer": _cut("".join(self.answer))}
        if self.sender:
            made["sender"] = self.sender
        if self.tools:
            made["tools"] = list(self.tools.values())
        if self.outcome:
            made["outcome"] = self.outcome
        if self.error and self.outcome != "success":
            made["error"] = _cut(self.error)
        return made


class SaidSession:
    """The last turns of a session."""

    def __init__(self, session: KnownSession, turns: Iterable[SaidTurn], omitted: int) -> None:
        self.session = session
        self.turns = [turn.value() for turn in turns]
        self.omitted = omitted

    def value(self) -> Json:
        """All of it as JSON."""
        return {
            "session": self.session.id,
            "agent": self.session.agent,
            "title": self.session.title,
            "turns": self.turns,
            "omitted": self.omitted,
        }

    def text(self) -> str:
        """All of it for people and models, as Markdown."""
        parts = [f"# Session {self.session.id} with {self.session.agent}"]
        if self.omitted:
            parts.append(f"({self.omitted} earlier turns are not told.)")
        for turn in self.turns:
            parts.append(f"## {turn.get('sender') or 'User'}\n\n{turn['message']}")
            used = "".join(f"- {tool['name']}: {tool['status']}\n" for tool in turn.get("tools", ()))
            ended = turn.get("error") or {"cancelled": "This turn was stopped."}.get(turn.get("outcome", ""), "")
            said = [part for part in (used.rstrip(), turn["answer"], ended) if part]
            parts.append(f"## {self.session.agent}\n\n" + ("\n\n".join(said) or "(no answer yet)"))
        return "\n\n".join(parts) + "\n"


def said(session: KnownSession, events: Iterable[Envelope | Gap], limit: int) -> SaidSession:
    """The last turns of a session, from its events. Reads files: for a thread."""
    turns: deque[SaidTurn] = deque(maxlen=limit)
    known: dict[int, SaidTurn] = {}
    count = 0
    for item in events:
        if isinstance(item, Gap):
            continue
        event = item.event
        if isinstance(event, TurnStarted):
            count += item.turn not in known
            if len(turns) == limit:
                known.pop(turns[0].number, None)
            turn = known[item.turn] = SaidTurn(item.turn, event.message.text, event.message.sender)
            turns.append(turn)
        elif item.turn in known:
            known[item.turn].take(event)
    return SaidSession(session, turns, count - len(turns))


def _cut(text: str) -> str:
    return text if len(text) <= TOLD_CHARS else f"{text[:TOLD_CHARS]} ... ({len(text) - TOLD_CHARS} more characters)"
