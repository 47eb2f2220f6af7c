"""Base of the streams that are JSON objects, one to a line. Sans-IO.

A subclass says in `take` what one object means, with the verbs below. What no program may do to its reader is dealt
with here, once: noise between the lines, text that comes twice, ids that are none, an answer without end, and errors
that the program gets over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.wires.agentproc.codec import (
    LOOKED_AT_BYTES,
    MAX_LINE,
    SHOWN_CHARS,
    is_session_id,
    refused_session_id,
    too_long,
    whole,
)
from trunkline.wires.agentproc.messages import Error, Ignored, Partial, Result, Said, SessionId

#: The most members and items of one line: far beyond any event, and parsed in a few milliseconds.
MAX_VALUES = 100_000
#: The longest answer that is kept for the `Result`, in characters; what a profile lets through is much less.
MAX_ANSWER = 4 * 1024 * 1024

#: Between two passages of an answer, such as those before and after the use of a tool.
BETWEEN = "\n\n"

#: The words that programs put around an error of a model's service.
_API_ERROR = re.compile(r"\[API Error: (.*)\]", re.DOTALL)

Event = Mapping[str, Any]


class JsonLines:
    """Reads one run of a program. Subclasses are named `Stream`."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line, LOOKED_AT_BYTES)
        self._said: list[Said] = []
        self._answer: list[str] = []
        self._answer_chars = 0
        self._pieces: list[str] = []
        self._piece_chars = 0
        self._apart = False
        self._thought = False
        self._session_id = ""
        self._usage: Mapping[str, Any] | None = None
        self._trouble = ""
        self._succeeded = False
        self._failed = False
        self._concluded = False

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete."""
        for line in self._lines.feed(data):
            self._read(line)
        return self._take_said()

    def finish(self) -> list[Said]:
        """The output has ended: the whole answer, or what went wrong."""
        for line in self._lines.finish():
            self._read(line)
        self.close()
        if self._trouble and not self._succeeded and not self._failed:
            self.fail(self._trouble)
        if not self._failed and not self._concluded and (self._answer or self._succeeded):
            self.conclude()
        return self._take_said()

    def _read(self, line: bytes | OverlongLine) -> None:
        if isinstance(line, OverlongLine):
            self._said.append(too_long(line))
            self.take_lost(line.head)
            return
        if not line.strip():
            return
        try:
            event = jsontext.loads(line, max_values=MAX_VALUES) if line.lstrip().startswith(b"{") else None
        except ValueError:
            event = None
        if isinstance(event, dict):
            self.take(event)
        else:
            self.take_lost(line[:LOOKED_AT_BYTES])
            self.take_noise(line.decode("utf-8", "replace").rstrip("\r"))

    def _take_said(self) -> list[Said]:
        said, self._said = self._said, []
        return said

    # What a subclass fills in

    def take(self, event: Event) -> None:
        """Say what an object means. One that is not known means nothing."""
        raise NotImplementedError

    def take_noise(self, line: str) -> None:
        """A line that is no object: something that the program, or what it runs, let slip."""
        self.note(f"a line that is not a JSON object was skipped: `{cut_between_words(line, SHOWN_CHARS)}`")

    def take_lost(self, head: bytes) -> None:
        """A line that cannot be read, and how it begins. It may have been a question."""

    def close(self) -> None:
        """The output has ended; say what was held back."""

    # The verbs

    def piece(self, value: Any) -> None:
        """A piece of the answer, which goes on where the last one ended."""
        if text := text_of(value):
            if self._piece_chars < MAX_ANSWER:
                self._pieces.append(text)
            self._piece_chars += len(text)
            self._say(text)

    def passage(self, value: Any) -> None:
        """A whole passage of the answer. What of it came in pieces before is not said again."""
        text, begun = text_of(value), "".join(self._pieces)
        came, self._piece_chars = self._piece_chars, 0
        self._pieces.clear()
        if came > len(begun):
            # More came in pieces than is kept of any answer: there is nothing to compare it with, and it was said.
            pass
        elif not begun:
            self.part()
            self._say(text)
        elif text.startswith(begun):
            self._say(text[len(begun) :])
        elif _squeezed(text) != _squeezed(begun):
            self.part()
            self._say(text)
        self.part()

    def part(self) -> None:
        """What comes next is apart from what was said so far."""
        self._apart = True

    def think(self, value: Any) -> None:
        """A piece of the reasoning."""
        if text := text_of(value):
            self._thought = True
            self._said.append(Partial(text, "thinking"))

    def think_passage(self, value: Any) -> None:
        """A whole passage of the reasoning, unless it came in pieces before."""
        if not self._thought:
            self.think(value)
        self._thought = False

    def session(self, value: Any) -> None:
        """The program's id of the conversation."""
        if not isinstance(value, str) or not value or value == self._session_id:
            return
        if not is_session_id(value):
            self.note(refused_session_id(value))
            return
        if value.startswith("-"):
            self.note(f"the session id {value[:SHOWN_CHARS]!r} was ignored: as an argument it would be an option")
            return
        self._session_id = value
        self._said.append(SessionId(value))

    def succeed(self, usage: Any = None) -> None:
        """The program says that the turn has come to its end."""
        self._succeeded = True
        if isinstance(usage, dict) and usage:
            self._usage = usage

    def conclude(self) -> None:
        """Say the whole answer now, and not at the end of the output."""
        self._concluded = True
        self._said.append(Result(self.answer(), self._usage))

    def fail(self, message: Any) -> None:
        """The turn has failed."""
        self._failed = True
        self._said.append(Error(readable(text_of(message))))

    def worry(self, message: Any) -> None:
        """Something went wrong that the program may get over: it counts unless the turn succeeds."""
        self._trouble = text_of(message) or self._trouble
        if self._trouble:
            self.note(f"the program reports: {cut_between_words(self._trouble, SHOWN_CHARS)}")

    def relax(self) -> None:
        """The program got over it."""
        self._trouble = ""

    def note(self, why: str) -> None:
        """Something for the log."""
        self._said.append(Ignored(why))

    def answer(self) -> str:
        """The whole answer so far."""
        return "".join(self._answer)

    def repeats_the_answer(self, text: str) -> bool:
        """Whether the text is the whole answer again."""
        return bool(self._answer) and _squeezed(text) == _squeezed(self.answer())

    def _say(self, text: str) -> None:
        if not text:
            return
        if self._apart and self._answer:
            text = BETWEEN + text
        self._apart = False
        if self._answer_chars < MAX_ANSWER:
            self._answer.append(text[: MAX_ANSWER - self._answer_chars])
            self._answer_chars += len(text)
        self._said.append(Partial(text))


def text_of(value: Any) -> str:
    """The value if it is a text, made fit to be passed on; else nothing."""
    return whole(value) if isinstance(value, str) else ""


def member(value: Any, *names: str) -> Any:
    """What is found in objects within objects by these names; `None` where one is missing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def objects(value: Any) -> list[Event]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def readable(text: str) -> str:
    """An error for people: without the words around it, and of one that is JSON, its message."""
    if found := _API_ERROR.fullmatch(text.strip()):
        text = found[1]
    if not text.startswith("{"):
        return text
    try:
        error = jsontext.loads(text.encode("utf-8", "replace"), max_values=MAX_VALUES)
    except ValueError:
        return text
    return text_of(member(error, "error", "message")) or text_of(member(error, "message")) or text


def _squeezed(text: str) -> str:
    return "".join(text.split())
