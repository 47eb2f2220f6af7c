"""`trunkline chat` without a person in front of it: one message, one answer, an exit code.

Standard output is the answer and nothing else; everything about it goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from trunkline.base import jsontext, shapes, stdio
from trunkline.base.printable import printable, printable_line
from trunkline.base.signals import handled
from trunkline.base.writing import EXIT_BROKEN_PIPE, write_or_drop
from trunkline.cli.chat_session import ChatOptions, Talk, opening, resume_command
from trunkline.cli.terminal import words
from trunkline.cli.transcript import tokens
from trunkline.core import events, records
from trunkline.core.events import Envelope, ToolJudged, UserMessage
from trunkline.core.usage import Usage

#: How the answer is written: as it is, as one JSON object at the end, or as one JSON object per event.
Form = Literal["text", "json", "jsonl"]

EXIT_FAILED = 1
EXIT_DENIED = 3
_SIGNAL_EXIT = 128

#: A reader that takes its time, such as a pager, is waited for; this is how often it is looked after.
_LOOK_SECONDS = 0.02


async def once(options: ChatOptions, message: UserMessage, form: Form) -> int:
    """Ask, write the answer, and give the exit code.

    Raises:
        ConfigError: it cannot begin.
    """
    opened = await opening(options)
    teller = write_or_drop(2)

    def tell(text: str) -> None:
        teller(f"{printable_line(text)}\n".encode(errors="backslashreplace"))

    if not options.quiet:
        for note in opened.notes:
            tell(note)
    output = _Output(form, tell, quiet=options.quiet)
    talk = await Talk.open(options, opened, interactive=False, on_judged=output.judged, tell=tell)
    if talk.told is not None and not options.quiet:
        tell(talk.told)
    try:
        signals = _stop_at_signals(talk)
        output.on_broken = talk.session.stop
        talk.session.attach(output)
        talk.session.submit(message)
        await talk.session.at_rest()
        output.finish(talk)
        await output.written()
        code = _SIGNAL_EXIT + signals[0] if signals else output.exit_code
        if talk.resumable and not options.quiet:
            tell(f"Go on with: {resume_command(options, talk.session.id)}")
    finally:
        await talk.close()
    return code


def _stop_at_signals(talk: Talk) -> list[int]:
    """The first signal stops the turn, a second one ends the program. Gives those that came."""
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def on_signal(number: int) -> None:
        came.append(number)
        if len(came) > 1:
            os._exit(_SIGNAL_EXIT + number)
        talk.session.stop()

    for number in handled():
        loop.add_signal_handler(number, on_signal, number)
    return came


class _Output:
    """The sink that writes. The agent waits while nobody reads."""

    def __init__(self, form: Form, tell: Callable[[str], None], *, quiet: bool) -> None:
        self.on_broken: Callable[[], None] | None = None
        self._form = form
        self._tell = tell
        self._quiet = quiet
        self._terminal = sys.stdout.isatty()
        self._encoding = sys.stdout.encoding or "utf-8"
        mode = os.fstat(1).st_mode
        self._has_reader = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        """Whether somebody reads along, who may leave; a file can only be full."""
        self._writer = stdio.Writer(1, self._broken)
        self._text: list[str] = []
        self._apart = False
        """Whether a tool was used since the last text."""
        self._tools: dict[str, dict[str, Any]] = {}
        self._denied: list[str] = []
        self._errors: list[dict[str, Any]] = []
        self._end: events.TurnEnded | None = None

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

    # What it makes of them.

    def _take(self, event: events.Event) -> None:
        match event:
            case events.TextDelta(text=text):
                self._say(text)
            case events.ToolRequested(call_id=call_id, name=name, description=description):
                self._know(call_id, name, description)
            case events.ToolStarted(call_id=call_id, name=name):
                tool = self._know(call_id, name, "")
                tool["status"] = "running"
                self._note(f"{name}: {tool['description']}" if tool["description"] else name)
            case events.ToolFinished(call_id=call_id, name=name, status=status):
                self._know(call_id, name, "")["status"] = status
                if status == "error":
                    self._note(f"{name} failed")
            case events.ToolCancelled(call_id=call_id, reason=reason):
                tool = self._know(call_id, "tool", "")
                began = tool["status"] == "running"
                tool["status"] = "cancelled"
                self._note(f"{tool['name']} was {'ended' if began else 'not run'}: {reason}")
            case events.Failed(kind=kind, message=message, retryable=retryable):
                self._errors.append({"kind": kind, "message": message, "retryable": retryable})
                self._break_line()
                self._tell(f"trunkline chat: {message}")
            case events.Notice(message=message):
                self._note(message)
            case events.TurnEnded():
                self._end = event

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

    def _note(self, text: str) -> None:
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
    def exit_code(self) -> int:
        if self._writer.broken:
            return EXIT_BROKEN_PIPE if self._has_reader else EXIT_FAILED
        if self._end is not None and self._end.outcome == "success":
            return 0
        return EXIT_DENIED if self._denied else EXIT_FAILED

    def finish(self, talk: Talk) -> None:
        """Write what comes last."""
        usage = self._end.usage if self._end else None
        if self._form == "json":
            self._writer.write(jsontext.dumps(self._summary(talk, usage)) + b"\n")
        elif self._form == "text" and self._text and not self._text[-1].endswith("\n"):
            self._write("\n")
        self._writer.flush()
        if self._writer.broken and not self._has_reader:
            self._tell("trunkline chat: The answer cannot be written to standard output. Is there room left?")
        if self._denied and not self._quiet:
            names = ", ".join(sorted(set(self._denied)))
            self._tell(f"Nobody could be asked about {names}. `--allow`, `--mode` and `--auto-approve` answer ahead.")
        if usage is not None and usage.known and not self._quiet:
            cost = talk.cost(usage)
            self._tell(tokens(usage) if cost is None else f"{tokens(usage)}; cost: {words.money(cost)}")

    async def written(self) -> None:
        """Wait until all of it has been read, or cannot be."""
        while self._writer.unwritten:  # noqa: ASYNC110  (the writer does not tell)
            await asyncio.sleep(_LOOK_SECONDS)

    def _summary(self, talk: Talk, usage: Usage | None) -> dict[str, Any]:
        return {
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
        }
