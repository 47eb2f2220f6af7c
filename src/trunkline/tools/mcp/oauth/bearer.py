"""Tokens on the requests to a server: put there, renewed when they are over, and never sent anywhere else."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING

import httpx2

from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.oauth import renewing
from trunkline.tools.mcp.oauth.flow import RENEW_SECONDS, NotRenewed, renew, revoke
from trunkline.tools.mcp.oauth.requests import is_safe
from trunkline.tools.mcp.oauth.store import KeyringSilent, Login, LoginStore
from trunkline.tools.threads import in_thread

if TYPE_CHECKING:
    from httpx2 import URL, Request, Response

logger = logging.getLogger(__name__)

#: A token that is over so soon may be over when it arrives.
MARGIN_SECONDS = 10.0
#: How often is looked whether another process is done with renewing: that takes a request or two.
LOOK_SECONDS = 0.05

_UNAUTHORIZED = 401


class BearerAuth(httpx2.Auth):
    """Puts the token of the login to a server on each request to it.

    Where there is none, requests go out as they are. `on_answer` is told each answer about which nothing more can be
    done; `problem` says whether there is a login that could not be used.
    """

    def __init__(
        self,
        spec: AddMcpServer,
        store: LoginStore,
        redactor: Redactor,
        on_answer: Callable[[Response], Awaitable[None]],
    ) -> None:
        self._spec = spec
        self._store = store
        self._redactor = redactor
        self._on_answer = on_answer
        self._url = httpx2.URL(spec.url or "")
        self._login: Login | None = None
        self._looked = False
        self._loading = asyncio.Lock()
        self._renewing: asyncio.Task[Login | None] | None = None
        self.problem = ""
        """Why the login that there is could not be used, as the rest of a sentence about the server."""

    async def async_auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
        """See `httpx2.Auth`."""
        if not self._is_server(request.url):
            yield request
            return
        login = await self._current()
        _put(login, request)
        response = yield request
        if response.status_code == _UNAUTHORIZED and login is not None and self._is_server(response.request.url):
            login = await self._renewed(login)
            if login is not None:
                _put(login, request)
                response = yield request
        await self._on_answer(response)

    def _is_server(self, url: URL) -> bool:
        """Whether a request goes to the server itself, or to its secure twin."""
        own = self._url
        if (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port):
            return True
        return url.host == own.host and url.scheme == "https" and url.port is None and own.port is None

    async def _current(self) -> Login | None:
        """The login as it is now; renewed if it is over."""
        async with self._loading:
            if not self._looked:
                self._looked = True
                self._learn(await self._load())
            login = self._login
        if login is None or login.expires_at is None or login.expires_at - MARGIN_SECONDS > time.time():
            return login
        return await self._renewed(login)

    async def _renewed(self, old: Login) -> Login | None:
        """Another login than the one that is over; None: there is none."""
        if self._login is not old:
            return self._login
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew(old), name=f"renew the login to {self._spec.name}")
            renewing.add(self._renewing)
            self._renewing.add_done_callback(self._end_renewing)
        # Whoever waits for it may be stopped. The old token may be of no use by then, so the new one must be kept.
        return await asyncio.shield(self._renewing)

    async def _renew(self, old: Login) -> Login | None:
        handle = await self._begin_renewing()
        try:
            # Another process may have been quicker.
            login = await self._load()
            if login is not None and login.tokens == old.tokens:
                login = await self._asked_for(login)
        finally:
            if handle is not None:
                os.close(handle)
        self._learn(login)
        return login

    def _end_renewing(self, done: asyncio.Task[Login | None]) -> None:
        self._renewing = None
        renewing.discard(done)
        if not done.cancelled():
            # If nobody waits any longer, nobody has to know.
            done.exception()

    async def _asked_for(self, login: Login) -> Login | None:
        if not login.tokens.get("refresh_token"):
            return None
        try:
            renewed = await renew(login)
        except NotRenewed as error:
            self.problem = str(error)
            return None
        try:
            if renewed is None:
                await in_thread(lambda _: self._store.forget(self._spec))
            elif not await in_thread(lambda _: self._store.replace(login, renewed)):
                # Somebody has logged out meanwhile, or logged in anew.
                await revoke(renewed)
                return await self._load()
        except (KeyringSilent, OSError) as error:
            # Here and now it is good all the same.
            logger.warning("The login to MCP server `%s` cannot be kept: %s", self._spec.name, type(error).__name__)
        return renewed

    async def _begin_renewing(self) -> int | None:
        """Wait until nobody else renews it, but not for ever."""
        try:
            async with asyncio.timeout(RENEW_SECONDS):
                while (handle := self._store.begin_renewing(self._spec)) is None:  # noqa: ASYNC110  (of another process)
                    await asyncio.sleep(LOOK_SECONDS)
        except (TimeoutError, OSError):
            return None
        return handle

    async def _load(self) -> Login | None:
        # Its tokens must not be read on their way.
        if not is_safe(str(self._url), str(self._url)):
            return None
        try:
            return await in_thread(lambda _: self._store.load(self._spec))
        except KeyringSilent:
            self.problem = "has its login in the keyring, which does not answer; unlock it"
            return None

    def _learn(self, login: Login | None) -> None:
        self._login = login
        if login is not None:
            self._redactor.learn(login.secrets)


def _put(login: Login | None, request: Request) -> None:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.tokens.get('access_token', '')}"
