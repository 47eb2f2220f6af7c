"""One message being answered on the screen, with a person at the keyboard: approvals, stops, and typing ahead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from trunkline.base import browser
from trunkline.cli.chat_session import EventQueue
from trunkline.cli.terminal.approval import Question, told
from trunkline.cli.terminal.interrupts import interrupts
from trunkline.cli.terminal.keys import Key, Keyboard
from trunkline.cli.terminal.pasting import PastedThings
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.typing_ahead import TypedAhead
from trunkline.cli.terminal.view import View
from trunkline.core.agent import Decision
from trunkline.core.events import (
    MCP_LOGIN,
    Event,
    Extension,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import Fault, UnknownCall
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
    """Plays one turn."""

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
        pasted: PastedThings | None = None,
        voice: TerminalVoice | None = None,
        on_voice: Callable[[], None] = lambda: None,
        keeps: bool = False,
    ) -> None:
        """`on_voice` is called when the space bar is pressed where nothing is typed, if there is a voice. `keeps`: what
        is allowed for always can be kept for later sessions."""
        self.ahead = TypedAhead(
            session,
            view,
            pasted or PastedThings(workspace),
            typed,
            stop=self.stop,
            leave=self._leave,
            voice=voice,
            on_voice=on_voice,
        )
        """What is typed meanwhile."""
        self.elapsed = 0.0
        """Seconds that it took."""
        self.gone = False
        """Whether they want to leave."""
        self._is_gone = False
        """Whether the terminal went away."""
        self._session = session
        self._inbox = inbox
        self._screen = screen
        self._view = view
        self._workspace = workspace
        self._keeps = keeps
        self._keyboard = keyboard
        self._voice = voice
        self._pending: dict[str, ToolRequested] = {}
        self._question: Question | None = None
        self._deaf_until = 0.0
        self._painted_for = 0
        """How wide the screen was for which the question was painted."""
        self.last_key = last_key
        """When a key was last pressed that was no answer to a question."""
        self._stopping = False
        self._logs_in = False
        """Whether somebody has just asked for a login: nobody else makes a browser open anything."""

    async def run(self, message: UserMessage | None) -> TurnEnded:
        """Answer a message, or with None follow the turn in progress; gives its end.

        Raises:
            Fault: the message was not taken.
            EOFError: the terminal is gone. The turn was not stopped.
        """
        self._stopping = False
        if message is not None:
            self._logs_in = message.text.split()[:2] == ["/mcp", "login"]
            self._session.submit(message)
        for request in self._session.waiting:
            self._view.show(request)
            self._note(request)
        began = time.monotonic()
        self._screen.begin()
        keyboard = Keyboard(
            self._keyboard,
            self._pressed,
            on_gone=self._vanish,
            on_suspend=self._screen.end,
            on_return=self._screen.begin,
        )
        try:
            with keyboard, interrupts(self.stop, self._screen.end):
                end = await self._follow()
        finally:
            self._screen.end()
            self.elapsed = time.monotonic() - began
            await self.ahead.close()
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
            if self._is_gone:
                raise EOFError
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
            case Extension(kind=kind, data=data) if kind == MCP_LOGIN and self._logs_in:
                # In a thread that nobody waits for: some browsers end only when their window is closed.
                threading.Thread(target=browser.show, args=(str(data.get("url", "")),), daemon=True).start()

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
        self._view.calls.answered(request, *told(decision, question.grant))
        if question.is_kept:
            self._keep(question)
        # What was granted has released others.
        waiting = {other.call_id for other in self._session.waiting}
        self._pending = {call_id: other for call_id, other in self._pending.items() if call_id in waiting}

    def _keep(self, question: Question) -> None:
        from trunkline.cli.terminal.permissions import keep

        try:
            self._view.note(self._session.clean(keep(self._session, self._workspace, question.grant.rules)))
        except Fault as fault:
            self._view.failure(str(fault))

    def _put(self, question: Question) -> None:
        """Let it stay on the screen; only the line to answer at is live from then on."""
        if not question.is_put:
            question.is_put = True
            self._view.calls.put_asked(question.request, question.lines, is_change=question.shown.is_change)

    def _show_all(self, question: Question) -> None:
        """Show what was left out, in its lasting place; once more, if a part of it has one already."""
        whole = self._asked(question.request, WHOLE)
        question.lines, question.is_cut, question.is_put = whole.lines, False, False
        self._put(question)

    def _asked(self, request: ToolRequested, room: PreviewSize | None) -> Question:
        from trunkline.cli.terminal.preview import preview

        shown = preview(request, self._workspace, room)
        self._painted_for = self._screen.columns
        return Question(request, shown, self._view.calls.asked(shown), keeps=self._keeps)

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
        self.ahead.press(key)

    def _vanish(self) -> None:
        self._is_gone = True

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
            self._painted_for, question.lines = columns, self._view.calls.asked(question.shown)
        # Of live lines the first ones are not shown where there is no room: these would be what is asked about.
        rows = self._screen.rows - len(self._typed_lines()) - SPARE_ROWS
        room = rows - len(self._view.lines(question.prompt(waiting, columns)))
        if len(question.lines) > room:
            question.is_cut = True
            # There is one more key to press, which may need a line.
            room = rows - len(self._view.lines(question.prompt(waiting, columns)))
        fitted = self._view.calls.fitted(question.lines, room, question.shown.missing)
        return [*fitted, *self._view.lines(question.prompt(waiting, columns))]

    def _typed_lines(self) -> list[str]:
        hints = self._question is None and not self._stopping and self._screen.moves
        return self.ahead.lines(self._screen.columns, hints=hints)
