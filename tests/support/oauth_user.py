"""Somebody who logs in to a server, in tests: with a browser, or by pasting what they were told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from tests.support.oauth_server import visit
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp import sdk
from trunkline.tools.mcp.oauth.flow import log_in
from trunkline.tools.mcp.oauth.store import Login


class TestUser:
    """See `flow.LoginUser`. Unless told otherwise, they open what they are shown."""

    __test__ = False

    def __init__(self, *, browses: bool = True) -> None:
        self.browses = browses
        self.url = ""
        self.redirect_uri = ""
        self.problems: list[str] = []
        self.shown = asyncio.Event()
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self._visit: asyncio.Task[httpx.Response] | None = None

    async def show(self, url: str, redirect_uri: str) -> None:
        self.url, self.redirect_uri = url, redirect_uri
        self.shown.set()
        if self.browses:
            self._visit = asyncio.create_task(visit(url))

    async def pasted(self) -> str:
        return await self.lines.get()

    def told(self, problem: str) -> None:
        self.problems.append(problem)

    async def page(self) -> httpx.Response:
        """What their browser shows in the end."""
        assert self._visit is not None
        return await self._visit


async def logged_in(spec: AddMcpServer, person: TestUser | None = None, **how: float) -> Login:
    """The login of somebody who does all that is asked."""
    await sdk.load(spec.name)
    return await log_in(spec, person or TestUser(), **{"seconds": PATIENCE_SECONDS, **how})


@asynccontextmanager
async def logging_in(spec: AddMcpServer, person: TestUser) -> AsyncIterator[asyncio.Task[Login]]:
    """A login that has come to the point where the person has seen the address."""
    work = asyncio.create_task(logged_in(spec, person))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await person.shown.wait()
        yield work
    finally:
        work.cancel()
        await asyncio.wait({work})


def edited(url: str, edit: Callable[[httpx.QueryParams], httpx.QueryParams]) -> str:
    """An address with other members behind its `?`."""
    found = httpx.URL(url)
    return str(found.copy_with(params=edit(found.params)))
