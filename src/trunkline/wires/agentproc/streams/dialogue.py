"""Base of the streams that are talked to while they run: JSON objects, one to a line, both ways. Sans-IO.

A subclass says in `begin` what the program is told first, in `take` what one object means, and in `answer_of` how an
answer is told. Where the program waits for something that nobody here can give, it is refused at once, and that is
told: a request that nobody answers would be a turn without end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.wires.agentproc.codec import SHOWN_CHARS, whole
from trunkline.wires.agentproc.messages import (
    UNANSWERABLE,
    PermissionRequest,
    PermissionResponse,
    TurnRequest,
    Used,
    Withdrawn,
)
from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines

#: The longest id of a request: they are a few dozen characters.
MAX_ID = 256
#: What is passed on of a tool's output: enough to see what it did.
MAX_OUTPUT = 64 * 1024
#: What a program asks for in vain before its turn is given up: it does not listen.
MAX_REFUSALS = 1000


class JsonDialogue(JsonLines):
    """Talks to one run of a program."""

    #: How a line looks in which the program asks something, for those that cannot be read.
    asks = re.compile(rb"(?!)")

    def __init__(self) -> None:
        super().__init__()
        self._out: list[bytes] = []
        self._asked: dict[str, tuple[Any, PermissionRequest]] = {}
        self._allowed: dict[str, str] = {}
        """Requests that were allowed, by the program's own name for the use of the tool."""
        self._refusals = 0

    def arguments(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Arguments that the program needs besides those of the profile: none."""
        return ()

    def begin(self, turn: TurnRequest) -> bytes:
        """What the program is told first."""
        raise NotImplementedError

    def answer_of(self, key: Any, request: PermissionRequest, response: PermissionResponse) -> Mapping[str, Any]:
        """The object that answers a request; `key` is what `ask` was given with it."""
        raise NotImplementedError

    def outgoing(self) -> bytes:
        """What the program is to be told after what was read."""
        out, self._out = self._out, []
        return b"".join(out)

    def respond(self, response: PermissionResponse) -> bytes:
        """What tells the program the answer to one of its requests; nothing if it does not wait for it."""
        key, request = self._asked.pop(response.request_id, (None, None))
        if request is None:
            return b""
        if response.behavior == "allow" and request.tool_use_id:
            self._allowed[request.tool_use_id] = request.request_id
        return line(self.answer_of(key, request, response))

    def take_lost(self, head: bytes) -> None:
        """A line that cannot be read: if it is a question, nobody can answer it."""
        if self.asks.match(head):
            self._said.append(UNANSWERABLE)

    # The verbs

    def tell(self, event: Mapping[str, Any]) -> None:
        """Tell the program something."""
        self._out.append(line(event))

    def ask(self, key: Any, request: PermissionRequest) -> None:
        """The program waits until it may use a tool."""
        if request.request_id not in self._asked:
            self._asked[request.request_id] = (key, request)
        self._said.append(request)

    def refuse(self, what: str, answer: Mapping[str, Any]) -> None:
        """The program waits for something that nobody here can give."""
        self._refusals += 1
        if self._refusals > MAX_REFUSALS:
            if self._refusals == MAX_REFUSALS + 1:
                self.fail("The program keeps asking for something that nobody here can provide.")
            return
        self.note(f"the program asks for something that cannot be answered here, and was refused: `{what}`")
        self.tell(answer)

    def used(self, tool_use_id: str, worked: bool, output: str) -> None:
        """A tool has ended. Of those that nobody was asked about, nothing is told."""
        if (request_id := self._allowed.pop(tool_use_id, None)) is not None:
            self._said.append(Used(request_id, worked, cut_between_words(output, MAX_OUTPUT)))

    def withdraw(self, request_id: str) -> bool:
        """The program does not wait for an answer any more. Whether it did."""
        if self._asked.pop(request_id, None) is None:
            return False
        self._said.append(Withdrawn(request_id))
        return True


def line(event: Mapping[str, Any]) -> bytes:
    """An object as the program reads it."""
    return jsontext.dumps(event) + b"\n"


def shown(value: Any) -> str:
    """A word of the program's for a message of ours."""
    return "".join(char for char in whole(str(value))[:SHOWN_CHARS] if char.isprintable()) or "?"


def is_id(value: Any) -> bool:
    """Whether it can be the id of a request."""
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value.isprintable() and " " not in value


__all__ = ["MAX_ID", "Event", "JsonDialogue", "is_id", "line", "shown"]
