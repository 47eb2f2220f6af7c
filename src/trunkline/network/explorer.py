"""The block explorer: where the ABI and the source of a contract come from when its owner does not give them.

It speaks Etherscan's API, version 2, to the one address that the operator configured. Every exchange is limited in time
and size; what goes wrong is told to the owner with what to do instead, and never with the operator's key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trunkline.base import http, jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.network import abi as abis
from trunkline.network import sources
from trunkline.network.network import SEPOLIA_ID, NetworkSettings

#: One exchange, from connecting to the last byte.
EXCHANGE_SECONDS = 15.0
#: All exchanges for one request of an owner, who is waiting.
ALL_SECONDS = 60.0
#: The longest answer. A large project with its libraries has two megabytes.
MAX_ANSWER = 8 * 1024 * 1024
#: How long to wait before the second and the third try, when the explorer says that it was asked too often.
PAUSES = (0.45, 0.9)

#: Characters of the explorer's own words that are passed on.
_MAX_WORDS = 200
_TOO_OFTEN = ("rate limit", "too many", "max calls")
_PASTE = "Paste the contract's ABI as `abi` instead."

Pause = Callable[[float], Awaitable[None]]


class VerifiedContract(Value):
    """What the explorer knows about a contract."""

    abi: abis.Abi
    source: sources.Source | None = None
    name: str | None = None


class _Failed(Exception):
    """The explorer has no answer. The text says why."""


class _Busy(_Failed):
    """The explorer was asked too often."""


class Explorer:
    """Asks for contracts. Belongs to the event loop."""

    def __init__(self, settings: NetworkSettings, *, pause: Pause = asyncio.sleep) -> None:
        self._url = settings.explorer_url
        self._key = settings.explorer_key or ""
        self._redact = Redactor([self._key] if self._key else [])
        self._pause = pause

    @property
    def configured(self) -> bool:
        """Whether there is one to ask."""
        return bool(self._url)

    async def contracts(self, addresses: list[str]) -> dict[str, VerifiedContract]:
        """What is known about contracts, by address.

        Raises:
            Refused: 400, about one of them nothing could be learnt. The text says why and what to do.
        """
        if not addresses:
            return {}
        if not self._url:
            raise Refused(400, f"No block explorer is configured. {_PASTE}")
        try:
            async with asyncio.timeout(ALL_SECONDS), http.client(secure=self._url.startswith("https:")) as client:
                return {address: await self._contract(client, address) for address in addresses}
        except TimeoutError:
            raise Refused(400, f"The block explorer did not answer in time. {_PASTE}") from None
        except ValueError as error:
            raise Refused(400, f"The block explorer cannot be asked: {self._words(error)} {_PASTE}") from None

    async def _contract(self, client: Any, address: str) -> VerifiedContract:
        abi = abis.checked(await self._asked(client, address, "getabi"))
        try:
            entries = await self._asked(client, address, "getsourcecode")
        except Refused:
            # Agents can work with the ABI alone.
            return VerifiedContract(abi)
        entry = entries[0] if isinstance(entries, list) and entries and isinstance(entries[0], dict) else {}
        source = sources.from_explorer(entry)
        return VerifiedContract(abi, source, source["contractName"] if source else None)

    async def _asked(self, client: Any, address: str, action: str) -> Any:
        """The `result` of an answer, after waiting a little where the explorer asks for it."""
        for seconds in (*PAUSES, None):
            try:
                return _result(await self._exchange(client, address, action))
            except _Busy:
                if seconds is None:
                    raise Refused(400, f"The block explorer is asked too often now. {_PASTE}") from None
                await self._pause(seconds)
            except _Failed as failed:
                raise Refused(400, f"The block explorer has no answer: {self._words(failed)}. {_PASTE}") from None
        raise AssertionError("the last round returns or raises")

    async def _exchange(self, client: Any, address: str, action: str) -> Any:
        import httpx

        parameters = {"chainid": str(SEPOLIA_ID), "module": "contract", "action": action, "address": address}
        if self._key:
            parameters["apikey"] = self._key
        try:
            async with (
                asyncio.timeout(EXCHANGE_SECONDS),
                client.stream("GET", self._url, params=parameters) as response,
            ):
                data = await http.whole(response.aiter_bytes(), MAX_ANSWER)
        except http.BodyTooLong:
            raise _Failed("its answer is too long") from None
        except TimeoutError:
            raise _Failed("it did not answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The library's text may hold the address that was asked, and that holds the key.
            raise _Failed(f"it cannot be reached ({type(error).__name__})") from None
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise _Busy
        try:
            return await asyncio.to_thread(jsontext.loads, data)
        except ValueError:
            raise _Failed(f"it did not answer in JSON (status {response.status_code})") from None

    def _words(self, error: Exception) -> str:
        return self._redact.text(sources.clean(str(error)))[:_MAX_WORDS]


def _result(answer: Any) -> Any:
    """What an answer says, if it is one of success."""
    if not isinstance(answer, Mapping):
        raise _Failed("its answer is not an object")
    result = answer.get("result")
    if str(answer.get("status")) == "1":
        return result
    words = result if isinstance(result, str) and result else answer.get("message")
    words = words if isinstance(words, str) and words else "it gave no reason"
    if any(sign in words.lower() for sign in _TOO_OFTEN):
        raise _Busy
    raise _Failed(words.rstrip("."))
