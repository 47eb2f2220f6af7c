"""A model behind one OpenAI-compatible address, or behind several that serve the same model.

How a request is sent, read, refused and, where there is one server, tried again: `models.http`. Which server it goes
to: `models.server_choice`. Where there are several,

- a request that failed before its first word goes to another server, once. One that has spoken is never sent again;
- what is wrong with the request itself is said, whoever is asked;
- a server that says nothing for a while is probed, and left if it does not answer that either.

Leaving the iterator, or cancelling its task, closes the connection at once, and a place in the queue is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from trunkline.core.faults import Fault, ProviderError, TooLong
from trunkline.models import model_server
from trunkline.models.answers import BodyReader, ResponseBody
from trunkline.models.backoff import MAX_TRIES
from trunkline.models.encoding import to_bytes
from trunkline.models.endpoint import endpoint, health_endpoint
from trunkline.models.http import HttpCall, HttpService, ReplyReader
from trunkline.models.http_errors import ServiceError
from trunkline.models.http_model import keyed_service
from trunkline.models.model import Answer, Chunk, Retrying
from trunkline.models.model_server import ModelServer, ServerLoad
from trunkline.models.openai import headers
from trunkline.models.overflow import PromptTooLong
from trunkline.models.server_choice import MAX_CONCURRENT, NoServerUp, ServerChoice
from trunkline.models.silence import listened

#: How long a request that failed is made again: somebody waits for a character's next word, not for an agent's work.
GIVE_UP_SECONDS = 5.0
#: For an answer to a probe. A server that is busy answers it in milliseconds; a machine that is, in seconds.
PROBE_SECONDS: Final = 5.0
#: The silence after which a server is probed, and how often while it lasts: longer than most answers take to begin.
SILENT_SECONDS: Final = 10.0

_MODELS: Final = "/models"
#: From here on an answer means that the server itself has failed.
_SERVERS_OWN: Final = 500


class Remote:
    """Where a model is, and how it is asked.

    Args:
        name: what its user calls it.
        urls: the addresses in front of `/chat/completions`, one for each server.
        model: what the servers call it.
        key_variable: where people find the key.
        limit: requests that each server may have at once.
    """

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        *,
        model: str = "",
        key: str = "",
        key_variable: str = "",
        limit: int = MAX_CONCURRENT,
    ) -> None:
        self.name = name
        self.model = model or name
        self.urls = tuple(dict.fromkeys(urls))
        self._key = key
        self._variable = key_variable or "api_key_env"
        self._limit = limit
        self._services: dict[str, HttpService] = {}
        self._choice: ServerChoice | None = None

    async def close(self) -> None:
        """Close connections. Idempotent; a later request opens them again."""
        choice, self._choice = self._choice, None
        if choice is not None:
            await choice.close()
        while self._services:
            _, service = self._services.popitem()
            await service.close()

    async def stream(
        self, path: str, body: Mapping[str, Any], reader: Callable[[], ReplyReader]
    ) -> AsyncGenerator[Chunk, None]:
        """Ask; `reader` makes what reads the answer.

        Raises:
            ProviderError: it did not work; the text names the model.
        """
        sent = to_bytes({**body, "model": self.model})
        choice = self._chosen_from()
        failure: tuple[ModelServer, ProviderError] | None = None
        while True:
            try:
                request = await choice.take(failure[0] if failure is not None else None)
            except NoServerUp:
                # Where one is still up, nothing is known but how this request failed there.
                if failure is None or not failure[0].up:
                    raise
                raise self._told(*failure) from None
            try:
                async with aclosing(self._asked(request.server, path, sent, reader)) as chunks:
                    async for chunk in chunks:
                        if not isinstance(chunk, Retrying):
                            request.spoke()
                        if isinstance(chunk, Answer | ResponseBody):
                            # Before it is passed on: whoever has it need not come back.
                            request.answered()
                        yield chunk
                return
            except ProviderError as error:
                blamed = request.failed(error)
                if not blamed or request.spoken or len(self.urls) == 1:
                    raise self._told(request.server, error) from None
                if failure is not None:
                    any_up = any(server.up for server in choice.servers)
                    raise (self._told(request.server, error) if any_up else choice.none_up()) from None
                failure = request.server, error
            finally:
                request.end()

    async def whole(self, path: str, body: Mapping[str, Any], limit: int) -> bytes:
        """The bytes of an answer that is one text. Raises as `stream`."""
        async with aclosing(self.stream(path, body, lambda: BodyReader(limit))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, ResponseBody):
                    return chunk.data
        return b""

    async def examine(self) -> dict[str, str]:
        """Probe each server now. By its address, why it cannot be used; empty where it can."""

        async def problem(server: ModelServer) -> str:
            try:
                await self._probe(server)
            except Fault as fault:
                return fault.message
            return ""

        servers = [ModelServer(url, self.model, ServerLoad()) for url in self.urls]
        found = await asyncio.gather(*map(problem, servers))
        return {server.place: why for server, why in zip(servers, found, strict=True)}

    def _chosen_from(self) -> ServerChoice:
        if self._choice is None:
            servers = [model_server.known(url, self.model) for url in self.urls]
            self._choice = ServerChoice(self.name, servers, self._limit, self._probe)
        return self._choice

    def _asked(
        self, server: ModelServer, path: str, sent: bytes, reader: Callable[[], ReplyReader]
    ) -> AsyncGenerator[Chunk, None]:
        call = HttpCall(endpoint(server.url, path, api_path=path), headers(self._key), sent)

        async def ready() -> HttpCall:
            return call

        chunks = self._service(server).stream(ready, reader)
        # With nobody else to ask there is nothing to be gained by leaving it.
        return chunks if len(self.urls) == 1 else listened(chunks, lambda: self._probe(server), SILENT_SECONDS)

    def _service(self, server: ModelServer) -> HttpService:
        if server.url not in self._services:
            self._services[server.url] = keyed_service(
                server.url,
                model=self.model,
                key=self._key,
                variable=self._variable,
                address="url",
                give_up=GIVE_UP_SECONDS,
                tries=MAX_TRIES if len(self.urls) == 1 else 1,
            )
        return self._services[server.url]

    async def _probe(self, server: ModelServer) -> None:
        """Look whether a server works: what it says of its health, else whether it lists models.

        Raises:
            ProviderError: it does not answer, says that it does not work, or does not take the key.
        """
        service, sent = self._service(server), headers(self._key)
        status = await service.status(health_endpoint(server.url), sent, PROBE_SECONDS)
        if not 200 <= status < 300 and status < _SERVERS_OWN:
            # It knows no such page.
            status = await service.status(endpoint(server.url, _MODELS, api_path=_MODELS), sent, PROBE_SECONDS)
        if status >= _SERVERS_OWN or status in (401, 403):
            raise ServiceError(f"API error {status}: that is its answer to a probe.", retryable=True, status=status)

    def _told(self, server: ModelServer, error: ProviderError) -> ProviderError:
        which = f"The server `{server.place}`" if len(self.urls) > 1 else "The server"
        text = f"{which} of the model `{self.name}`: {error.message}"
        if isinstance(error, TooLong):
            return PromptTooLong(text, getattr(error, "tokens", 0))
        return ProviderError(text, retryable=error.retryable, hint=error.hint)
