"""The Bot API over HTTP: one method, one request, and what its failure means for whoever sent something.

    SendFailed
    ├── TelegramRefused  Telegram said no: its `code` and words
    ├── NotNow           it asked to wait, is in trouble, or was never reached
    │   └── TokenRefused it does not accept the token: not the message's fault
    └── Unclear          the request went out, and no answer came back

The bot's token is a part of every address. It is masked in every error, in what the HTTP library logs, and in `repr`.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from trunkline.base import http, jsontext
from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.chat.plain import sentence
from trunkline.chat.platform import NotNow, SendFailed, TokenRefused, Unclear

if TYPE_CHECKING:
    import httpx

#: Telegram answers within a second; an upload is answered when it is stored.
ANSWER_SECONDS = 30.0

#: A hundred updates have some hundred kilobytes. What is longer is no answer of the Bot API.
MAX_ANSWER_BYTES = 16 * 1024 * 1024

#: How much of Telegram's words is repeated.
SHOWN_CHARS = 300

#: The loggers that write down addresses, at levels that people do turn on.
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")


#: How the system numbers what it says. It is of no use to people.
_ERRNO = re.compile(r"\[Errno -?\d+\] ")


class TelegramRefused(SendFailed):
    """Telegram's own no. `code` is like a status of HTTP."""

    def __init__(self, message: str, code: int, description: str) -> None:
        super().__init__(message)
        self.code = code
        self.description = description


def decode(status: int, body: bytes, mask: Callable[[str], str] = str) -> Any:
    """The result in an answer of the Bot API. `mask` goes over the words that it gives for a refusal.

    Raises:
        SendFailed: it is none; or one of its children.
    """
    try:
        answer = jsontext.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _not_the_api(status)
    if answer.get("ok") is True:
        return answer.get("result")
    raise _refusal(status, answer, mask)


def _not_the_api(status: int) -> SendFailed:
    """What an answer amounts to that did not come from Telegram itself, but from something before it."""
    if status == 504:
        # Something in between waited in vain. Whether Telegram acts on it, nobody knows.
        return Unclear("Telegram did not answer in time (504).")
    if status >= 500:
        return NotNow(f"Telegram is in trouble ({status}).")
    if status >= 300:
        return SendFailed(f"This is not Telegram's Bot API: it answers {status}. Check `api_url`.")
    return Unclear(f"Telegram's answer ({status}) cannot be read.")


def _refusal(status: int, answer: Mapping[str, Any], mask: Callable[[str], str]) -> SendFailed:
    code, words = answer.get("error_code"), answer.get("description")
    code = code if isinstance(code, int) else status
    words = mask(words)[:SHOWN_CHARS] if isinstance(words, str) else "no details"
    parameters = answer.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    if code == 429:
        seconds = parameters.get("retry_after")
        wait = float(seconds) if isinstance(seconds, int) else None
        return NotNow(sentence(f"Telegram asks to slow down: {words}"), wait)
    if code == 401:
        return TokenRefused(sentence(f"Telegram does not accept the bot token: {words}"))
    if code >= 500:
        return NotNow(sentence(f"Telegram has a problem: {words}"))
    message = sentence(f"Telegram refused ({code}): {words}")
    if (moved := parameters.get("migrate_to_chat_id")) is not None:
        message = f"The group has become a supergroup with the id `{moved}`; write there to continue."
    return TelegramRefused(message, code, words)


class Api:
    """One bot's way to the Bot API.

    Raises:
        ValueError: a variable for proxies or certificates holds what cannot work; the text names it.
    """

    def __init__(self, token: str, url: str) -> None:
        import logging

        self._token = token
        self._url = url.rstrip("/")
        self._secrets = Redactor([token])
        self._client = http.client(secure=self._url.startswith("https:"), read=ANSWER_SECONDS)
        # On the loggers, not on their handlers: others may be added later.
        self._filter = RedactingFilter(self._secrets)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._filter)

    def __repr__(self) -> str:
        return f"<Api {self.text(self._url)}>"

    def is_closed(self) -> bool:
        """Whether it has been closed, perhaps by somebody else while we were waiting."""
        return self._client.is_closed

    def text(self, text: str) -> str:
        """The text without the token."""
        return self._secrets.text(text)

    async def call(self, method: str, parameters: Mapping[str, Any], *, seconds: float = ANSWER_SECONDS) -> Any:
        """The result of a method. `None` for a parameter leaves it out.

        Args:
            seconds: how long an answer may take.

        Raises:
            SendFailed: or one of its children.
        """
        body = jsontext.dumps({name: value for name, value in parameters.items() if value is not None})
        headers = {"content-type": "application/json"}
        return await self._ask(method, seconds, content=body, headers=headers)

    async def upload(
        self, method: str, parameters: Mapping[str, Any], field: str, file: BinaryIO, *, name: str, seconds: float
    ) -> Any:
        """The result of a method that takes a file.

        Raises:
            SendFailed: or one of its children.
        """
        form = {key: str(value) for key, value in parameters.items() if value is not None}
        return await self._ask(method, seconds, data=form, files={field: (name, file)})

    async def download(self, place: str, path: str, limit: int) -> None:
        """Save the file that `getFile` calls `place` under `path`. What fails leaves nothing there.

        Raises:
            SendFailed: or one of its children; also when it has more than `limit` bytes.
            OSError: it cannot be written.
        """
        from urllib.parse import quote

        address = f"{self._url}/file/bot{self._token}/{quote(place)}"
        async with self._sent("GET", address, ANSWER_SECONDS) as response:
            if response.status_code != 200:
                decode(response.status_code, await self._body(response), self.text)
                raise Unclear("Telegram sent no file.")
            with _new_file(path) as file:
                try:
                    await self._save(response, file, limit)
                except BaseException:
                    os.unlink(path)
                    raise

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        import logging

        await self._client.aclose()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._filter)

    async def _ask(self, method: str, seconds: float, **request: Any) -> Any:
        async with self._sent("POST", f"{self._url}/bot{self._token}/{method}", seconds, **request) as response:
            body = await self._body(response)
        return decode(response.status_code, body, self.text)

    async def _body(self, response: httpx.Response) -> bytes:
        try:
            return await http.whole(response.aiter_bytes(), MAX_ANSWER_BYTES)
        except http.BodyTooLong:
            raise Unclear(f"Telegram's answer is longer than {MAX_ANSWER_BYTES} bytes.") from None

    async def _save(self, response: httpx.Response, file: BinaryIO, limit: int) -> None:
        size = 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > limit:
                raise SendFailed(f"The file has more than the {megabytes(limit)} that a bot may download.")
            file.write(part)

    @asynccontextmanager
    async def _sent(self, verb: str, address: str, seconds: float, **request: Any) -> AsyncIterator[httpx.Response]:
        """The answer's beginning. What breaks before the request is out is `NotNow`, and after that `Unclear`."""
        import httpx

        timeout = httpx.Timeout(seconds, connect=http.CONNECT_SECONDS, write=http.WRITE_SECONDS)
        try:
            async with self._client.stream(verb, address, timeout=timeout, **request) as response:
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            raise NotNow(sentence(f"Telegram cannot be reached: {self._reason(error)}")) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise SendFailed(sentence(f"`api_url` is not a valid address: {self._reason(error)}")) from None
        except httpx.HTTPError as error:
            raise Unclear(sentence(f"The connection to Telegram was lost: {self._reason(error)}")) from None
        except RuntimeError:
            # How the HTTP library says that it was closed in the meantime.
            if not self._client.is_closed:
                raise
            raise NotNow("The connection to Telegram was closed.") from None

    def _reason(self, error: Exception) -> str:
        return self.text(_ERRNO.sub("", str(error)) or type(error).__name__)[:SHOWN_CHARS]


def megabytes(size: int) -> str:
    """A size for people, rounded up: what is a byte over a limit is over it."""
    return f"{-(-size // 2**20)} MB"


def _new_file(path: str) -> BinaryIO:
    # Exclusive: nobody may have put a link to somewhere else there. And for nobody else to read.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
