"""What commands that serve until they are stopped have in common: the address, the signals, the exit codes."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from trunkline.base.config_addresses import listening
from trunkline.base.deadlines import Deadline, deadlines
from trunkline.base.hosts import is_loopback
from trunkline.base.printable import printable_line
from trunkline.base.signals import handled
from trunkline.cli import log_format, log_options, traced
from trunkline.cli.explained import explanation
from trunkline.cli.wrapping import commands_apart
from trunkline.core.faults import ConfigError, Fault

EXIT_FAILED = 1
#: Whoever stops a service waits ten seconds before it kills: until then even a thread that hangs keeps nobody.
END_SECONDS = 9.0
_SIGNAL_EXIT = 128
#: Read at once of a standard input that nobody is meant to say anything on.
_READ_BYTES = 4096
_INPUT_ENDED = "Standard input has ended, and so does this program: it was started with `--exit-with-stdin`."


def address(
    listen: str, *, public: bool = False, hint: str = "Add `--public` if they may.", flag: str = "--listen"
) -> tuple[str, int]:
    """The host and the port in `HOST:PORT`, which `flag` has said.

    Raises:
        ConfigError: it is none, or other machines can reach it and nobody said that they may.
    """
    found = listening(listen)
    if found is None:
        raise ConfigError(f"`{listen}` is not an address.", hint=f"Say `{flag} HOST:PORT`, such as 127.0.0.1:8080.")
    admit(found[0], public=public, hint=hint)
    return found


def admit(host: str, *, public: bool, hint: str) -> None:
    """Nothing, if whoever can reach this host may.

    Raises:
        ConfigError: other machines can, and nobody said that they may.
    """
    if not public and not is_loopback(host):
        raise ConfigError(f"Other machines can reach `{host}`.", hint=hint)


def serve(work: Callable[[asyncio.Event], Awaitable[None]], *, with_stdin: bool = False) -> NoReturn:
    """Run what serves until its event is set by a signal, and exit: 128 + n after signal n, 1 when it could not begin.

    A second signal ends the process at once, and so does the first one after `END_SECONDS`. `with_stdin`: the end of
    standard input ends it as a signal does, with 0, and says so. What comes there before is not read by anybody else.
    """
    from trunkline.cli.agent_options import run as run_to_its_end

    last: list[Deadline] = []
    try:
        with traced.by_configuration():
            code = run_to_its_end(lambda: _until_signal(work, last, with_stdin=with_stdin))
    except ConfigError as error:
        _complain(error)
        code = EXIT_FAILED
    for each in last:
        each.cancel()
    raise SystemExit(code)


def told(text: str) -> None:
    """Say something on standard error, if anybody hears it."""
    log_format.tell(text)


def shown(host: str, port: int, *, tls: bool = False) -> str:
    """The address of a web server."""
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def _until_signal(
    work: Callable[[asyncio.Event], Awaitable[None]], last: list[Deadline], *, with_stdin: bool
) -> int:
    stop, codes, came = asyncio.Event(), list[int](), list[int]()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        came.append(number)
        if len(came) > 1:
            os._exit(_SIGNAL_EXIT + number)
        end(_SIGNAL_EXIT + number)

    def end(code: int) -> None:
        if codes:
            # Whoever ends a game by a signal often ends us by it, too, and closes our input in the same moment.
            return
        codes.append(code)
        last.append(deadlines.at(time.monotonic() + END_SECONDS, lambda: os._exit(code)))
        try:
            loop.call_soon_threadsafe(stop.set)
        except RuntimeError:
            # The loop is closed: it is ending already.
            return

    _hear(on_signal)
    over = threading.Event()

    def on_end_of_input() -> None:
        if not codes:
            over.set()
        end(0)

    if with_stdin:
        threading.Thread(target=_read_stdin, args=(on_end_of_input,), name="stdin", daemon=True).start()
    try:
        await work(stop)
    except (Fault, OSError) as error:
        # Told inside the event loop, which then ends in order.
        _complain(error)
        return EXIT_FAILED
    if over.is_set():
        # Not before: whoever does not read this must not keep the work from its end.
        told(_INPUT_ENDED)
    return codes[0] if codes else EXIT_FAILED


def _read_stdin(ended: Callable[[], None]) -> None:
    """Tell of its end. What is said there before is for nobody."""
    # Where it was closed from the start, its number may be another file's by now.
    if sys.stdin is not None:
        with suppress(OSError):
            while not _is_over(0):
                pass
    ended()


def _is_over(fd: int) -> bool:
    """Wait until something comes, and whether that is the end.

    Raises:
        OSError: nothing will come any more.
    """
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    waiting.poll()
    try:
        return not os.read(fd, _READ_BYTES)
    except BlockingIOError:
        # Whoever else has this pipe has read it.
        return False


def _complain(error: Fault | OSError) -> None:
    log_options.echo(commands_apart(f"Error: {printable_line(explanation(error))}"))


def _hear(heard: Callable[[int], None]) -> None:
    """Hear the signals that end us, in a thread of their own: also while the event loop is stuck in something."""
    numbers = frozenset(handled())
    reading, writing = socket.socketpair()
    writing.setblocking(False)

    def hear() -> None:
        # Both ends live as long as the process: the number of one must not become another file's.
        while writing.fileno() >= 0:
            for number in reading.recv(64):
                if number in numbers:
                    heard(number)

    for number in numbers:
        signal.signal(number, lambda number, _: None)
    # Written to at once, whatever the main thread does.
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=hear, name="signals", daemon=True).start()
