"""The bridge, as an agent of the SDK sees it: what it tells, what is said to it, and what it answers."""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc import serve_input
from trunkline.wires.agentproc.messages import Dialect, PermissionRequest, TurnRequest
from trunkline.wires.agentproc.serve_dialects import dialect_writer


class BridgeInput(Protocol):
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


class BridgeConnection:
    """Who asked for the turn. `say` what its `writer` gives."""

    def __init__(
        self, dialect: Dialect, environ: Mapping[str, str], source: BridgeInput, write: Callable[[bytes], object]
    ) -> None:
        self._dialect: Dialect = dialect
        self._environ = environ
        self._source = source
        self._write = write
        self.writer = dialect_writer(dialect)
        self._asking = allocate_lock()
        self._requests = 0

    def told(self) -> TurnRequest:
        """The turn.

        Raises:
            RemoteProtocolError: there is none.
        """
        if self._dialect == "0.1":
            turn = serve_input.environment_turn(self._environ, self._source.everything)
            self.writer = dialect_writer(self._dialect, streaming=turn.streaming)
            return turn
        from trunkline.wires.agentproc.codec_ndjson import decode_turn

        return decode_turn(self._source.line())

    def say(self, data: bytes) -> None:
        """Write some lines, if there are any."""
        if data:
            self._write(data)

    def ask(self, tool: str, input: dict[str, Any], description: str) -> bool:
        """Ask for permission, and wait for the answer. Where there is nobody to ask, it is no."""
        # One after the other: what is read is the answer to what was asked.
        with self._asking:
            self._requests += 1
            request_id = f"permission-{self._requests}"
            line = self.writer.request(PermissionRequest(request_id, tool, input, description))
            self.say(line)
            return bool(line) and self._allowed(request_id, input)

    def _allowed(self, request_id: str, input: dict[str, Any]) -> bool:
        from trunkline.wires.agentproc.codec_ndjson import decode_response

        while True:
            try:
                line = self._source.line()
            except RemoteProtocolError:
                # Nobody is left who could allow it.
                return False
            try:
                response = decode_response(line)
            except RemoteProtocolError as fault:
                sys.stderr.write(f"A line from the bridge was ignored: {fault}\n")
                continue
            if response.request_id == request_id:
                changed = response.updated_input is not None and dict(response.updated_input) != input
                return response.behavior == "allow" and not changed
