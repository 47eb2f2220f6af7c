"""A question to a provider over HTTP: sent, tried again as long as that makes sense, and read as it comes.

- A failure that may pass (429, 5xx, no connection, a stream that breaks off) is announced by a `Retrying` and tried
  again after a while, but never after something of the answer was shown, and not where a server of this machine is
  not running.
- What the provider asks for (`Retry-After`) is honoured up to a limit; without it we give up after half a minute.
- An answer that has a reason for its end is complete, even if the connection is lost or stays silent after it.
- Leaving the iterator, or cancelling its task, closes the connection at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from trunkline.base import http, posting_kept, trace_context
from trunkline.base.posting import ConnectionFailed, Poster, Response, poster
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.core.usage import Usage
from trunkline.models.backoff import GIVE_UP_SECONDS, MAX_ASKED_SECONDS, MAX_TRIES, RequestBackoff
from trunkline.models.endpoint import host_of, without_secrets
from trunkline.models.http_errors import BASE_URL, NobodyListens, clipped, connection_fault, status_fault
from trunkline.models.model import Answer as Whole
from trunkline.models.model import Chunk, ReplyState, Retrying

#: Enough of an error's body to find its message in.
MAX_ERROR_BODY = 64 * 1024

#: An error's body comes at once or is not worth waiting for.
ERROR_BODY_SECONDS = 5.0

#: How long the end of a stream is awaited after the provider said that it is over. With it the connection can be used
#: again, which saves the next request a handshake; without it nothing is lost.
DRAIN_SECONDS = 0.25

#: How long more is awaited after the answer has a reason for its end: what was used is counted behind it, at once, but
#: not every server says then that it is over.
LAST_WORDS_SECONDS = 1.0

#: The shortest time to give a connection that is made when the time for tries is nearly up.
SHORTEST_CONNECT_SECONDS = 1.0


class HttpCall(Value):
    """One POST request, ready to send."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class ReplyReader(ReplyState, Protocol):
    """Reads one answer: its bytes go in, chunks come out. Raises `ProviderError` where they say that it failed."""

    def feed(self, data: bytes) -> Sequence[Chunk]:
        """Take some bytes and give what can be shown."""

    def finish(self) -> Sequence[Chunk]:
        """There is no more: give what is left, the `Answer` last. Raises `ProviderError` if that is too early."""


class HttpService:
    """One provider's address, with the connections to it.

    Args:
        secure: whether the address begins with `https`.
        hints: what to do next after an answer with a certain status.
        secrets: what must not show up in an error, though the provider may repeat it.
        address: where people say the address.
        give_up: seconds after which a question that fails is not asked again, unless the provider asks to wait.
        tries: how often a question is asked at most. Where another provider can be asked, once is enough.
    """

    def __init__(
        self,
        *,
        secure: bool,
        hints: Mapping[int, str] | None = None,
        secrets: Sequence[str] = (),
        address: str = BASE_URL,
        give_up: float = GIVE_UP_SECONDS,
        tries: int = MAX_TRIES,
    ) -> None:
        self._secure = secure
        self._give_up = give_up
        self._tries = tries
        self._address = address
        self._hints = hints or {}
        self._redactor = Redactor(secrets)
        self._poster: Poster | None = None

    def warm(self) -> None:
        """Do now what the first question would have to wait for: import the HTTP library, load certificates.

        Raises:
            ConfigError: the environment names a proxy or certificates that cannot be used.
        """
        self._ready()

    def warmed(self) -> bool:
        """Whether nothing is left that `warm` would do. To be asked in the event loop."""
        if self._poster is None:
            self._poster = posting_kept.kept(secure=self._secure)
        return self._poster is not None

    async def close(self) -> None:
        """Let go of all connections. Idempotent; a later question makes new ones."""
        found, self._poster = self._poster, None
        if found is not None:
            await posting_kept.give_back(found, secure=self._secure)

    async def stream(
        self,
        call: Callable[[], Awaitable[HttpCall]],
        reader: Callable[[], ReplyReader],
        on_spent: Callable[[Usage], None] | None = None,
    ) -> AsyncGenerator[Chunk, None]:
        """Ask, as often as it takes. `call` and `reader` are made anew for each try, `on_spent` is of the request's.

        Raises:
            ProviderError: it did not work.
        """
        self._warm_here()
        backoff = RequestBackoff(time.monotonic(), give_up=self._give_up, tries=self._tries)
        connect = http.CONNECT_SECONDS
        while True:
            shown = answered = False
            response: Response | None = None
            reading: ReplyReader | None = None
            try:
                response = await self._open(await call(), connect)
                reading, arriving = reader(), _Arriving(response)
                until: float | None = None
                while (data := await arriving.more(until)) is not None:
                    chunks = reading.feed(data)
                    for chunk in chunks:
                        shown = True
                        yield chunk
                    if reading.done:
                        break
                    # Some servers give a reason with every piece: what is shown proves that it goes on.
                    if reading.complete and (chunks or until is None):
                        until = asyncio.get_running_loop().time() + LAST_WORDS_SECONDS
                for chunk in arriving.finished(reading):
                    answered = isinstance(chunk, Whole)
                    yield chunk
                await arriving.drain()
                return
            except ConnectionFailed as error:
                fault = self._redacted(connection_fault(error, self._address))
            except ProviderError as error:
                fault = self._redacted(error)
            finally:
                _account(None if answered else reading, on_spent)
                if response is not None:
                    await response.close()
            if shown or not fault.retryable or isinstance(fault, NobodyListens):
                raise fault
            now = time.monotonic()
            asked = getattr(fault, "after", None)
            seconds = backoff.wait(now, asked)
            if seconds is None:
                raise _given_up(fault, asked)
            yield Retrying(str(fault), seconds)
            await asyncio.sleep(seconds)
            left = backoff.left(time.monotonic())
            connect = max(SHORTEST_CONNECT_SECONDS, min(http.CONNECT_SECONDS, left))

    async def status(self, url: str, headers: Mapping[str, str], within: float) -> int:
        """The status of the answer to a GET request; its content is nobody's.

        Raises:
            ProviderError: there is no answer within these seconds.
        """
        self._warm_here()
        try:
            async with asyncio.timeout(within):
                response = await self._ready().get(url, headers, connect=within)
        except TimeoutError:
            silent = ConnectionFailed("late", host_of(url))
            raise self._redacted(connection_fault(silent, self._address)) from None
        except ConnectionFailed as error:
            raise self._redacted(connection_fault(error, self._address)) from None
        except ValueError as error:
            raise ConfigError(f"`{without_secrets(url)}` is not a valid URL: {error}.") from None
        await response.close()
        return response.status

    def _warm_here(self) -> None:
        if not self.warmed():
            self.warm()

    def _ready(self) -> Poster:
        if self._poster is None:
            try:
                self._poster = poster(secure=self._secure)
            except ValueError as error:
                raise ConfigError(str(error)) from None
        return self._poster

    async def _open(self, call: HttpCall, connect: float) -> Response:
        """The answer to a request, its status good and its body still to come."""
        try:
            headers = {**call.headers, **trace_context.headers()}
            response = await self._ready().post(call.url, headers, call.body, connect=connect)
        except ValueError as error:
            raise ConfigError(f"`{without_secrets(call.url)}` is not a valid URL: {error}.") from None
        if 200 <= response.status < 300:
            return response
        try:
            body = await _beginning(response)
        finally:
            await response.close()
        raise status_fault(response.status, response.headers, body, self._hints)

    def _redacted(self, fault: ProviderError) -> ProviderError:
        # Before it is cut: half of a secret would not be known for one.
        fault.say(message=clipped(self._redactor.text(fault.message)))
        return fault


def _account(unfinished: ReplyReader | None, on_spent: Callable[[Usage], None] | None) -> None:
    """Tell what a try has cost that gave no answer."""
    spent = unfinished.spent if unfinished is not None else None
    if spent is not None and on_spent is not None:
        on_spent(spent)


class _Arriving:
    """The bytes of an answer as they come in, for as long as they are worth waiting for."""

    def __init__(self, response: Response) -> None:
        self._bytes = response.pieces()
        self._lost: ConnectionFailed | None = None

    async def more(self, until: float | None) -> bytes | None:
        """The next bytes; None at the end, however it came, or when it is later than `until` by the loop's clock."""
        try:
            async with asyncio.timeout_at(until):
                return await anext(self._bytes, None)
        except TimeoutError:
            return None
        except ConnectionFailed as error:
            self._lost = error
            return None

    def finished(self, reading: ReplyReader) -> Sequence[Chunk]:
        """What is left of the answer. If that is too early, and the connection was lost, that is why."""
        try:
            left = reading.finish()
        except ProviderError:
            if self._lost is None:
                raise
            raise connection_fault(self._lost) from None
        # Not every reader knows where its answer ends.
        if self._lost is not None and not (reading.done or reading.complete):
            raise connection_fault(self._lost)
        return left

    async def drain(self) -> None:
        """Read to the end, if it comes soon."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in self._bytes:
                    pass
        except (TimeoutError, ConnectionFailed):
            pass  # The answer is complete; only the connection is not used again.


async def _beginning(response: Response) -> bytes:
    """As much of an error's body as is needed and comes soon."""
    body = b""
    try:
        async with asyncio.timeout(ERROR_BODY_SECONDS):
            async for data in response.pieces():
                body += data
                if len(body) >= MAX_ERROR_BODY:
                    break
    except (TimeoutError, ConnectionFailed):
        pass  # The status alone says what matters.
    return body[:MAX_ERROR_BODY]


def _given_up(fault: ProviderError, asked: float | None) -> ProviderError:
    if asked is not None and asked > MAX_ASKED_SECONDS:
        hint = f"The provider asks to wait for {asked:.0f} s, too long to wait here: try again then."
        return ProviderError(fault.message, retryable=True, hint=hint)
    return fault
