"""A spoken conversation on the screen of `trunkline chat`: the same marks and colours, and the same line to type in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.text import Text

from trunkline import __version__
from trunkline.agents.external.tryll_talk_events import (
    Answered,
    AnswerPiece,
    PromptSent,
    Spoken,
    TalkEvent,
    Trouble,
    UserTranscript,
)
from trunkline.base.printable import printable_line
from trunkline.cli.terminal import commands, words
from trunkline.cli.terminal.calls import clean, one_line
from trunkline.cli.terminal.paint import PROMPT
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.turn import FRAME_SECONDS
from trunkline.cli.terminal.view import View
from trunkline.core.events import Audio, TextDelta, TurnEnded, TurnStarted, UserMessage
from trunkline.core.faults import Unsupported
from trunkline.core.graph.turns import node_event
from trunkline.core.session import Session
from trunkline.wires.tryll.messages import NodeEvent

#: What keys do here and not in `trunkline chat`.
KEYS = (
    "Here the space bar stops an answer, too, or begins and ends what you say. q and Ctrl-C leave. "
    "In a line that is begun, they are letters."
)


class TalkView:
    """Shows what happens; inside `with` the screen is its own."""

    def __init__(self, screen: Screen, view: View) -> None:
        self._screen = screen
        self.view = view
        self._heard = ""
        """What was understood so far of an utterance that is not over."""
        self._said: str | None = None
        """What was said aloud last, until it is answered."""
        self._typed = ""

    def __enter__(self) -> Self:
        self._screen.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heard = self._typed = ""
        self.view.show(TurnEnded("cancelled"))
        self._screen.end()

    def welcome(self, *about: str) -> None:
        """Say who is talked to."""
        rest = " · ".join(["", *map(printable_line, about)])
        self.view.plain(Text.assemble((f"trunkline {__version__}", "bold"), (rest, "dim")))

    async def animate(self) -> None:
        """Let it move, as long as nobody cancels that."""
        while True:
            self.draw()
            await asyncio.sleep(FRAME_SECONDS)

    def draw(self) -> None:
        """Write what is new."""
        lines = []
        if self._heard:
            # Of one line the newest words count.
            shown = one_line(self._heard)[-max(8, self._screen.columns - 6) :]
            lines.append(self.view.line(Text.assemble((f"{PROMPT} ", "bold cyan"), (shown, "dim"), ("…", "cyan"))))
        if self._typed:
            shown = clean(self._typed).replace("\n", " ⏎ ")[-max(8, self._screen.columns - 6) :]
            lines.append(self.view.line(Text.assemble((f"{PROMPT} ", "bold cyan"), shown, ("▏", "cyan"))))
        self.view.draw(typed=lines)

    def typing(self, text: str) -> None:
        """What is being typed."""
        self._typed = text
        self.draw()

    def show(self, event: TalkEvent) -> None:
        match event:
            case UserTranscript(kind="over", text=text):
                self._heard = ""
                if text:
                    self._said = text
                    self.view.user(" ".join(text.split()))
            case UserTranscript(text=text):
                self._heard = text or "listening"
            case PromptSent(text=text):
                if text != self._said:
                    self.view.user(text)
                self._said = None
                self.view.show(TurnStarted(UserMessage(text)))
            case AnswerPiece(text=text, anew=anew):
                self.view.show(TextDelta(f"\n\n{text}" if anew else text))
            case Spoken(sound=sound):
                self.view.show(Audio(sound.pcm, sound.sample_rate, sound.channels))
            case Answered(outcome=outcome, message=message):
                self._ended(outcome, message)
            case Trouble(message=message):
                self.view.failure(message)
        self.draw()

    def _ended(self, outcome: str, message: str) -> None:
        took, sound = self.view.elapsed, self.view.sound_seconds
        self.view.show(TurnEnded("success"))
        if outcome == "error":
            self.view.failure(message)
            return
        parts = [f"{sound:.1f} s of sound"] if sound else []
        if parts or took >= 1 or outcome == "cancelled":
            self.view.ended([*parts, words.seconds(took)], stopped=outcome == "cancelled")

    def told(self, event: NodeEvent) -> None:
        self.view.show(node_event(event.node_name, event.event_type, ((p.key, p.value) for p in event.kv_pairs)))
        self.draw()

    def note(self, text: str) -> None:
        self.view.note(text)
        self.draw()


class TalkCommands:
    """What commands act on in a spoken conversation: all but its session can be changed."""

    agent_commands: Mapping[str, str] = {}
    traced = False
    spent = ""

    def __init__(self, screen: TalkView, session: Session, workspace: str, model: str) -> None:
        self.view = screen.view
        self.workspace = workspace
        self.session = session
        self.model: str | None = model or None
        self.leaving = False
        """Whether somebody wants to leave."""
        self._screen = screen

    async def run(self, text: str) -> bool:
        """Carry out what was typed; false if it is a message."""
        self.view.user(text)
        is_ours = await commands.run(self, text)
        if text.partition(" ")[0] == "/help":
            self.view.note(KEYS)
        self._screen.draw()
        return is_ours

    def leave(self) -> None:
        self.leaving = True

    async def models(self) -> list[str]:
        return []

    def use_model(self, name: str) -> None:
        self.model = name

    async def switch(self, resume: str | None) -> None:
        raise Unsupported("Another session needs a new start.", hint="Leave, and come back with `--resume ID`.")
