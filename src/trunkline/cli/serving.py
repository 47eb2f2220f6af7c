"""What commands that serve until they are stopped have in common: the address, the signals, the exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable
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


def address(listen: str, *, public: bool = False, hint: str = "Add `--public` if they may.") -> tuple[str, int]:
    """The host and the port in `HOST:PORT`.

    Raises:
        ConfigError: it is none, or other machines can reach it and nobody said that they may.
    """
    found = listening(listen)
    if found is None:
        raise ConfigError(f"`{listen}` is not an address.", hint="Say `--listen HOST:PORT`, such as 127.0.0.1:8080.")
    admit(found[0], public=public, hint=hint)
    return found


def admit(host: str, *, public: bool, hint: str) -> None:
    """Nothing, if whoever can reach this host may.

    Raises:
        ConfigError: other machines can, and nobody said that they may.
    """
    if not public and not is_loopback(host):
        raise ConfigError(f"Other machines can reach `{host}`.", hint=hint)


def serve(work: Callable[[asyncio.Event], Awaitable[None]]) -> NoReturn:
    """Run what serves until its event is set by a signal, and exit: 128 + n after signal n, 1 when it could not begin.

    A second signal ends the process at once, and so does the first one after `END_SECONDS`.
    """
    from trunkline.cli.agent_options import run as run_to_its_end

    last: list[Deadline] = []
    try:
        with traced.by_configuration():
            code = run_to_its_end(lambda: _until_signal(work, last))
    except ConfigError as error:
        _complain(error)
        code = EXIT_FAILED
    for each in last:
        each.cancel()
    raise SystemExit(code)


def told(text: str) -> None:
    """Say something on standard error, if anybody hears it."""
    log_format.tell(text)


def shown(host: str, port: int) -> str:
    """The address of a web server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _until_signal(work: Callable[[asyncio.Event], Awaitable[None]], last: list[Deadline]) -> int:
    stop, came = asyncio.Event(), list[int]()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        came.append(number)
        if len(came) > 1:
            os._exit(_SIGNAL_EXIT + number)
        last.append(deadlines.at(time.monotonic() + END_SECONDS, lambda: os._exit(_SIGNAL_EXIT + number)))
        try:
            loop.call_soon_threadsafe(stop.set)
        except RuntimeError:
            # The loop is closed: it is ending already.
            return

    _hear(on_signal)
    try:
        await work(stop)
    except (Fault, OSError) as error:
        # Told inside the event loop, which then ends in order.
        _complain(error)
        return EXIT_FAILED
    return _SIGNAL_EXIT + came[0] if came else EXIT_FAILED


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
