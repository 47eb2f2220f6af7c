"""A conversation without a person in front of it: one message or several, an answer to each, and an exit code.

Standard output is the answers and nothing else; everything about them goes to standard error. What a command of the
agent tells (`/diff`) is its answer.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from trunkline.base import jsontext, shapes, stdio
from trunkline.base.printable import printable, printable_line
from trunkline.base.signals import handled
from trunkline.base.writing import EXIT_BROKEN_PIPE, write_or_drop
from trunkline.cli.chat_session import ChatOptions, TerminalSession, opening, resume_command
from trunkline.cli.logged import logged
from trunkline.cli.standard_output import unwritten
from trunkline.cli.terminal import words
from trunkline.cli.wrapping import commands_apart
from trunkline.core import asides, events, records
from trunkline.core.approvals import NOBODY_TO_ASK
from trunkline.core.events import Envelope, ToolJudged, UserMessage
from trunkline.core.graph.turns import NODE_EVENT, TURN_DIAGNOSTICS
from trunkline.core.transcript import tokens
from trunkline.core.usage import Usage

#: How the answer is written: as it is, as one JSON object at the end, or as one JSON object per event.
Form = Literal["text", "json", "jsonl"]

EXIT_FAILED = 1
EXIT_DENIED = 3
_SIGNAL_EXIT = 128

#: Signs of life are told no oftener, and of what takes less none is.
MOMENT_SECONDS = 1.0
#: A reader that takes its time, such as a pager, is waited for; this is how often it is looked after.
_LOOK_SECONDS = 0.02


async def once(options: ChatOptions, messages: AsyncIterable[UserMessage], form: Form) -> int:
    """Ask one message after the other, write the answers, and give the exit code of the last.

    Raises:
        ConfigError: it cannot begin.
    """
    opened = await opening(options)
    teller = write_or_drop(2)

    def tell(text: str) -> None:
        teller(f"{commands_apart(printable_line(text))}\n".encode(errors="backslashreplace"))

    if not options.quiet:
        for note in opened.notes:
            tell(note)
    output = _Output(options, form, tell)
    talk = await TerminalSession.open(options, opened, interactive=False, on_judged=output.judged, tell=tell)
    if talk.told is not None and not options.quiet:
        tell(talk.told)
    code = 0
    try:
        with logged(output.note):
            signals = _Signals(talk)
            output.on_broken = talk.session.stop
            talk.session.attach(output)
            async with aclosing(_until(signals.came, messages)) as asked:
                async for message in asked:
                    output.begin(message)
                    if options.voice is not None and options.voice.listening:
                        output.note(f"You: {message.text}")
                    talk.session.submit(message)
                    await talk.session.at_rest()
                    output.finish(talk)
                    await output.written()
                    # Of several messages, one that failed is not made good by the next.
                    code = code or output.exit_code
                    if output.broken or signals.numbers:
                        break
            if signals.numbers:
                code = _SIGNAL_EXIT + signals.numbers[0]
                output.note("Stopped.")
        if talk.resumable and not options.quiet:
            tell(f"Go on with: {resume_command(options, talk.session.id)}")
    finally:
        await talk.close()
    return code


async def _until(came: asyncio.Event, messages: AsyncIterable[UserMessage]) -> AsyncGenerator[UserMessage, None]:
    """The messages, until a signal comes: whoever has more to say may take their time."""
    iterator, stop = aiter(messages), asyncio.ensure_future(came.wait())
    try:
        while not came.is_set():
            following = asyncio.ensure_future(_next(iterator))
            await asyncio.wait({following, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.wait({following})
                return
            if (message := following.result()) is None:
                return
            yield message
    finally:
        stop.cancel()
        await asyncio.wait({stop})


async def _next(iterator: AsyncIterator[UserMessage]) -> UserMessage | None:
    return await anext(iterator, None)


class _Signals:
    """The first signal stops the turn, a second one ends the program."""

    def __init__(self, talk: TerminalSession) -> None:
        self.numbers: list[int] = []
        """Those that came."""
        self.came = asyncio.Event()
        self._talk = talk
        loop = asyncio.get_running_loop()
        # Only there they can be heard.
        if threading.current_thread() is threading.main_thread():
            for number in handled():
                loop.add_signal_handler(number, self._take, number)

    def _take(self, number: int) -> None:
        self.numbers.append(number)
        if len(self.numbers) > 1:
            os._exit(_SIGNAL_EXIT + number)
        self.came.set()
        self._talk.session.stop()


class _Output:
    """The sink that writes. The agent waits while nobody reads."""

    def __init__(self, options: ChatOptions, form: Form, tell: Callable[[str], None]) -> None:
        self.on_broken: Callable[[], None] | None = None
        self._form = form
        self._tell = tell
        self._quiet = options.quiet
        self._trace = options.trace
        self._terminal = sys.stdout.isatty()
        self._encoding = sys.stdout.encoding or "utf-8"
        mode = os.fstat(1).st_mode
        self._has_reader = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        """Whether somebody reads along, who may leave; a file can only be full."""
        self._writer = stdio.Writer(1, self._broken)
        self.begin(UserMessage(""))

    def begin(self, message: UserMessage) -> None:
        """The next turn: nothing of the last one is left."""
        self._message = message
        self._text: list[str] = []
        self._apart = False
        """Whether a tool was used since the last text."""
        self._tools: dict[str, dict[str, Any]] = {}
        self._denied: list[str] = []
        self._unasked: set[str] = set()
        """Those that somebody could have allowed."""
        self._errors: list[dict[str, Any]] = []
        self._extensions: list[dict[str, Any]] = []
        self._diagnostics: Mapping[str, Any] | None = None
        self._sound_seconds = 0.0
        self._plan: events.Plan | None = None
        """The last one that was told."""
        self._said_last = ("", time.monotonic())
        """The last sign of life that was told, and when."""
        self._end: events.TurnEnded | None = None
        self._held = ""
        """What was told last after a message that may be a command: it is the answer, if nothing else comes."""

    # The sink.

    @property
    def congested(self) -> bool:
        return self._writer.congested

    async def drain(self) -> None:
        await self._writer.drain()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            if self._form == "jsonl":
                self._writer.write(records.encode(envelope) + b"\n")
            self._take(envelope.event)
        self._writer.flush()

    def judged(self, event: ToolJudged) -> None:
        """The approval policy answered a call."""
        self._know(event.call_id, event.name, event.description)
        if event.verdict == "deny":
            self._denied.append(event.name)
            if event.why.startswith(NOBODY_TO_ASK):
                self._unasked.add(event.name)

    # What it makes of them.

    def _take(self, event: events.Event) -> None:
        if self._held and not isinstance(event, events.Progress | events.Extension):
            held, self._held = self._held, ""
            if isinstance(event, events.TurnEnded) and event.outcome == "success":
                self._say(held)
            else:
                self.note(held)
        match event:
            case events.TextDelta(text=text):
                self._say(text)
            case events.ToolRequested(call_id=call_id, name=name, description=description):
                self._know(call_id, name, description)
            case events.ToolStarted(call_id=call_id, name=name):
                tool = self._know(call_id, name, "")
                tool["status"] = "running"
                self.note(f"{name}: {tool['description']}" if tool["description"] else name)
            case events.ToolFinished(call_id=call_id, name=name, status=status):
                self._know(call_id, name, "")["status"] = status
                if status == "error":
                    self.note(f"{name} failed")
            case events.ToolCancelled(call_id=call_id, reason=reason):
                tool = self._know(call_id, "tool", "")
                began = tool["status"] == "running"
                tool["status"] = "cancelled"
                self.note(f"{tool['name']} was {'ended' if began else 'not run'}: {reason}")
            case events.Failed(kind=kind, message=message, retryable=retryable):
                self._errors.append({"kind": kind, "message": message, "retryable": retryable})
                self._break_line()
                self._tell(f"Error: {message}")
            case events.TurnEnded():
                self._end = event
            case _:
                self._take_aside(event)

    def _take_aside(self, event: events.Event) -> None:
        """What is neither the answer nor a tool."""
        match event:
            case events.Notice(message=message):
                if self._message.text.startswith("/") and not self._text and not self._tools:
                    self._held = message
                else:
                    self.note(message)
            case events.Plan():
                for line in event.since(self._plan).splitlines():
                    self.note(line)
                self._plan = event
            case events.Progress(message=message, call_id=None):
                said, told_at = self._said_last
                if message != said and time.monotonic() - told_at >= MOMENT_SECONDS:
                    self._said_last = (message, time.monotonic())
                    self.note(message)
            case events.Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS:
                self._diagnostics = data
            case events.Extension(kind=kind, data=data):
                self._extensions.append(_flat(kind, data))
                if self._form == "text" and kind not in events.UNSEEN:
                    # The other forms have it.
                    self.note(asides.told(event))
            case events.Audio():
                self._sound_seconds += asides.seconds(event)

    def _say(self, text: str) -> None:
        if self._apart and self._text and not self._text[-1].endswith("\n"):
            text = f"\n{text}"
        self._apart = False
        self._text.append(text)
        if self._form == "text":
            self._write(text)

    def _write(self, text: str) -> None:
        # A terminal would obey what a file only keeps.
        shown = printable(text) if self._terminal else text
        errors = "replace" if self._terminal else "backslashreplace"
        self._writer.write(shown.encode(self._encoding, errors))

    def _know(self, call_id: str, name: str, description: str) -> dict[str, Any]:
        self._apart = True
        return self._tools.setdefault(call_id, {"name": name, "description": description, "status": None})

    def note(self, text: str) -> None:
        """Something about the answer, on standard error."""
        if not self._quiet:
            self._break_line()
            self._tell(text)

    def _break_line(self) -> None:
        """On a terminal, both outputs share the screen."""
        if self._terminal and self._form == "text" and self._text and not self._text[-1].endswith("\n"):
            self._text.append("\n")
            self._write("\n")

    def _broken(self) -> None:
        if self.on_broken is not None:
            self.on_broken()

    # The end.

    @property
    def broken(self) -> bool:
        """Whether nothing more can be written."""
        return self._writer.broken

    @property
    def exit_code(self) -> int:
        if self._writer.broken:
            return EXIT_BROKEN_PIPE if self._has_reader else EXIT_FAILED
        if self._end is not None and self._end.outcome == "success":
            return 0
        return EXIT_DENIED if self._denied else EXIT_FAILED

    def finish(self, talk: TerminalSession) -> None:
        """Write what comes last."""
        usage = self._end.usage if self._end else None
        if self._form == "json":
            self._writer.write(jsontext.dumps(self._summary(talk, usage)) + b"\n")
        elif self._form == "text" and self._text and not self._text[-1].endswith("\n"):
            self._write("\n")
        self._writer.flush()
        if self._writer.error is not None and not self._has_reader:
            self._tell(f"Error: {unwritten(self._writer.error)}")
        if self._unasked and not self._quiet:
            names = ", ".join(sorted(self._unasked))
            self._tell(f"There was nobody to ask about {names}. Allow it with `--allow`, `--mode` or `--auto-approve`.")
        if self._trace and self._diagnostics is not None and self._form == "text":
            self.note(asides.way(self._diagnostics, self._sound_seconds))
        elif usage is not None and usage.known and not self._quiet:
            cost = talk.cost(usage)
            self._tell(tokens(usage) if cost is None else f"{tokens(usage)}; cost: {words.money(cost)}")

    async def written(self) -> None:
        """Wait until all of it has been read, or cannot be."""
        while self._writer.unwritten:  # noqa: ASYNC110  (the writer does not tell)
            await asyncio.sleep(_LOOK_SECONDS)

    def _summary(self, talk: TerminalSession, usage: Usage | None) -> dict[str, Any]:
        sound = {"sound_seconds": round(self._sound_seconds, 3)} if self._sound_seconds else {}
        return {
            **(self._traced() if self._diagnostics is not None else {}),
            "session": talk.session.id if talk.kept else None,
            "agent": talk.agent.name,
            "model": talk.model,
            "outcome": self._end.outcome if self._end else "unknown",
            "text": "".join(self._text),
            "usage": None if usage is None else shapes.encode(usage),
            "cost_usd": talk.cost(usage),
            "tools": list(self._tools.values()),
            "denied": self._denied,
            "errors": self._errors,
            "events": self._extensions,
            **sound,
        }

    def _traced(self) -> dict[str, Any]:
        """What is known of the way that the turn took."""
        found = asides.summary(self._diagnostics or {})
        return {"message": self._message.text, "answer": "".join(self._text), "events": self._extensions, **found}


def _flat(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """An extension as a JSON object. What a node tells has its pairs beside its name."""
    pairs = data.get("pairs")
    if kind == NODE_EVENT and isinstance(pairs, Mapping):
        return {"node": data.get("node"), "type": data.get("type"), **pairs}
    return {"kind": kind, **data}
