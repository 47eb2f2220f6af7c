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
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from typing import Any

from trunkline.base import asgi, local_socket, log_context
from trunkline.base.environ_secrets import withhold
from trunkline.base.exchange_home import API_SOCKET
from trunkline.base.extras import missing
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.starting import cannot_listen, lacks_package
from trunkline.exchange import config
from trunkline.exchange.alone import alone
from trunkline.exchange.attach import attach_socket
from trunkline.exchange.config_changes import unchangeable
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.expiring import Expiry
from trunkline.exchange.service import Service
from trunkline.exchange.settings import EXTRA, ExchangeSettings
from trunkline.exchange.watching import WatchedFile
from trunkline.exchange.webhook import ApprovalWebhook
from trunkline.exchange.wires import Wires
from trunkline.store.database import DatabaseGone
from trunkline.telemetry.exporting import TelemetrySettings, begin

logger = logging.getLogger(__name__)

#: How often to check whether the file has changed: soon enough for someone who has just saved it.
WATCH_SECONDS = 1.0

_ANOTHER_ADDRESS = "Choose another `listen` in the section `[exchange]` of `{}`; port 0 is any that is free."

Say = Callable[[str], None]


class ExchangeProcess:
    """One exchange, by its file. A `Service`."""

    name = "exchange"
    about = "the console: see and steer every agent in your browser"

    def __init__(
        self,
        path: str,
        say: Say = logger.info,
        environ: Mapping[str, str] | None = None,
        *,
        write: Callable[[str], None] = lambda path: None,
        any_port: bool = False,
        beside: Sequence[Service] = (),
        watch_seconds: float = WATCH_SECONDS,
        learn: Callable[[Iterable[str]], None] = lambda secrets: None,
    ) -> None:
        """`write` makes sure that the file exists; `any_port`: use another port if the configured one is taken;
        `beside`: what runs in the same process, for the console's first page; `learn` is told the secrets that the file
        names, for whoever keeps them out of a log."""
        self._path = path
        self._say = say
        # A copy: what agents must not have is taken out of ours.
        self._environ = dict(os.environ if environ is None else environ)
        self._write = write
        self._any_port = any_port
        self._beside = tuple(beside)
        self._watch_seconds = watch_seconds
        self._learn = learn
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
        """How to try it: a link that signs one browser in."""
        if self._exchange is None:
            return f"curl {self.where}/livez"
        from trunkline.exchange.api.signing_in import link

        return f"open {link(self.where, self._exchange.browsers.code())}"

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
        self._learn(settings.secrets(self._environ))
        withhold(settings.variables)
        node = {} if settings.cluster is None else {"node": settings.cluster.node}
        with alone(settings.home), log_context.about(**node):
            async with (
                _traced(TelemetrySettings.of(self._environ, **settings.otel)),
                Exchange.opened(settings, environ=self._environ, wait=False) as exchange,
            ):
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
            if problems := list(unchangeable(exchange.settings, settings)):
                raise config.WrongFile(problems)
            self._learn(settings.secrets(self._environ))
            withhold(settings.variables)
            await exchange.take_up(settings)
            if self._wires is not None:
                await self._wires.take_up(settings.wires)
        self._say(f"`{self._path}` was loaded: {_counted(settings)}.")

    def ask_to_reload(self) -> None:
        """The same, soon, for callers that wait for no answer: the result is logged."""
        self._asked.set()

    async def _serve(self, exchange: Exchange, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.exchange.api.app import application
        from trunkline.exchange.api.errors import members as refusal
        from trunkline.exchange.api.faces import MAX_FRAME

        with ExitStack() as stack:
            host, port = exchange.settings.listen
            listener = self._listener(stack, host, port)
            self._address = (host, listener.getsockname()[1])
            exchange.address, exchange.beside = self.where, self._beside
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


@asynccontextmanager
async def _traced(settings: TelemetrySettings | None) -> AsyncIterator[None]:
    """Make spans for the duration of the block, if there are to be any."""
    end = await asyncio.to_thread(begin, settings)
    try:
        yield
    finally:
        # Not here: it waits for the last of them.
        await asyncio.to_thread(end)


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
