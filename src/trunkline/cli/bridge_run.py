"""`trunkline bridge run`: the bridges of all platforms in one process, until a signal or the end of their input."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from typing import Any

from trunkline.base.environ_secrets import withhold
from trunkline.base.signals import handled
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener, variables
from trunkline.chat.platform import OnStandardOutput
from trunkline.chat.platforms import made, senders_of
from trunkline.chat.settings import BridgeSettings
from trunkline.cli.agent_options import log_to_stderr
from trunkline.cli.log_format import tell
from trunkline.cli.standard_output import unwritten
from trunkline.core.faults import Fault

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
_SIGNAL_EXIT = 128
#: The first and the longest wait before a platform that could not be reached is tried again.
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0


async def run(settings: BridgeSettings, names: Sequence[str]) -> int:
    """Serve the platforms of these names; gives the exit code.

    Raises:
        ConfigError: it cannot begin.
    """
    opener = Opener(settings)
    senders = senders_of(settings, names)
    platforms = [made(name, settings, senders) for name in names]
    # They have their tokens by now.
    withhold(variables(settings, names))
    log_to_stderr(opener.redactor)
    ends = _Ends()
    terminals = [each for each in platforms if isinstance(each, OnStandardOutput)]
    for terminal in terminals:
        terminal.on_lost = ends.lost
    store = ChatStore()
    bridges = [Bridge(each, store, opener, senders) for each in platforms]
    failed = False
    try:
        started = asyncio.ensure_future(_start(bridges))
        if await ends.first(started):
            if len(terminals) == len(platforms):
                _keep_off(terminals)
            serving = [asyncio.ensure_future(_serve(bridge, problem)) for bridge, problem in started.result()]
            failed = await _served(serving, ends)
    finally:
        await asyncio.gather(*(_closed(bridge) for bridge in bridges))
        store.close()
    return ends.code if ends.code is not None else EXIT_FAILED if failed else 0


def _keep_off(terminals: Sequence[OnStandardOutput]) -> None:
    """Keep off a screen what the chat on it shows anyway."""
    if os.isatty(2) and all(terminal.is_screen for terminal in terminals):
        for handler in logging.getLogger().handlers:
            handler.addFilter(_is_not_shown)


def _is_not_shown(record: logging.LogRecord) -> bool:
    """Whether a record is news to somebody who sees the chat: agents mark with `shown` what they tell it, too."""
    return not getattr(record, "shown", False)


async def _start(bridges: Sequence[Bridge]) -> list[tuple[Bridge, Fault | None]]:
    """Start all, as far as they can be reached: each with why it could not be.

    Raises:
        ConfigError: one cannot be served, and waiting would not help.
    """
    outcomes = await asyncio.gather(*(bridge.start() for bridge in bridges), return_exceptions=True)
    started: list[tuple[Bridge, Fault | None]] = []
    for bridge, problem in zip(bridges, outcomes, strict=True):
        if problem is not None and not (isinstance(problem, Fault) and problem.retryable):
            raise problem
        started.append((bridge, problem))
    names = [bridge.platform.name for bridge, problem in started if problem is None]
    if names:
        tell(f"Serving {', '.join(names)}. Ctrl-C ends it.")
    return started


async def _serve(bridge: Bridge, problem: Fault | None) -> None:
    """Serve a bridge; one that could not be reached, as soon as it can be.

    Raises:
        ConfigError: it cannot be served, and waiting would not help.
    """
    name, wait = bridge.platform.name, FIRST_WAIT_SECONDS
    while problem is not None:
        logger.warning("`%s` cannot be served yet, which is tried again in %g s: %s", name, wait, problem)
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)
        try:
            await bridge.start()
        except Fault as fault:
            if not fault.retryable:
                raise
            problem = fault
        else:
            problem = None
            tell(f"Serving {name}. Ctrl-C ends it.")
    await bridge.serve()


async def _served(serving: list[asyncio.Task[None]], ends: _Ends) -> bool:
    """Wait for the end of all, or of one that failed, or for a signal. Whether one failed."""
    pending = set(serving)
    failed = False
    while pending and not failed and await ends.first(*pending):
        done = {task for task in pending if task.done()}
        pending -= done
        for task in done:
            error = task.exception()
            if error is not None:
                failed = True
                logger.error(
                    "a platform cannot continue: %s", error, exc_info=None if isinstance(error, Fault) else error
                )
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return failed


async def _closed(bridge: Bridge) -> None:
    try:
        await bridge.close()
    except Exception:
        logger.exception("`%s` did not end well", bridge.platform.name)


class _Ends:
    """What ends it from outside. The first signal asks for an orderly end; a second one does not wait for it.

    What we were started to ignore stays ignored.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        """The exit code, when it is to end."""
        self._any = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self._on_signal, number)

    def lost(self, error: OSError) -> None:
        """Nobody can read the answers any more."""
        if isinstance(error, BrokenPipeError):
            self._end(_SIGNAL_EXIT + signal.SIGPIPE)
            return
        if self.code is None:
            tell(f"Error: {unwritten(error)}")
        self._end(EXIT_FAILED)

    def _on_signal(self, number: int) -> None:
        if self.code is not None:
            os._exit(_SIGNAL_EXIT + number)
        self._end(_SIGNAL_EXIT + number)

    def _end(self, code: int) -> None:
        if self.code is None:
            self.code = code
            self._any.set()

    async def first(self, *tasks: asyncio.Future[Any]) -> bool:
        """Wait for one of the tasks; False if it is to end, and then all of them are cancelled."""
        waiting: asyncio.Future[Any] = asyncio.ensure_future(self._any.wait())
        try:
            await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self.code is None:
            return True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return False
