"""Messages over the HTTP API, said again under their ids until a node has taken them in. Their ends are for the
session's watcher to see."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx

from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, Choose
from tests.chaos.cluster.hearing import Hearing

_GOOD = range(200, 300)
#: What passes. 409: the session is busy, or moves.
_PASSING = (409, 429, 500, 502, 503)


class HttpClient:
    """One program. `troubles` is told what should not have been refused."""

    def __init__(self, session: str, choose: Choose, http: httpx.AsyncClient, troubles: list[str]) -> None:
        self._session = session
        self._choose = choose
        self._http = http
        self._troubles = troubles

    async def converse(self, hearing: Hearing) -> None:
        body = {"text": hearing.text, "msg_id": hearing.id}
        if await self.asked(f"/api/sessions/{self._session}/messages", body):
            hearing.taken()

    async def asked(self, path: str, body: object) -> bool:
        """Ask nodes until one has done it; False if it is refused for good."""
        while True:
            with suppress(httpx.HTTPError, OSError):
                answer = await self._http.post(self._choose().url + path, json=body)
                if answer.status_code in _GOOD:
                    return True
                if answer.status_code not in _PASSING or answer.status_code == 500:
                    self._troubles.append(f"POST {path}: {answer.status_code} {answer.text[:300]}")
                if answer.status_code not in _PASSING:
                    return False
            await asyncio.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Each message has its own connection."""
