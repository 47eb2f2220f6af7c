"""How a spoken conversation looks: on a terminal, in a pipe, or as JSON lines."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from typing import Any, Protocol

import click

from trunkline.agents.external.tryll_talk_events import (
    Answered,
    Asked,
    Heard,
    Hushed,
    Spoken,
    TalkEvent,
    Trouble,
    Words,
)
from trunkline.base import jsontext
from trunkline.base.printable import printable, printable_line
from trunkline.wires.tryll.messages import NodeEvent

#: Clears the line that the cursor is in.
_CLEAR = "\r\x1b[K"
_AGENT = "Agent: "


class Screen(Protocol):
    """Shows what happens."""

    def show(self, event: TalkEvent) -> None:
        """One event."""

    def told(self, event: NodeEvent) -> None:
        """What a node wants to be known."""

    def note(self, text: str) -> None:
        """Something about the conversation that is no part of it."""


class Lines:
    """`You: ...` and `Agent: ...` on standard output, notes on standard error. `live`: also what is not sure yet."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._unsure = False
        """Whether the line shows something that may be taken back."""
        self._answer = False
        """Whether the line is an answer that is not over."""

    def show(self, event: TalkEvent) -> None:
        if isinstance(event, Heard):
            self._heard(event)
        elif isinstance(event, Asked):
            self._end()
            if self._live:
                # Until there are words, something else may come.
                click.echo(_AGENT, nl=False)
                self._unsure = True
                sys.stdout.flush()
        elif isinstance(event, Words):
            self._take_back()
            click.echo(("\n" if event.anew else "") if self._answer else _AGENT, nl=False)
            click.echo(printable(event.text), nl=False)
            self._answer = True
            sys.stdout.flush()
        elif isinstance(event, Answered):
            self._end()
            if event.outcome == "error":
                self.note(f"Error: {event.message}")
            elif event.outcome == "cancelled":
                self.note("(interrupted)")
        elif isinstance(event, Trouble):
            self._end()
            self.note(event.message)

    def _heard(self, event: Heard) -> None:
        if event.kind == "over" and event.text:
            self._end()
            click.echo(printable_line(f"You: {event.text}"))
        elif event.kind == "over":
            self._take_back()
        elif self._live:
            self._end()
            # One line, of which the newest words count: what is longer than the screen cannot be taken back.
            shown = printable_line(event.text)[-(get_terminal_size().columns - 9) :]
            click.echo(f"{_CLEAR}You: {shown}...", nl=False)
            self._unsure = True
            sys.stdout.flush()

    def told(self, event: NodeEvent) -> None:
        pairs = ", ".join(f"{pair.key}={pair.value}" for pair in event.kv_pairs)
        self.note(f"[{event.node_name}: {event.event_type}] {pairs}")

    def note(self, text: str) -> None:
        self._end()
        click.echo(printable_line(text), err=True)

    def _end(self) -> None:
        self._take_back()
        if self._answer:
            self._answer = False
            click.echo()

    def _take_back(self) -> None:
        if self._unsure:
            self._unsure = False
            click.echo(_CLEAR, nl=False)


class JsonLines:
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


def _object(event: TalkEvent) -> dict[str, Any]:
    match event:
        case Heard():
            return {"type": "heard", "kind": event.kind, "text": event.text}
        case Asked():
            return {"type": "asked", "text": event.text}
        case Words():
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
