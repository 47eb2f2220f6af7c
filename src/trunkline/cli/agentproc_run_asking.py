"""Who decides what an agent asks in `trunkline agentproc run`: the person at the terminal, or the program behind us.

`AtTerminal` shows a request on standard error and takes a `y` for a yes. `InLines` writes it to standard output as the
`permission_request` of protocol 0.4, and takes `permission_response` lines from standard input; its end is a no to all
that waits, and to all that comes. Only what answers a request that was written before it counts.

Standard input is read in a thread of its own, without Python's buffers: the turn may end while nobody answers, and the
process with it.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Protocol

from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc.codec_ndjson import decode_response, encode_request
from trunkline.wires.agentproc.messages import PermissionRequest, PermissionResponse

Respond = Callable[[PermissionResponse], None]

#: The longest answer in a line: one with a changed input may be as long as a tool's arguments are.
MAX_ANSWER = 1024 * 1024
_CHUNK_BYTES = 1 << 16

#: What asks for all of a request of which only a part is shown.
_VIEW = (b"v", b"view")

_NO_ONE_LEFT = "there is nobody to answer any more"


class Asker(Protocol):
    """Asks somebody, and responds when they have decided. Neither method waits."""

    def ask(self, request: PermissionRequest) -> None:
        """Ask."""

    def withdraw(self, request_id: str) -> None:
        """The agent does not wait for an answer any more."""


class InLines:
    """Asks the program that started us."""

    def __init__(self, respond: Respond, write: Callable[[bytes], None], warn: Callable[[str], None]) -> None:
        self._respond = respond
        self._write = write
        self._warn = warn
        # Held while a request is written: what is read meanwhile was no answer to it.
        self._lock = threading.RLock()
        self._splitter = LineSplitter(MAX_ANSWER)
        self._waiting: set[str] = set()
        self._ended = False
        threading.Thread(target=self._listen, name="permission-responses", daemon=True).start()

    def ask(self, request: PermissionRequest) -> None:
        with self._lock:
            # What lies there already was said before there was a question.
            while not self._ended and _is_readable(0):
                self._read()
            self._write(encode_request(request))
            self._waiting.add(request.request_id)
            if self._ended:
                self._deny(request.request_id)

    def withdraw(self, request_id: str) -> None:
        with self._lock:
            self._waiting.discard(request_id)

    def _listen(self) -> None:
        while not self._ended:
            _is_readable(None)
            with self._lock:
                # Whoever asked may have been quicker.
                if _is_readable(0):
                    self._read()

    def _read(self) -> None:
        """Take what there is to read."""
        data = _read_stdin()
        for line in self._splitter.feed(data) if data else self._splitter.finish():
            self._take(line)
        if not data:
            self._ended = True
            for request_id in tuple(self._waiting):
                self._deny(request_id)

    def _take(self, line: bytes | OverlongLine) -> None:
        if isinstance(line, OverlongLine):
            self._warn(f"a line of standard input was ignored: it is longer than {MAX_ANSWER} bytes")
            return
        try:
            response = decode_response(line)
        except RemoteProtocolError as error:
            self._warn(f"a line of standard input was ignored: {error}")
            return
        if response.request_id not in self._waiting:
            self._warn("a `permission_response` was ignored: no request is waiting for it")
            return
        self._waiting.remove(response.request_id)
        self._respond(response)

    def _deny(self, request_id: str) -> None:
        self._waiting.discard(request_id)
        self._respond(PermissionResponse(request_id, "deny", _NO_ONE_LEFT))


class AtTerminal:
    """Asks the person who started us, one request after the other."""

    def __init__(self, respond: Respond, show: Callable[[str], None]) -> None:
        self._respond = respond
        self._show = show
        self._asked: SimpleQueue[PermissionRequest] = SimpleQueue()
        self._withdrawn: set[str] = set()
        threading.Thread(target=self._decide, name="permission-answers", daemon=True).start()

    def ask(self, request: PermissionRequest) -> None:
        self._withdrawn.discard(request.request_id)
        self._asked.put(request)

    def withdraw(self, request_id: str) -> None:
        self._withdrawn.add(request_id)
        self._show("\nThe agent is no longer waiting for that: press Enter.\n")

    def _decide(self) -> None:
        lines = _lines()
        while True:
            request = self._asked.get()
            if request.request_id in self._withdrawn:
                continue
            # What was typed before the question was there is no answer to it.
            _forget_typed()
            is_cut = self._prompt(request)
            answer = next(lines, b"").strip().lower()
            if is_cut and answer in _VIEW:
                self._prompt(request, whole=True)
                answer = next(lines, b"").strip().lower()
            if answer in (b"y", b"yes"):
                self._respond(PermissionResponse(request.request_id, "allow"))
            else:
                self._respond(PermissionResponse(request.request_id, "deny", "denied by the user"))

    def _prompt(self, request: PermissionRequest, *, whole: bool = False) -> bool:
        """Show a request, and ask. Gives whether there is more of it to see."""
        from trunkline.core.preview import SCREEN, WHOLE, plain, preview, said_of

        shown = preview(request.tool_name, request.input, WHOLE if whole else SCREEN)
        lines = [plain(shown), *filter(None, [said_of(request.description)])]
        keys = "y/N, v: view all" if shown.is_cut else "y/N"
        self._show("\n{}\nAllow it? [{}] ".format("\n".join(lines), keys))
        return shown.is_cut


def _lines() -> Iterator[bytes]:
    """The lines of standard input. Ones that are too long are left out."""
    splitter = LineSplitter(MAX_ANSWER)
    while True:
        data = _read_stdin()
        found = splitter.feed(data) if data else splitter.finish()
        yield from (line for line in found if isinstance(line, bytes))
        if not data:
            return


def _is_readable(milliseconds: int | None) -> bool:
    """Whether something of standard input, its end included, can be read without waiting."""
    poller = select.poll()
    poller.register(0, select.POLLIN)
    return bool(poller.poll(milliseconds))


def _read_stdin() -> bytes:
    try:
        return os.read(0, _CHUNK_BYTES)
    except OSError:
        return b""


def _forget_typed() -> None:
    import termios

    try:
        termios.tcflush(0, termios.TCIFLUSH)
    except termios.error:
        # It is no terminal any more: then nothing was typed.
        return
