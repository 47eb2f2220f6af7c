"""`trunkline bridge run`: the bridges of all platforms in one process, until a signal or the end of their input."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from typing import Any

from trunkline.base import stdio
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener, variables
from trunkline.chat.platform import Platform
from trunkline.chat.senders import Senders
from trunkline.chat.settings import BridgeSettings
from trunkline.cli.agent_options import log_to_stderr
from trunkline.core.faults import Fault

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
_SIGNAL_EXIT = 128


async def run(settings: BridgeSettings, names: Sequence[str]) -> int:
    """Serve the platforms of these names; gives the exit code.

    Raises:
        ConfigError: it cannot begin.
    """
    opener = Opener(settings)
    senders = senders_of(settings, names)
    platforms = [platform(name, settings, senders) for name in names]
    _hide(settings, names)
    log_to_stderr(opener.redactor)
    signals = _Signals()
    store = ChatStore()
    bridges = [Bridge(each, store, opener, senders) for each in platforms]
    try:
        started = asyncio.ensure_future(_start(bridges))
        if await signals.first(started):
            started.result()
            _tell(f"Serving {', '.join(names)}. Ctrl-C ends it.")
            serving = [asyncio.ensure_future(bridge.serve()) for bridge in bridges]
            failed = await _served(serving, signals)
        else:
            failed = False
    finally:
        await asyncio.gather(*(_closed(bridge) for bridge in bridges))
        store.close()
    return _SIGNAL_EXIT + signals.came[0] if signals.came else EXIT_FAILED if failed else 0


def senders_of(settings: BridgeSettings, names: Sequence[str]) -> Senders:
    """Who may write. Whoever sits at the terminal has started the bridge."""
    from trunkline.chat.terminal.platform import SENDER

    terminal = (f"terminal:{SENDER}",) if "terminal" in names else ()
    approvers = (*settings.approvers, *terminal) if settings.approvers else ()
    return Senders((*settings.allow, *terminal), approvers, rate=settings.rate, unlimited=terminal)


def platform(name: str, settings: BridgeSettings, senders: Senders) -> Platform:
    """The platform of that name, as configured. Its module is imported now.

    Raises:
        ConfigError: something is missing for it.
    """
    table = settings.platforms.get(name, {})
    if name == "telegram":
        from trunkline.chat.telegram import platform as telegram

        return telegram.make(table, os.environ)
    if name == "matrix":
        from trunkline.chat.matrix import platform as matrix

        return matrix.make(table, os.environ, may_invite=lambda sender: senders.allowed(f"matrix:{sender}"))
    from trunkline.chat.terminal.platform import TerminalPlatform

    return TerminalPlatform()


def _hide(settings: BridgeSettings, names: Sequence[str]) -> None:
    """The platforms have their tokens by now: the agents, which inherit our environment, must not have them."""
    for name in variables(settings, names):
        os.environ.pop(name, None)


async def _start(bridges: Sequence[Bridge]) -> None:
    for bridge in bridges:
        await bridge.start()


async def _served(serving: list[asyncio.Task[None]], signals: _Signals) -> bool:
    """Wait for the end of all, or of one that failed, or for a signal. Whether one failed."""
    pending = set(serving)
    failed = False
    while pending and not failed and await signals.first(*pending):
        done = {task for task in pending if task.done()}
        pending -= done
        for task in done:
            error = task.exception()
            if error is not None:
                failed = True
                logger.error("a platform cannot go on: %s", error, exc_info=None if isinstance(error, Fault) else error)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return failed


async def _closed(bridge: Bridge) -> None:
    try:
        await bridge.close()
    except Exception:
        logger.exception("`%s` did not end well", bridge.platform.name)


class _Signals:
    """The first one asks for an orderly end; a second one does not wait for it."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self._any = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        self.came.append(number)
        self._any.set()
        if len(self.came) > 1:
            os._exit(_SIGNAL_EXIT + number)

    async def first(self, *tasks: asyncio.Future[None]) -> bool:
        """Wait for one of the tasks; False if a signal came first, and then all of them are cancelled."""
        waiting: asyncio.Future[Any] = asyncio.ensure_future(self._any.wait())
        try:
            await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not self.came:
            return True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return False


def _tell(text: str) -> None:
    stdio.write_or_drop(2)(f"{text}\n".encode())
