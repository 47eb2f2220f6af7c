"""An exchange whose console is open in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

from tests.support.browser import visiting
from tests.support.exchange_world import CommandedAgent
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.base import asgi
from trunkline.core.agent import Agent
from trunkline.exchange.api.app import application
from trunkline.exchange.api.signing_in import link
from trunkline.exchange.exchange import Exchange, by_registry
from trunkline.exchange.settings import AgentSettings, ExchangeSettings

START_SECONDS = 60.0


class ConsoleWorld:
    """What is served, and who serves it. The agent `helper` does what the messages say: `say hello; tool t1; wait`."""

    def __init__(self, root: Path, agents: Mapping[str, str]) -> None:
        self.root = root
        self.helper = CommandedAgent()
        self.exchange: Exchange
        self.site = ""
        self._port = free_port()
        self._agents = {"helper": "helper", **agents}

    @property
    def settings(self) -> ExchangeSettings:
        agents = {name: AgentSettings(name, agent, str(self.root)) for name, agent in self._agents.items()}
        return ExchangeSettings("", str(self.root / "home"), agents=agents)

    async def _made(self, name: str, options: dict[str, Any]) -> Agent:
        return self.helper if name == "helper" else await by_registry(name, options)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """The exchange is up for the duration of the block; the next time it has the same address."""
        stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with Exchange.opened(self.settings, make=self._made) as exchange:
            app = application(exchange)
            listening = asgi.serve(
                app,
                "127.0.0.1",
                self._port,
                stop,
                lambda *_: ready.set_result(None),
                stopping=app.state.streams.close,
            )
            serving = asyncio.create_task(listening)
            try:
                await asyncio.wait({serving, ready}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                ready.result()
                self.exchange, self.site = exchange, f"http://127.0.0.1:{self._port}"
                exchange.address = self.site
                yield
            finally:
                stop.set()
                await asyncio.wait_for(serving, PATIENCE_SECONDS)

    @asynccontextmanager
    async def visited(self, browser: Browser, *, phone: bool = False, dark: bool = False) -> AsyncIterator[Page]:
        """A page of a browser that was signed in by a link."""
        async with visiting(browser, self.site, phone=phone, dark=dark) as page:
            await page.goto(link("", self.exchange.browsers.code()))
            yield page


@asynccontextmanager
async def console(root: Path, **agents: str) -> AsyncIterator[ConsoleWorld]:
    """An exchange with the agent `helper` and these, by their names in the registry, and its console."""
    world = ConsoleWorld(root, agents)
    async with world.served():
        yield world


async def violations(page: Page) -> list[str]:
    """What keeps people with a screen reader, a keyboard or poor sight from using a page, as axe-core finds it."""
    found = await Axe().run(page)
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}" for each in found.response["violations"]]
