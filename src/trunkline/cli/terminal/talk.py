"""A spoken conversation on the screen of `trunkline chat`: the same marks and colours, and the same line to type in."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from rich.text import Text

from trunkline import __version__
from trunkline.agents.external.tryll_talk_events import Answered, Asked, Heard, Spoken, TalkEvent, Trouble, Words
from trunkline.base.printable import printable_line
from trunkline.cli.terminal import words
from trunkline.cli.terminal.calls import clean, one_line
from trunkline.cli.terminal.paint import PROMPT
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.turn import FRAME_SECONDS
from trunkline.cli.terminal.view import View
from trunkline.core.events import Audio, TextDelta, TurnEnded, TurnStarted, UserMessage
from trunkline.core.graph.turns import node_event
from trunkline.wires.tryll.messages import NodeEvent

#: What can be typed besides messages, and the keys, with their meanings.
HELP = (
    ("/help", "lists these"),
    ("/exit, /quit, q, Ctrl-C, Ctrl-D", "leave"),
    ("space bar, Esc", "stop the answer; with --push-to-talk, the space bar begins and ends what you say"),
    ("anything else, and Enter", "is said to the agent, as in `trunkline chat`"),
)


class TalkView:
    """Shows what happens; inside `with` the screen is its own."""

    def __init__(self, screen: Screen, view: View) -> None:
        self._screen = screen
        self._view = view
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
        self._view.show(TurnEnded("cancelled"))
        self._screen.end()

    def welcome(self, *about: str) -> None:
        """Say who is talked to."""
        rest = " · ".join(["", *map(printable_line, about)])
        self._view.plain(Text.assemble((f"trunkline {__version__}", "bold"), (rest, "dim")))

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
            lines.append(self._view.line(Text.assemble((f"{PROMPT} ", "bold cyan"), (shown, "dim"), ("…", "cyan"))))
        if self._typed:
            shown = clean(self._typed).replace("\n", " ⏎ ")[-max(8, self._screen.columns - 6) :]
            lines.append(self._view.line(Text.assemble((f"{PROMPT} ", "bold cyan"), shown, ("▏", "cyan"))))
        self._view.draw(typed=lines)

    def typing(self, text: str) -> None:
        """What is being typed."""
        self._typed = text
        self.draw()

    def show(self, event: TalkEvent) -> None:
        match event:
            case Heard(kind="over", text=text):
                self._heard = ""
                if text:
                    self._said = text
                    self._view.user(" ".join(text.split()))
            case Heard(text=text):
                self._heard = text or "listening"
            case Asked(text=text):
                if text != self._said:
                    self._view.user(text)
                self._said = None
                self._view.show(TurnStarted(UserMessage(text)))
            case Words(text=text, anew=anew):
                self._view.show(TextDelta(f"\n\n{text}" if anew else text))
            case Spoken(sound=sound):
                self._view.show(Audio(sound.pcm, sound.sample_rate, sound.channels))
            case Answered(outcome=outcome, message=message):
                self._ended(outcome, message)
            case Trouble(message=message):
                self._view.failure(message)
        self.draw()

    def _ended(self, outcome: str, message: str) -> None:
        took, sound = self._view.elapsed, self._view.sound_seconds
        self._view.show(TurnEnded("success"))
        if outcome == "error":
            self._view.failure(message)
            return
        parts = [f"{sound:.1f} s of sound"] if sound else []
        if parts or took >= 1 or outcome == "cancelled":
            self._view.ended([*parts, words.seconds(took)], stopped=outcome == "cancelled")

    def told(self, event: NodeEvent) -> None:
        self._view.show(node_event(event.node_name, event.event_type, ((p.key, p.value) for p in event.kv_pairs)))
        self.draw()

    def note(self, text: str) -> None:
        self._view.note(text)
        self.draw()
