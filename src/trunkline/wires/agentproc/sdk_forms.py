"""How an agent of the SDK hears and says things, in each dialect."""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc import codec, serve_input
from trunkline.wires.agentproc.messages import Dialect, PermissionRequest, Turn

Write = Callable[[bytes], object]


class Source(Protocol):
    """Standard input."""

    def line(self) -> bytes:
        """The next line that is not blank.

        Raises:
            RemoteProtocolError: no more can be had.
        """

    def everything(self) -> bytes | None:
        """All of it; `None` if nothing comes.

        Raises:
            RemoteProtocolError: it is too long.
        """


class Form(Protocol):
    """A dialect, for one turn."""

    def told(self) -> Turn:
        """The turn.

        Raises:
            RemoteProtocolError: there is none.
        """

    def session(self, session_id: str, *, now: bool) -> None:
        """The session's id, which is said at once or with the end."""

    def partial(self, text: str) -> None:
        """A piece of the answer."""

    def reply(self, reply: str | None, said: str) -> None:
        """The end. `said` are the pieces; without a `reply` they were all of the answer."""

    def error(self, message: str) -> None:
        """The end, and a bad one."""

    def ask(self, tool: str, input: dict[str, Any], description: str) -> bool:
        """Wait for permission."""


def form(dialect: Dialect, environ: Mapping[str, str], source: Source, write: Write) -> Form:
    """The form of a dialect."""
    return LineForm(environ, source, write) if dialect == "0.1" else EventForm(source, write)


class LineForm:
    """0.1: environment variables in, lines with a prefix out."""

    def __init__(self, environ: Mapping[str, str], source: Source, write: Write) -> None:
        self._environ = environ
        self._source = source
        self._write = write
        self._streaming = True

    def told(self) -> Turn:
        turn = serve_input.environment_turn(self._environ, self._source.everything)
        self._streaming = turn.streaming
        return turn

    def session(self, session_id: str, *, now: bool) -> None:
        self._write(codec.encode_session(session_id))

    def partial(self, text: str) -> None:
        if self._streaming:
            self._write(codec.encode_partial(text))

    def reply(self, reply: str | None, said: str) -> None:
        if reply is None:
            reply = "" if self._streaming else said
        if reply:
            self._write(codec.encode_body(reply))

    def error(self, message: str) -> None:
        self._write(codec.encode_error(message))

    def ask(self, tool: str, input: dict[str, Any], description: str) -> bool:
        return False


class EventForm:
    """0.4: JSON objects, one to a line, both ways."""

    def __init__(self, source: Source, write: Write) -> None:
        # Most bridges speak 0.1.
        from trunkline.wires.agentproc import codec_ndjson

        self._codec = codec_ndjson
        self._source = source
        self._write = write
        self._session_id = ""
        self._streamed = False
        self._asking = allocate_lock()
        self._requests = 0

    def told(self) -> Turn:
        return self._codec.decode_turn(self._source.line())

    def session(self, session_id: str, *, now: bool) -> None:
        self._session_id = session_id
        if now:
            # No event has only the id; a partial without text shows nothing.
            self.partial("")

    def partial(self, text: str) -> None:
        self._streamed = True
        self._write(self._codec.encode_partial(codec.whole(text), session_id=self._session_id))

    def reply(self, reply: str | None, said: str) -> None:
        if reply and self._streamed:
            # A bridge that has seen a partial does not show the result.
            self.partial(reply)
        text = said if reply is None else reply
        self._write(self._codec.encode_result(codec.whole(text), self._session_id))

    def error(self, message: str) -> None:
        self._write(self._codec.encode_error(codec.whole(message), self._session_id))

    def ask(self, tool: str, input: dict[str, Any], description: str) -> bool:
        # One after the other: what is read is the answer to what was asked.
        with self._asking:
            self._requests += 1
            request_id = f"permission-{self._requests}"
            request = PermissionRequest(request_id, tool, input, description)
            self._write(self._codec.encode_request(request, self._session_id))
            return self._answer(request_id, input)

    def _answer(self, request_id: str, input: dict[str, Any]) -> bool:
        while True:
            try:
                line = self._source.line()
            except RemoteProtocolError:
                # Nobody is left who could allow it.
                return False
            try:
                response = self._codec.decode_response(line)
            except RemoteProtocolError as fault:
                sys.stderr.write(f"A line from the bridge was left out: {fault}\n")
                continue
            if response.request_id == request_id:
                changed = response.updated_input is not None and dict(response.updated_input) != input
                return response.behavior == "allow" and not changed
