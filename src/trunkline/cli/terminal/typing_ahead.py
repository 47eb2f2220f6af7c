"""What people type while an answer goes on: a line, what is queued behind the answer, and what is put into it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from trunkline.cli.terminal.calls import in_a_line
from trunkline.cli.terminal.keys import EditedLine, Key
from trunkline.cli.terminal.paint import PROMPT
from trunkline.cli.terminal.pasting import PastedThings
from trunkline.cli.terminal.view import View
from trunkline.core.faults import Fault
from trunkline.core.session import Session

if TYPE_CHECKING:
    from trunkline.cli.talk_voice import TerminalVoice

#: Messages in the queue that are shown.
MOST_SHOWN = 5
#: Of what is typed at least so much is shown, and around it stand a mark, a cursor and columns that stay free.
LEAST_SHOWN, SHOWN_ENDS = 8, 6


class TypedAhead:
    """Takes keys. Afterwards `text` is what was typed and not sent, and `queue` what was."""

    def __init__(
        self,
        session: Session,
        view: View,
        pasted: PastedThings,
        text: str = "",
        *,
        stop: Callable[[], None],
        leave: Callable[[], None],
        voice: TerminalVoice | None = None,
        on_voice: Callable[[], None] = lambda: None,
    ) -> None:
        """`stop` and `leave` are called when that is what a key means where nothing is typed."""
        self.queue: deque[str] = deque()
        self._session = session
        self._view = view
        self._pasted = pasted
        self._line = EditedLine(text)
        self._stop = stop
        self._leave = leave
        self._voice = voice
        self._on_voice = on_voice
        self._pasting: asyncio.Task[None] | None = None
        self._keys: dict[str, Callable[[], None]] = {
            "enter": self._enter,
            "tab": self._steer,
            "up": self._take_back,
            "clipboard": self._paste,
            "end": self._end,
            "escape": self._escape,
        }

    @property
    def text(self) -> str:
        """What was typed and not sent."""
        return self._line.text

    async def close(self) -> None:
        """Wait for nothing any more."""
        if self._pasting is not None:
            self._pasting.cancel()
            await asyncio.wait({self._pasting})

    def press(self, key: Key) -> None:
        """Take a key."""
        if key.text == " " and not self.text and self._voice is not None:
            self._on_voice()
        elif key.name in self._keys:
            self._keys[key.name]()
        else:
            self._line.press(Key(text=self._pasted.take(key.text)) if key.is_pasted else key)

    def lines(self, columns: int, *, hints: bool) -> list[str]:
        """What is queued, heard and typed, and with `hints` what the keys do."""
        lines = [f"  next: {in_a_line(text)}" for text in list(self.queue)[:MOST_SHOWN]]
        if len(self.queue) > MOST_SHOWN:
            lines.append(f"  … and {len(self.queue) - MOST_SHOWN} more")
        shown = [Text(line, "dim") for line in lines]
        room = max(LEAST_SHOWN, columns - SHOWN_ENDS)
        if self._voice is not None and self._voice.hearing is not None:
            # Of one line the newest words count.
            heard = (in_a_line(self._voice.hearing) or "listening")[-room:]
            shown.append(Text.assemble((f"{PROMPT} ", "bold cyan"), (heard, "dim"), ("…", "cyan")))
        if self.text:
            shown.append(Text.assemble((f"{PROMPT} ", "bold cyan"), in_a_line(self.text)[-room:], ("▏", "cyan")))
        return [self._view.line(text) for text in (*shown, *((self._hint(),) if hints else ()))]

    def _hint(self) -> Text:
        steers = self._session.capabilities.steerable
        if self.text:
            return Text(f"  Enter queues it{' · Tab sends it now' if steers else ''} · Esc clears", "dim")
        takes_back = " · ↑ takes it back" if self.queue else ""
        return Text(f"{PROMPT} type ahead: Enter queues{', Tab sends at once' if steers else ''}{takes_back}", "dim")

    # Keys.

    def _enter(self) -> None:
        if self.text.endswith("\\"):
            # As at the prompt.
            self._line = EditedLine(self.text[:-1] + "\n")
            return
        if self.text.strip():
            self.queue.append(self.text)
        self._line = EditedLine()

    def _steer(self) -> None:
        """Put what was typed into the answer; behind it, where the agent reads nothing before its end."""
        text = self.text
        if not text.strip():
            return
        self._line = EditedLine()
        # A command is for the time after the answer, as everywhere.
        if not text.startswith("/") and self._session.steer(self._pasted.message(text)):
            self._view.steered(text)
        else:
            self.queue.append(text)

    def _take_back(self) -> None:
        if self.queue and not self.text:
            self._line = EditedLine(self.queue.pop())

    def _end(self) -> None:
        if not self.text:
            self._leave()

    def _escape(self) -> None:
        if self.text:
            self._line = EditedLine()
        else:
            self._stop()

    def _paste(self) -> None:
        if self._pasting is None or self._pasting.done():
            self._pasting = asyncio.create_task(self._paste_picture(), name="clipboard")

    async def _paste_picture(self) -> None:
        from trunkline.cli.terminal import clipboard

        try:
            picture = await clipboard.picture()
        except Fault as fault:
            self._view.note(str(fault))
        else:
            self._line.press(Key(text=f"{self._pasted.picture(picture)} "))
