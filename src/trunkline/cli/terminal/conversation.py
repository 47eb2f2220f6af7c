"""`trunkline chat` with a person in front of it: read, answer, and so on, until they leave."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from rich.text import Text

from trunkline.base.printable import printable_line
from trunkline.cli.chat_files import unfound
from trunkline.cli.chat_session import ChatOptions, EventQueue, Opening, TerminalSession, resume_command
from trunkline.cli.opening import settings_of
from trunkline.cli.terminal import commands, greeting, words
from trunkline.cli.terminal.offered_models import OfferedModels, choose_alike
from trunkline.cli.terminal.paint import encoding_of, painter_for, writer_to
from trunkline.cli.terminal.pasting import PastedThings
from trunkline.cli.terminal.prompt import InputPrompt, standing
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.status import Status
from trunkline.cli.terminal.turn import TerminalTurn
from trunkline.cli.terminal.view import View
from trunkline.core.events import Notice, TurnEnded, UserMessage
from trunkline.core.faults import Fault
from trunkline.core.log import SessionInfo
from trunkline.core.session import Session

if TYPE_CHECKING:
    from trunkline.cli.talk_voice import TerminalVoice

DEFAULT_SIZE = (80, 24)
#: How often it is shown what a command has to say that takes long.
SHOW_SECONDS = 0.1
#: How often it is looked whether something still runs in the background: it ends by itself, and nobody tells.
LOOK_SECONDS = 0.5


class TerminalConversation:
    """One sitting at the terminal, with one session after the other. It is what `commands` act on."""

    def __init__(self, options: ChatOptions, opened: Opening, talk: TerminalSession, inbox: EventQueue) -> None:
        self.workspace = options.directory
        self._options = options
        self._voice = options.voice
        self._pressing: asyncio.Task[None] | None = None
        self._opened = opened
        self._talk = talk
        self._inbox = inbox
        self._spent: float | None = None
        self._models = OfferedModels(opened.settings)
        self._leaving = False
        self._doing: asyncio.Task[str] | None = None
        """The command that is being carried out."""
        self._queue: deque[str] = deque()
        self._typed = ""
        self._last_key = 0.0
        """When a key was last pressed during an answer: whoever types on while the next begins is not answering."""
        self._needed = asyncio.Event()
        self._screen, self.view = on_terminal()
        self.view.traces = options.trace
        self._pasted = PastedThings(self.workspace)
        self._prompt = InputPrompt(
            lambda: commands.offered(self),
            lambda command: commands.arguments(self, command, attached=self._options.attach),
            self.workspace,
            mode=lambda: standing(self.session.mode, self.session.capabilities),
            pasted=self._pasted,
            tell=self.note,
            status=self._status,
            on_mode=self._next_mode,
            voice=options.voice,
            on_voice=self._press,
        )
        self.session.attach(inbox)

    @property
    def session(self) -> Session:
        return self._talk.session

    @property
    def agent_commands(self) -> Mapping[str, str]:
        return getattr(self.session, "commands", None) or getattr(self._talk.agent, "commands", {})

    @property
    def spoken(self) -> bool:
        return self._voice is not None

    @property
    def traced(self) -> bool:
        return bool(self._opened.options.get("diagnostics"))

    @property
    def model(self) -> str | None:
        return self._talk.model

    @property
    def model_note(self) -> str:
        return getattr(self._talk.agent, "model_note", "")

    @property
    def spent(self) -> str:
        return "" if self._spent is None else words.money(self._spent)

    async def models(self) -> list[str]:
        return await self._models.ask(self._talk.agent)

    def known_models(self) -> list[str]:
        return self._models.known

    def note(self, text: str) -> None:
        """Something that nobody said."""
        self._inbox.put(Notice(text))

    def use_model(self, name: str) -> None:
        self._talk.model = name

    def leave(self) -> None:
        self._leaving = True

    async def run(self) -> None:
        """Read and answer, again and again."""
        if not self._options.quiet:
            self._welcome()
        if self._options.resume is not None:
            self._recall()
        while not self._leaving:
            self._show_news()
            if self._talk.gone is not None:
                raise self._talk.gone
            if self._talk.in_progress:
                # Somebody else's, or one in which somebody was asked when the last process ended.
                await self._answer(None)
                continue
            try:
                text, spoken = await self._next()
            except EOFError:
                return
            self.view.typed()
            if spoken:
                # Whatever it sounds like, it is no command, and names no file.
                await self._answer(UserMessage(text))
            elif said := await self._command(text):
                for note in unfound(said, self.workspace):
                    self.view.note(note)
                await self._answer(self._pasted.message(said))

    async def _command(self, text: str) -> str:
        """Carry out what was typed, if it is a command; gives what is for the agent. Ctrl-C stops it."""
        self._doing = asyncio.create_task(commands.run(self, text), name="command")
        try:
            while not (await asyncio.wait({self._doing}, timeout=SHOW_SECONDS))[0]:
                # What it has to say so far.
                self._screen.frame()
            return self._doing.result()
        except asyncio.CancelledError:
            if not self._doing.cancelled():
                # It is we who are to end, and not the command.
                self._doing.cancel()
                await asyncio.wait({self._doing})
                raise
            self.view.note("Stopped.")
            return ""
        finally:
            self._doing = None

    def interrupt(self) -> None:
        """Stop a command that takes long."""
        if self._doing is not None:
            self._doing.cancel()

    async def close(self, *, suspended: bool = False) -> None:
        """End the session, and say how to come back to it. `suspended`: a question that is open stays so."""
        talk = self._talk
        # What was not sent can be had with the arrow key the next time.
        self._prompt.remember("\n".join(filter(None, [*self._queue, self._typed])))
        if talk.resumable and not self._options.quiet:
            command = printable_line(resume_command(talk.as_chosen(self._options), talk.session.id))
            self.view.unbroken(Text.assemble(("Go on with: ", "dim"), command))
        self._screen.frame()
        await (talk.suspend() if suspended else talk.close())

    async def listed(self) -> list[SessionInfo] | None:
        if not self._options.attach:
            return None
        from trunkline.cli import local_exchange

        path = f"/api/sessions?limit={commands.LISTED_SESSIONS}"
        rows = (await asyncio.to_thread(local_exchange.request, "GET", path))["sessions"]
        fields = ("id", "workspace", "created_at", "updated_at", "agent")
        found = [SessionInfo(*(row[field] for field in fields)) for row in rows]
        return [info.replace(created=info.created / 1000, updated=info.updated / 1000) for info in found]

    async def switch(self, resume: str | None) -> None:
        if resume is not None and resume == self.session.id:
            self.view.note("This is that session.")
            return
        options = self._options.replace(resume=resume, session_id=None)
        if options.attach:
            # A session of the exchange may be another agent's; a new one is this one's.
            options = options.replace(agent=None if resume is not None else self._talk.agent.name)
        talk = await TerminalSession.open(
            options, self._opened, interactive=True, on_judged=self._inbox.put, tell=self._tell_now
        )
        before, self._talk = self._talk, talk
        chosen = before.session.capabilities
        self._options = self._options.replace(agent=talk.agent.name) if options.attach else self._options
        if before.resumable:
            self.view.note(f"Session {before.session.id} is kept.")
        before.session.detach(self._inbox)
        await before.close()
        self.session.attach(self._inbox)
        if self._voice is not None:
            await self._voice.listen()
        if resume is None:
            talk.model = await choose_alike(talk.session, chosen) or talk.model
            self.view.note("A new session.")
        else:
            self._recall()

    # What is shown besides answers.

    def _tell_now(self, text: str) -> None:
        """Not when the next prompt comes: this is what it waits for."""
        self.view.note(text)
        self._screen.frame()

    def _welcome(self) -> None:
        greeting.welcome(self.view, self._talk, self.workspace, self._opened.notes)
        if self._voice is not None and self._voice.push_to_talk:
            self.view.note("Press the space bar to talk, and again when you are done. You can also type.")
        elif self._voice is not None:
            self.view.note("Speak: the agent listens. The space bar silences it. You can also type.")

    def _recall(self) -> None:
        greeting.recall(self.view, self._talk, commands.place(attached=self._options.attach))

    def _status(self) -> Status:
        session = self.session
        return Status(
            self.model or "",
            session.capabilities.effort,
            getattr(session, "context", None) or self.view.context,
            self.spent,
            self._in_background,
            session.capabilities.sandbox,
        )

    def _show_news(self) -> None:
        for event in self._inbox.take():
            self.view.show(event)
        self.view.draw()

    # Reading.

    async def _next(self) -> tuple[str, bool]:
        """What was typed during the last answer, else what is typed or said now, and whether it was said.

        Raises:
            EOFError: they want to leave.
        """
        if self._voice is not None and (said := self._voice.take()) is not None:
            # The server answers it already: whatever was typed would stop that.
            self.view.user(said)
            return said, True
        if not self._queue:
            return await self._read()
        text = self._queue.popleft()
        self.view.user(text)
        return text, False

    async def _read(self) -> tuple[str, bool]:
        typed, self._typed = self._typed, ""
        self.view.space()
        self._screen.frame()
        watching = {
            asyncio.create_task(self._watch(), name="show what happens between turns"),
            asyncio.create_task(self._look_after_background(), name="look after the background"),
        }
        try:
            if self._voice is not None:
                return await self._read_or_hear(self._voice, typed)
            return await self._read_unless_needed(typed), False
        finally:
            for task in watching:
                task.cancel()
            await asyncio.wait(watching)

    async def _read_unless_needed(self, typed: str) -> str:
        """What is typed; nothing, if a person is asked meanwhile, or the exchange is gone."""
        self._needed.clear()
        reading = asyncio.create_task(self._prompt.read(typed), name="prompt")
        needed = asyncio.create_task(self._needed.wait(), name="a question")
        try:
            await asyncio.wait({reading, needed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            needed.cancel()
            self._typed = await self._prompt.leave(reading)
        if self._prompt.left:
            return ""
        return reading.result()

    async def _read_or_hear(self, voice: TerminalVoice, typed: str) -> tuple[str, bool]:
        while (said := voice.take()) is None:
            reading = asyncio.create_task(self._prompt.read(typed), name="prompt")
            hearing = asyncio.create_task(voice.news.wait(), name="speech")
            try:
                await asyncio.wait({reading, hearing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                hearing.cancel()
                # What is typed stays theirs: it stands at the next prompt.
                typed = await self._prompt.leave(reading)
            if not self._prompt.left:
                return reading.result(), False
            if voice.over:
                raise EOFError
        self._typed = typed
        self.view.user(said)
        return said, True

    def _press(self) -> None:
        """The space bar, where nothing is typed."""
        voice = self._voice
        if voice is not None and (self._pressing is None or self._pressing.done()):
            self._pressing = asyncio.create_task(self._pressed(voice), name="space bar")

    async def _pressed(self, voice: TerminalVoice) -> None:
        try:
            await voice.press()
        except Fault as fault:
            self.note(str(fault))

    async def _watch(self) -> None:
        """Between turns the prompt owns the terminal; what happens is shown above it."""
        while True:
            await self._inbox.news.wait()
            await run_in_terminal(self._show_news_above)
            if self._talk.gone is not None or (self._talk.joined and self.session.waiting):
                self._needed.set()

    async def _look_after_background(self) -> None:
        """Tell what ends there while nothing else goes on. What is told has the line above the prompt drawn anew."""
        running = self._in_background
        while running:
            await asyncio.sleep(LOOK_SECONDS)
            before, running = running, self._in_background
            if (ended := before - running) > 0:
                what = "A command in the background has" if ended == 1 else f"{ended} commands in the background have"
                self.note(f"{what} ended. /bashes lists them.")

    @property
    def _in_background(self) -> int:
        return getattr(self.session, "background", 0)

    def _show_news_above(self) -> None:
        self.view.spaced()
        self._show_news()
        self.view.space()
        self._screen.frame()

    def _next_mode(self) -> None:
        modes = commands.MODES
        self.session.set_mode(modes[(modes.index(self.session.mode) + 1) % len(modes)])

    # Answering.

    async def _answer(self, message: UserMessage | None) -> None:
        """With None: the turn in progress, which somebody else asked for."""
        typed, self._typed = self._typed, ""
        turn = TerminalTurn(
            self.session,
            self._inbox,
            self._screen,
            self.view,
            workspace=self.workspace,
            typed=typed,
            last_key=self._last_key,
            pasted=self._pasted,
            voice=self._voice,
            on_voice=self._press,
            keeps=settings_of(self._talk.agent) is not None,
        )
        try:
            end = await turn.run(message)
        except Fault as fault:
            if self._talk.gone is None:
                self.view.failure(str(fault))
            return
        except BaseException:
            # The terminal is gone, or we are told to end.
            self._unsent(turn)
            raise
        self._leaving = self._leaving or turn.gone
        self._last_key = turn.last_key
        if end.outcome == "cancelled":
            # What was to follow the answer that nobody wanted is not sent unasked; nor is it lost.
            self._unsent(turn)
        else:
            self._queue.extend(turn.ahead.queue)
            self._typed = turn.ahead.text
        self._account(end, turn.elapsed)

    def _unsent(self, turn: TerminalTurn) -> None:
        self._typed = "\n".join(filter(None, [*self._queue, *turn.ahead.queue, turn.ahead.text]))
        self._queue.clear()

    def _account(self, end: TurnEnded, elapsed: float) -> None:
        parts = words.tokens(end.usage)
        if self.view.sound_seconds:
            parts.append(f"{self.view.sound_seconds:.1f} s of sound")
        cost = self._talk.cost(end.usage)
        if cost is not None:
            self._spent = (self._spent or 0.0) + cost
            # A command that asked no model has cost nothing.
            parts += [words.money(cost)] if cost else []
        stopped = end.outcome == "cancelled"
        # Nobody wants to read how long nothing took.
        if parts or stopped or elapsed >= 1:
            self.view.ended([*parts, words.seconds(elapsed)], stopped=stopped)
        self._screen.frame()


def on_terminal() -> tuple[Screen, View]:
    """The terminal that standard output is, and how a conversation looks there."""
    dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
    screen = Screen(writer_to(1, encoding_of(sys.stdout)), _size, moves=not dumb)
    return screen, View(screen, painter_for(lambda: screen.columns))


def _size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return DEFAULT_SIZE
    # Some terminals do not know, and say 0.
    return size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1]
