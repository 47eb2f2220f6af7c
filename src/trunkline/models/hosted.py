"""Claude where somebody else hosts it: what Amazon's and Google's offers have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models import limits
from trunkline.models.anthropic import AnthropicFormat
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.encoding import Compat
from trunkline.models.http import Call, HttpService, Reader
from trunkline.models.model import Chunk, Request
from trunkline.models.providers import DEFAULT_MODELS, ModelSettings


class HostedClaude:
    """A `Model`. The hosts fill in `call` and `reader`.

    Args:
        version: the edition of Anthropic's messages that the host speaks.
        asks_to_stream: whether the body says that the answer is to be streamed; else the address does.
        caching: whether the model can cache.
        compat: exceptions of the host, before those of the settings.
        hints: what to do next after an answer with a certain status.
        secrets: what must not show up in an error.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        version: str,
        asks_to_stream: bool,
        hints: Mapping[int, str],
        caching: bool = True,
        compat: Mapping[str, Any] | None = None,
        secrets: Sequence[str | None] = (),
    ) -> None:
        exceptions = {**(compat or {}), **settings.compat}
        profile = Compat(exceptions)
        self._provider = settings.provider
        self._name = settings.model or DEFAULT_MODELS[settings.provider]
        plain = limits.plain_name(self._name)
        # A host's name for a model may say nothing about it, except that it is Claude.
        self._kind = plain if plain.startswith("claude") else "claude"
        self._version = version
        self._asks_to_stream = asks_to_stream
        self._images = profile.images
        self._max_body = profile.number("max_request_body_bytes")
        self._max_tokens = settings.max_tokens or profile.number("default_max_tokens") or limits.max_tokens(self._kind)
        self._format = AnthropicFormat(caching=caching, compat=exceptions)
        self._service = HttpService(
            secure=not (settings.base_url or "").lower().startswith("http:"),
            hints=hints,
            secrets=[secret for secret in secrets if secret],
        )

    @property
    def provider(self) -> str:
        return self._provider

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_window(self) -> int:
        return limits.context_window(self._kind)

    @property
    def images(self) -> bool:
        return self._images

    async def call(self, body: bytes) -> Call:
        """A request with that body, ready to send: the address, and the headers that prove who sends it."""
        raise NotImplementedError

    def reader(self, decoder: AnthropicDecoder) -> Reader:
        """Reads one answer."""
        raise NotImplementedError

    def warm(self) -> None:
        """Do now what the first question would have to wait for. Takes a while; safe in another thread.

        Raises:
            ConfigError: the environment names a proxy or certificates that cannot be used.
        """
        self._service.warm()

    def stream(self, request: Request) -> AsyncIterator[Chunk]:
        body: bytes | None = None

        async def call() -> Call:
            nonlocal body
            if body is None:
                body = self._body(request)
            return await self.call(body)

        return self._service.stream(call, lambda: self.reader(self._format.decoder()))

    async def close(self) -> None:
        await self._service.close()

    def _body(self, request: Request) -> bytes:
        body = self._format.body(
            request,
            model=None,
            max_tokens=self._max_tokens,
            version=self._version,
            stream=self._asks_to_stream,
            name=self._kind,
        )
        if self._max_body is not None and len(body) > self._max_body:
            raise ProviderError(
                f"The request is {len(body)} bytes long, and `compat.max_request_body_bytes` allows {self._max_body}.",
                retryable=False,
                hint="Compact the conversation, or begin a new one.",
            )
        return body


def checked_region(region: str) -> str:
    """A region's name, to be put into a host's.

    Raises:
        ConfigError: it is none.
    """
    if not region.isascii() or not region.replace("-", "").isalnum():
        raise ConfigError(f"`{region[:100]}` is no region.", hint="Write it like `us-east-1`.")
    return region.lower()
