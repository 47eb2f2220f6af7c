"""How a spoken conversation looks in a pipe, or as JSON lines; on a terminal `terminal.talk` shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import click

from trunkline.agents.external.tryll_talk_events import (
    Answered,
    AnswerPiece,
    Hushed,
    PromptSent,
    Spoken,
    TalkEvent,
    Trouble,
    UserTranscript,
)
from trunkline.base import jsontext
from trunkline.base.printable import printable, printable_line
from trunkline.cli import trace
from trunkline.core.graph.turns import node_event
from trunkline.wires.tryll.messages import DownloadProgress, NodeEvent

#: Notes about a download: one for each so many hundredths, and none about what takes less than a moment.
_STEP = 10
MOMENT_SECONDS = 1.0
_AGENT = "Agent: "


class TalkScreen(Protocol):
    """Shows what happens."""

    def show(self, event: TalkEvent) -> None:
        """One event."""

    def told(self, event: NodeEvent) -> None:
        """What a node wants to be known."""

    def note(self, text: str) -> None:
        """Something about the conversation that is no part of it."""

    def typing(self, text: str) -> None:
        """What is being typed."""


class Lines:
    """`You: ...` and `Agent: ...` on standard output, notes on standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        """`quiet`: what nodes tell is not shown."""
        self._quiet = quiet
        self._answer = False
        """Whether the line is an answer that is not over."""

    def show(self, event: TalkEvent) -> None:
        match event:
            case UserTranscript(kind="over", text=text) if text:
                self._end()
                click.echo(printable_line(f"You: {text}"))
            case AnswerPiece(text=text, anew=anew):
                click.echo(("\n" if anew else "") if self._answer else _AGENT, nl=False)
                click.echo(printable(text), nl=False)
                self._answer = True
                sys.stdout.flush()
            case PromptSent():
                self._end()
            case Answered(outcome=outcome, message=message):
                self._end()
                if outcome != "success":
                    self.note(f"Error: {message}" if outcome == "error" else "(interrupted)")
            case Trouble(message=message):
                self.note(message)

    def told(self, event: NodeEvent) -> None:
        if self._quiet:
            return
        pairs = ((pair.key, pair.value) for pair in event.kv_pairs)
        self.note(trace.told(node_event(event.node_name, event.event_type, pairs)))

    def note(self, text: str) -> None:
        self._end()
        click.echo(printable_line(text), err=True)

    def typing(self, text: str) -> None:
        """There is no place for it."""

    def _end(self) -> None:
        if self._answer:
            self._answer = False
            click.echo()


class JsonScreen:
    """One object for each event."""

    def show(self, event: TalkEvent) -> None:
        click.echo(jsontext.dumps(_object(event)))
        sys.stdout.flush()

    def told(self, event: NodeEvent) -> None:
        values = {pair.key: pair.value for pair in event.kv_pairs}
        told = {"type": "event", "node": event.node_name, "event": event.event_type, "values": values}
        click.echo(jsontext.dumps(told))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        click.echo(printable_line(text), err=True)

    def typing(self, text: str) -> None:
        """There is no place for it."""


class ProgressNotes:
    """Progress of downloads: a note for each tenth of the way, of what takes longer than a moment."""

    def __init__(self, note: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._note = note
        self._clock = clock
        self._last: tuple[str, int] | None = None
        self._began: dict[str, float] = {}

    def __call__(self, progress: DownloadProgress) -> None:
        name, now = progress.model_name, self._clock()
        if now - self._began.setdefault(name, now) < MOMENT_SECONDS:
            return
        share = int(max(0.0, min(progress.percent, 100.0)))
        step = (name, share // _STEP)
        if step != self._last:
            self._last = step
            self._note(f"{name}: {share} % fetched")


def _object(event: TalkEvent) -> dict[str, Any]:
    match event:
        case UserTranscript():
            return {"type": "heard", "kind": event.kind, "text": event.text}
        case PromptSent():
            return {"type": "asked", "text": event.text}
        case AnswerPiece():
            return {"type": "words", "text": event.text, "anew": event.anew}
        case Spoken():
            sound = event.sound
            form = {"sample_rate": sound.sample_rate, "channels": sound.channels, "bytes": len(sound.pcm)}
            return {"type": "sound", **form}
        case Hushed():
            return {"type": "hushed"}
        case Answered():
            return {"type": "answered", "outcome": event.outcome, "message": event.message}
        case Trouble():
            return {"type": "trouble", "message": event.message}
