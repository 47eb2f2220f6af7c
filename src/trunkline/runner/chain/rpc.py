"""The connection to an Ethereum node.

Each question is limited as a whole, from connecting to the last byte of its answer, in time and in size. Nothing is
asked twice: whether that is safe is for the caller to say. No error names the node's address, which holds a key.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Any

from trunkline.base import http
from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.core.faults import ConfigError
from trunkline.runner.chain import jsonrpc
from trunkline.runner.chain.jsonrpc import Unanswered

if TYPE_CHECKING:
    import httpx

#: A block with its transactions' hashes, or what a view returns, is far smaller.
MOST_BYTES = 4 * 1024 * 1024


#: Those of the HTTP library, which logs the address of each request.
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")


class Rpc:
    """Asks one node. Close it when done. `redactor` knows the keys in its address."""

    def __init__(self, url: str, seconds: float, redactor: Redactor) -> None:
        self._url = url
        self._seconds = seconds
        self._redactor = redactor
        # On the loggers, not on their handlers: others may be added later.
        self._filter = RedactingFilter(redactor)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._filter)
        self._numbers = itertools.count(1)
        self._client: httpx.AsyncClient | None = None

    async def call(self, method: str, *parameters: Any) -> Any:
        """The result of a method.

        Raises:
            Refused: the node says no.
            Unanswered: it says nothing that could be used, or not in time.
            ConfigError: the environment names a proxy or certificates that cannot be used.
        """
        number = next(self._numbers)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._post(jsonrpc.request(number, method, parameters))
                # Nodes, and whoever stands before them, repeat the address that was asked, and what it held.
                return jsonrpc.result(answer, number, self._redactor.text)
        except TimeoutError:
            raise Unanswered(f"The RPC node did not answer `{method}` within {self._seconds:g} s.") from None

    async def close(self) -> None:
        """Close the connections, for good. May be called again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._filter)

    async def _post(self, body: bytes) -> bytes:
        import httpx

        headers = {"content-type": "application/json"}
        try:
            async with self._ready().stream("POST", self._url, content=body, headers=headers) as response:
                data = await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unanswered(f"The RPC node cannot be reached ({type(error).__name__}).", sent=False) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise Unanswered("The RPC node's address is not a valid URL.", sent=False) from None
        except httpx.HTTPError as error:
            raise Unanswered(f"The connection to the RPC node broke off ({type(error).__name__}).") from None
        if response.status_code != 200 and not jsonrpc.is_error(data):
            raise Unanswered(f"The RPC node answered with HTTP status {response.status_code}.")
        return data

    def _ready(self) -> httpx.AsyncClient:
        if self._client is None:
            try:
                self._client = http.client(secure=self._url.startswith("https"), read=self._seconds)
            except ValueError as error:
                raise ConfigError(str(error)) from None
        return self._client


async def _read(response: httpx.Response) -> bytes:
    try:
        # As it crossed the wire: we asked for no compression, and a small text could become a huge one.
        return await http.whole(response.aiter_raw(), MOST_BYTES)
    except http.BodyTooLong:
        raise Unanswered(f"The RPC node's answer has more than {MOST_BYTES} bytes.") from None
