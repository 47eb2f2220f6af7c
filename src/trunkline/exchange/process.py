"""An exchange as a process: its file, its home, its wires, and the HTTP API on its address and on a socket.

    process = ExchangeProcess("trunkline.toml")
    await process.run(stop, reachable)

A changed file is loaded while it runs, on request (`reload`) or automatically. One that cannot be used is rejected as a
whole, and nothing changes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from typing import Any

from trunkline.base import asgi, local_socket
from trunkline.base.config_file import ConfigFileError, read_toml
from trunkline.base.config_problems import Problem
from trunkline.base.environ_secrets import withhold
from trunkline.base.exchange_home import API_SOCKET, find_home
from trunkline.base.extras import missing
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.starting import cannot_listen, lacks_package
from trunkline.exchange import config
from trunkline.exchange.alone import alone
from trunkline.exchange.attach import attach_socket
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.expiring import Expiry
from trunkline.exchange.settings import EXTRA, ExchangeSettings
from trunkline.exchange.watching import WatchedFile
from trunkline.exchange.webhook import ApprovalWebhook
from trunkline.exchange.wires import Wires
from trunkline.store.database import DatabaseGone

logger = logging.getLogger(__name__)

#: How often to check whether the file has changed: soon enough for someone who has just saved it.
WATCH_SECONDS = 1.0

_ANOTHER_ADDRESS = "Choose another `listen` in the section `[exchange]` of `{}`; port 0 is any that is free."

Say = Callable[[str], None]


class ExchangeProcess:
    """One exchange, by its file. A `Service`."""

    name = "exchange"
    about = "the exchange: agents with names, for `--attach` and for HTTP clients with a token"

    def __init__(
        self,
        path: str,
        say: Say = logger.info,
        environ: Mapping[str, str] | None = None,
        *,
        write: Callable[[str], None] = lambda path: None,
        any_port: bool = False,
        watch_seconds: float = WATCH_SECONDS,
    ) -> None:
        """`write` makes sure that the file exists; `any_port`: use another port if the configured one is taken."""
        self._path = path
        self._say = say
        # A copy: what agents must not have is taken out of ours.
        self._environ = dict(os.environ if environ is None else environ)
        self._write = write
        self._any_port = any_port
        self._watch_seconds = watch_seconds
        self._address = ("", 0)
        self._exchange: Exchange | None = None
        self._wires: Wires | None = None
        self._taking_up = asyncio.Lock()
        self._asked = asyncio.Event()
        self._file = WatchedFile(path)

    @property
    def where(self) -> str:
        """Its address."""
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def trial(self) -> str:
        """A command that tries it: it needs no token if it finds the home from where the exchange was started."""
        settings = None if self._exchange is None else self._exchange.settings
        if settings is not None and settings.agents and settings.home == _home_here():
            return f"trunkline chat {next(iter(settings.agents))} --attach"
        return f"curl {self.where}/livez"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Serve until `stop` is set.

        Raises:
            ConfigError: a package is missing, the file cannot be used, another exchange has the home, or the address is
                taken.
        """
        if (module := missing(EXTRA)) is not None:
            raise lacks_package("The exchange", ModuleNotFoundError(name=module), EXTRA)
        await asyncio.to_thread(self._write, self._path)
        self._file.taken()
        settings = await asyncio.to_thread(config.read, self._path, self._environ)
        withhold(settings.variables)
        with alone(settings.home):
            async with Exchange.opened(settings, environ=self._environ, wait=False) as exchange:
                self._exchange = exchange
                try:
                    await self._serve(exchange, stop, reachable)
                finally:
                    self._exchange = None

    async def reload(self) -> None:
        """Load the file as it is now.

        Raises:
            ConfigError: it cannot be used; nothing changes.
        """
        async with self._taking_up:
            exchange = self._exchange
            if exchange is None:
                raise ConfigError("The exchange is not running.")
            self._file.taken()
            settings = await asyncio.to_thread(config.read, self._path, self._environ)
            self._check_change(exchange.settings, settings)
            withhold(settings.variables)
            await exchange.take_up(settings)
            if self._wires is not None:
                await self._wires.take_up(settings.wires)
        self._say(f"`{self._path}` was loaded: {_counted(settings)}.")

    def ask_to_reload(self) -> None:
        """The same, soon, for callers that wait for no answer: the result is logged."""
        self._asked.set()

    def _check_change(self, old: ExchangeSettings, new: ExchangeSettings) -> None:
        """Check whether the changes are possible while it runs."""
        problems = []
        for key, before, after in (("home", old.home, new.home), ("listen", old.listen, new.listen)):
            if before != after:
                error = self._blamed("cannot change while the exchange runs", "exchange", key)
                problems.append(Problem.of(error, "Start it again."))
        if problems:
            raise config.WrongFile(problems)

    def _blamed(self, problem: str, *keys: str) -> ConfigFileError:
        file = read_toml(self._path)
        return ConfigFileError(self._path, problem, key=".".join(keys)) if file is None else file.wrong(problem, keys)

    async def _serve(self, exchange: Exchange, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.exchange.api.app import application
        from trunkline.exchange.api.errors import members as refusal
        from trunkline.exchange.api.faces import MAX_FRAME

        with ExitStack() as stack:
            host, port = exchange.settings.listen
            listener = self._listener(stack, host, port)
            self._address = (host, listener.getsockname()[1])
            local = stack.enter_context(closing(_local(exchange.settings.home)))
            stack.callback(local_socket.forget, exchange.settings.home, API_SOCKET)
            ending = asyncio.Event()
            webhook = ApprovalWebhook(lambda: exchange.settings.webhook, exchange.redactor)
            exchange.told.append(webhook.told)
            expiry = Expiry(exchange.switchboard, exchange.clock, lambda: exchange.settings.approvals_expire_seconds)
            public = application(exchange, reload=self.reload)
            faces = public.state.faces
            own = application(exchange, local=True, reload=self.reload, streams=public.state.streams, faces=faces)

            def stopping() -> None:
                public.state.streams.close()
                faces.end()

            serve = partial(asgi.serve_on, stopping=stopping, refusal=refusal, websockets=MAX_FRAME)
            async with attach_socket(exchange), self._wired(exchange):
                try:
                    await _until(
                        stop,
                        ending,
                        serve(own, local, ending),
                        serve(public, listener, ending, reachable),
                        self._watch(ending),
                        webhook.run(ending),
                        expiry.run(ending),
                    )
                finally:
                    await faces.ended()

    @asynccontextmanager
    async def _wired(self, exchange: Exchange) -> AsyncIterator[None]:
        """Run the wires for the duration of the block."""
        self._wires = Wires(exchange, self._say)
        try:
            await self._wires.take_up(exchange.settings.wires)
            yield
        finally:
            wires, self._wires = self._wires, None
            await wires.close()

    def _listener(self, stack: ExitStack, host: str, port: int) -> socket.socket:
        try:
            return stack.enter_context(asgi.listening(host, port))
        except asgi.CannotListen as error:
            if not self._any_port:
                raise cannot_listen(host, port, error, _ANOTHER_ADDRESS.format(self._path)) from None
            return stack.enter_context(asgi.listening(host, 0))

    async def _watch(self, ending: asyncio.Event) -> None:
        """Load the file on request, and when it has changed."""
        waits = [asyncio.create_task(event.wait(), name="watch") for event in (ending, self._asked)]
        try:
            while not ending.is_set():
                await asyncio.wait(waits, timeout=self._watch_seconds, return_when=asyncio.FIRST_COMPLETED)
                if self._asked.is_set():
                    self._asked.clear()
                    waits[1] = asyncio.create_task(self._asked.wait(), name="watch")
                elif ending.is_set() or not self._file.look():
                    if self._file.is_just_gone:
                        self._say(f"`{self._path}` is gone. Nothing changes; it will be loaded when it is back.")
                    continue
                await self._reload_or_say()
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)

    async def _reload_or_say(self) -> None:
        try:
            await self.reload()
        except (Fault, DatabaseGone) as error:
            self._say(f"`{self._path}` was not loaded, and nothing changes:\n{error}")


def _home_here() -> str | None:
    """Where commands in this directory look for an exchange."""
    try:
        return find_home()
    except ConfigFileError:
        return None


def _local(home: str) -> socket.socket:
    try:
        return local_socket.listening(home, API_SOCKET)
    except OSError as error:
        raise ConfigError(f"There can be no socket in `{home}`: {error.strerror or error}.") from None


async def _until(stop: asyncio.Event, ending: asyncio.Event, *parts: Coroutine[Any, Any, None]) -> None:
    """Run all parts until `stop` is set or one of them fails; then set `ending` and wait for all.

    Raises:
        Exception: of the one that failed.
    """
    tasks = [asyncio.create_task(part, name="exchange") for part in parts]
    stopping = asyncio.create_task(stop.wait(), name="wait for stop")
    try:
        await asyncio.wait({*tasks, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ending.set()
        stopping.cancel()
        await asyncio.wait({*tasks, stopping})
    # All are looked at: asyncio complains about failures that nobody has seen.
    for failed in [task for task in tasks if task.exception() is not None]:
        failed.result()


def _counted(settings: ExchangeSettings) -> str:
    counts = (
        (len(settings.agents), "agent"), (len(settings.wires), "wire"), (len(settings.people), "person with a token"),
    )  # fmt: skip
    return ", ".join(f"{count} {what if count == 1 else _PLURALS[what]}" for count, what in counts)


_PLURALS = {"agent": "agents", "wire": "wires", "person with a token": "people with tokens"}
