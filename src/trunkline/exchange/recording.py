"""Turns a session into a script, which the agent `scripted` can play on any wire.

The turns stand in their order, without `when`, each with the message that it answered. Signs of life are left out, and
so is sound when there is much of it, which is counted.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base import document, jsontext, shapes
from trunkline.base.values import Value
from trunkline.core.events import (
    Audio,
    Envelope,
    Event,
    Extension,
    Failed,
    Gap,
    Notice,
    Plan,
    Steered,
    TextDelta,
    ThinkingDelta,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolJudged,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import ConfigError

#: The longest script that can be read back, less half for the layout of its file.
MOST_BYTES = document.MAX_BYTES // 2
#: Pieces of text in a script. With more, each answer becomes one piece: the YAML reader has its limits.
MOST_PIECES = 20_000
#: Sound in a script, as base64: half a minute of speech. A recording with more has its words alone.
MOST_SOUND = MOST_BYTES // 2
#: The result of a call that was denied when it was recorded, for someone who approves it now.
WAS_DENIED = "It was denied when this was recorded: its result is unknown."
WAS_CUT_OFF = "It was cut off when this was recorded."


class SessionRecording(Value):
    """The script, as the JSON value of its file, and what was left out, with counts."""

    script: Mapping[str, Any]
    left_out: Mapping[str, int]


def recorded(records: Iterable[Envelope | Gap], name: str) -> SessionRecording:
    """The session as a script with that name, without the turn in progress.

    Raises:
        ConfigError: no turn has ended yet, or it is too long for a script.
    """
    turns: list[dict[str, Any]] = []
    left_out: Counter[str] = Counter()
    turn: _Turn | None = None
    for record in records:
        if isinstance(record, Gap):
            left_out["damaged"] += record.last - record.first + 1
            continue
        match record.event:
            case TurnStarted(message=message):
                turn = _Turn(message.text)
            case TurnEnded() as end if turn is not None:
                turns.append(turn.ended(end))
                turn = None
            case event if turn is not None:
                turn.take(event)
    if not turns:
        raise ConfigError("There is nothing to record yet: no turn of this session has ended.")
    left_out += _drop_sound(turns)
    thinks = any("thinking" in step for turn in turns for step in turn["steps"])
    script = {
        "name": name,
        "description": "A recorded session. Its texts are repeated verbatim.",
        "verbatim": True,
        "capabilities": {"approval": True, "resume": True, "thinking": thinks},
        "turns": turns,
    }
    _join_pieces(turns)
    if len(jsontext.dumps(script)) > MOST_BYTES:
        raise ConfigError(
            f"The session is too long for a script, which has at most {MOST_BYTES} bytes.",
            hint="Record a part of it: `trunkline sessions fork SESSION --at N` makes a session that ends earlier.",
        )
    return SessionRecording(script, dict(left_out))


def _drop_sound(turns: list[dict[str, Any]]) -> Counter[str]:
    """Take all sound out if there is too much of it; gives how many pieces that were."""
    sounds = [step["sound"]["data"] for turn in turns for step in turn["steps"] if "sound" in step]
    if sum(map(len, sounds)) <= MOST_SOUND:
        return Counter()
    for turn in turns:
        turn["steps"] = [step for step in turn["steps"] if "sound" not in step]
    return Counter(sound=len(sounds))


def _join_pieces(turns: list[dict[str, Any]]) -> None:
    said = [(step, key) for turn in turns for step in turn["steps"] for key in ("text", "thinking") if key in step]
    if sum(len(step[key]) for step, key in said) > MOST_PIECES:
        for step, key in said:
            step[key] = ["".join(step[key])]


class _Turn:
    """A turn being recorded."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._steps: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}
        """The open calls of the step in progress."""
        self._group: list[dict[str, Any]] = []
        """All calls of the step in progress: those requested while another was open."""

    def take(self, event: Event) -> None:
        """One more event."""
        match event:
            case TextDelta(text=text):
                self._say("text", text)
            case ThinkingDelta(text=text):
                self._say("thinking", text)
            case ToolRequested(call_id=call_id) | ToolJudged(call_id=call_id):
                self._begin(call_id, event.name, event.category, event.args, event.description)
            case ToolStarted(call_id=call_id, name=name) if call_id not in self._calls:
                self._begin(call_id, name, "info", {}, name)
            case ToolAnswered(call_id=call_id, approved=False) if call_id in self._calls:
                self._calls[call_id]["answer"] = "deny"
            case ToolFinished():
                self._finish(event)
            case ToolCancelled(call_id=call_id, reason=reason):
                call = self._calls.pop(call_id, None)
                if call is not None and call.get("answer") == "deny":
                    call |= {"status": "error", "output": WAS_DENIED, "reason": reason}
                elif call is not None:
                    call |= {"status": "error", "output": WAS_CUT_OFF}
            case _:
                self._take_whole(event)

    def _take_whole(self, event: Event) -> None:
        """One that is a step by itself."""
        match event:
            case Steered(message=message):
                self._steps.append({"steered": message.text})
            case Audio(data=data, rate=rate, channels=channels):
                sound = {"data": base64.b64encode(data).decode(), "rate": rate, "channels": channels}
                self._steps.append({"sound": sound})
            case Notice(message=text):
                self._steps.append({"notice": text})
            case Plan():
                self._steps.append({"plan": shapes.encode(event)["entries"]})
            case Failed(kind=kind, message=text, retryable=retryable):
                known = kind if kind in TABLE else "agent"
                self._steps.append({"fail": {"kind": known, "message": text, "retryable": retryable}})
            case Extension(kind=kind, data=data):
                self._steps.append({"extension": {"kind": kind, "data": dict(data)}})

    def ended(self, end: TurnEnded) -> dict[str, Any]:
        """The whole turn."""
        for call in self._calls.values():
            call |= {"status": "error", "output": WAS_CUT_OFF}
        turn: dict[str, Any] = {"message": self._message, "steps": self._steps, "outcome": end.outcome}
        if end.usage is not None:
            turn["usage"] = {key: count for key, count in shapes.encode(end.usage).items() if count is not None}
        return turn

    def _say(self, key: str, text: str) -> None:
        """Consecutive pieces are one step, but remain separate pieces."""
        if self._steps and key in self._steps[-1]:
            self._steps[-1][key].append(text)
        else:
            self._steps.append({key: [text]})

    def _begin(self, call_id: str, name: str, category: str, args: Mapping[str, Any], description: str) -> None:
        if call_id in self._calls:
            return
        call = {
            "name": name, "category": category, "id": call_id, "args": dict(args),
            "description": " ".join(description.split()) or name,
        }  # fmt: skip
        if not self._calls:
            self._group = []
            self._steps.append({"tools": self._group})
        self._group.append(call)
        self._calls[call_id] = call

    def _finish(self, event: ToolFinished) -> None:
        if event.call_id not in self._calls:
            self._begin(event.call_id, event.name, "info", {}, event.name)
        call = self._calls.pop(event.call_id)
        call |= {"status": event.status, "output": event.output, "output_type": event.output_type}
        if event.metadata is not None:
            call["metadata"] = dict(event.metadata)
