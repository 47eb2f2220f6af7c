"""One message being answered on the screen, with a person at the keyboard: approvals, stops, and typing ahead."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from trunkline.cli.chat_session import EventQueue
from trunkline.cli.terminal.approval import Question, told
from trunkline.cli.terminal.calls import in_a_line
from trunkline.cli.terminal.interrupts import interrupts
from trunkline.cli.terminal.keys import EditedLine, Key, Keyboard
from trunkline.cli.terminal.paint import PROMPT
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.view import View
from trunkline.core.agent import Decision
from trunkline.core.events import (
    Event,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import UnknownCall
from trunkline.core.preview import SCREEN, WHOLE, PreviewSize
from trunkline.core.session import Session

if TYPE_CHECKING:
    from trunkline.cli.talk_voice import TerminalVoice

#: The shortest time between two frames, and how much longer than a frame took to paint: a long block costs more, and is
#: painted less often.
FRAME_SECONDS = 0.05
FRAME_COSTS = 4

#: Whoever was typing when a question came up did not mean to answer it.
TYPING_SECONDS = 0.7


#: Besides a question and what is typed ahead: a blank line above, and the row that a screen keeps free.
SPARE_ROWS = 2


class TerminalTurn:
    """Plays one turn. Afterwards `typed` holds what was typed and not sent, and `queue` what was."""

    def __init__(
        self,
        session: Session,
        inbox: EventQueue,
        screen: Screen,
        view: View,
        *,
        workspace: str,
        typed: str = "",
        last_key: float = 0.0,
        keyboard: int = 0,
        voice: TerminalVoice | None = None,
        on_voice: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_voice` is called when the space bar is pressed where nothing is typed, if there is a voice."""
        self.typed = EditedLine(typed)
        self.queue: deque[str] = deque()
        self.elapsed = 0.0
        """Seconds that it took."""
        self.gone = False
        """Whether the terminal went away, or they want to leave."""
        self._session = session
        self._inbox = inbox
        self._screen = screen
        self._view = view
        self._workspace = workspace
        self._keyboard = keyboard
        self._voice = voice
        self._on_voice = on_voice
        self._pending: dict[str, ToolRequested] = {}
        self._question: Question | None = None
        self._deaf_until = 0.0
        self._painted_for = 0
        """How wide the screen was for which the question was painted."""
        self.last_key = last_key
        """When a key was last pressed that was no answer to a question."""
        self._stopping = False

    async def run(self, message: UserMessage | None) -> TurnEnded:
        """Answer a message, or with None follow the turn in progress; gives its end.

        Raises:
            Fault: the message was not taken.
        """
        self._stopping = False
        if message is not None:
            self._session.submit(message)
        for request in self._session.waiting:
            self._view.show(request)
            self._note(request)
        began = time.monotonic()
        self._screen.begin()
        keyboard = Keyboard(
            self._keyboard,
            self._pressed,
            on_gone=self._leave,
            on_suspend=self._screen.end,
            on_return=self._screen.begin,
        )
        try:
            with keyboard, interrupts(self.stop, self._screen.end):
                end = await self._follow()
        finally:
            self._screen.end()
            self.elapsed = time.monotonic() - began
        await self._session.at_rest()
        return end

    def stop(self) -> None:
        """Stop the turn, and answer nothing more."""
        self._stopping = True
        if self._voice is not None:
            self._voice.hush()
        self._session.stop()

    async def _follow(self) -> TurnEnded:
        while True:
            began = time.monotonic()
            for event in self._inbox.take():
                self._view.show(event)
                self._note(event)
                if isinstance(event, TurnEnded) and not getattr(self._session, "is_awaited", False):
                    return event
            self._ask_next()
            self._view.draw(self._question_lines(), self._typed_lines())
            cost = time.monotonic() - began
            await asyncio.sleep(max(FRAME_SECONDS, FRAME_COSTS * cost))

    # Approvals.

    def _note(self, event: Event) -> None:
        """Keep the calls that wait for an answer."""
        match event:
            case ToolRequested(call_id=call_id):
                self._pending[call_id] = event
            case (
                ToolAnswered(call_id=call_id)
                | ToolStarted(call_id=call_id)
                | ToolFinished(call_id=call_id)
                | ToolCancelled(call_id=call_id)
            ):
                self._pending.pop(call_id, None)
                if self._question is not None and self._question.request.call_id == call_id:
                    self._question = None

    def _ask_next(self) -> None:
        if self._question is not None or not self._pending or self._stopping:
            return
        request = next(iter(self._pending.values()))
        self._question = self._asked(request, SCREEN)
        if not self._screen.moves:
            self._put(self._question)
            self._view.note(self._question.prompt(len(self._pending) - 1).plain)
        if time.monotonic() - self.last_key < TYPING_SECONDS:
            self._deaf_until = time.monotonic() + TYPING_SECONDS

    def _answer(self, question: Question, decision: Decision) -> None:
        request = question.request
        self._question = None
        self._pending.pop(request.call_id, None)
        try:
            self._session.answer(request.call_id, decision)
        except UnknownCall:
            # It was decided or stopped meanwhile; the screen will say so.
            return
        self._put(question)
        self._view.answered(request, *told(decision, question.grant))
        # What was granted has released others.
        waiting = {other.call_id for other in self._session.waiting}
        self._pending = {call_id: other for call_id, other in self._pending.items() if call_id in waiting}

    def _put(self, question: Question) -> None:
        """Let it stay on the screen; only the line to answer at is live from then on."""
        if not question.is_put:
            question.is_put = True
            self._view.put_asked(question.request, question.lines, is_change=question.shown.is_change)

    def _show_all(self, question: Question) -> None:
        """Show what was left out, in its lasting place; once more, if a part of it has one already."""
        whole = self._asked(question.request, WHOLE)
        question.lines, question.is_cut, question.is_put = whole.lines, False, False
        self._put(question)

    def _asked(self, request: ToolRequested, room: PreviewSize | None) -> Question:
        from trunkline.cli.terminal.preview import preview

        shown = preview(request, self._workspace, room)
        self._painted_for = self._screen.columns
        return Question(request, shown, self._view.asked(shown))

    # Keys.

    def _pressed(self, key: Key) -> None:
        now = time.monotonic()
        question = self._question
        if question is not None and now >= self._deaf_until:
            answer = question.press(key)
            if answer == "leave":
                self._leave()
            elif answer == "stop":
                self.stop()
            elif answer == "all":
                self._show_all(question)
            elif answer is not None:
                self._answer(question, answer)
            return
        self.last_key = now
        if question is not None:
            # Who types on has not seen it yet.
            self._deaf_until = now + TYPING_SECONDS
        self._type(key)

    def _type(self, key: Key) -> None:
        if key.text == " " and not self.typed.text and self._voice is not None:
            self._on_voice()
        elif key.name == "enter" and self.typed.text.endswith("\\"):
            # As at the prompt.
            self.typed = EditedLine(self.typed.text[:-1] + "\n")
        elif key.name == "enter":
            if self.typed.text.strip():
                self.queue.append(self.typed.text)
            self.typed = EditedLine()
        elif key.name == "end":
            if not self.typed.text:
                self._leave()
        elif key.name == "escape":
            if self.typed.text:
                self.typed = EditedLine()
            else:
                self.stop()
        else:
            self.typed.press(key)

    def _leave(self) -> None:
        self.gone = True
        self.stop()

    def _question_lines(self) -> list[str]:
        question = self._question
        if question is None:
            return []
        waiting, columns = len(self._pending) - 1, self._screen.columns
        if question.is_put:
            return self._view.lines(question.prompt(waiting, columns))
        if self._painted_for != columns:
            self._painted_for, question.lines = columns, self._view.asked(question.shown)
        # Of live lines the first ones are not shown where there is no room: these would be what is asked about.
        rows = self._screen.rows - len(self._typed_lines()) - SPARE_ROWS
        room = rows - len(self._view.lines(question.prompt(waiting, columns)))
        if len(question.lines) > room:
            question.is_cut = True
            # There is one more key to press, which may need a line.
            room = rows - len(self._view.lines(question.prompt(waiting, columns)))
        return [*self._view.fitted(question.lines, room), *self._view.lines(question.prompt(waiting, columns))]

    def _typed_lines(self) -> list[str]:
        lines = [self._view.line(Text(f"  next: {in_a_line(text)}", "dim")) for text in self.queue]
        room = max(8, self._screen.columns - 6)
        if self._voice is not None and self._voice.hearing is not None:
            # Of one line the newest words count.
            heard = (in_a_line(self._voice.hearing) or "listening")[-room:]
            lines.append(self._view.line(Text.assemble((f"{PROMPT} ", "bold cyan"), (heard, "dim"), ("…", "cyan"))))
        if self.typed.text:
            shown = in_a_line(self.typed.text)
            lines.append(self._view.line(Text.assemble((f"{PROMPT} ", "bold cyan"), shown[-room:], ("▏", "cyan"))))
        return lines
