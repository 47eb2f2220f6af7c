"""A model behind an HTTP address: what the formats have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from trunkline.core.faults import ProviderError
from trunkline.models.answers import AnswerReader, Decoder
from trunkline.models.encoding import Compat
from trunkline.models.endpoint import host_of, without_secrets
from trunkline.models.http import Call, HttpService
from trunkline.models.model import Chunk, Request
from trunkline.models.providers import ModelSettings


class HttpModel:
    """A `Model` over HTTP. The formats fill in `body` and `decoder`."""

    def __init__(self, settings: ModelSettings, *, url: str, headers: Mapping[str, str], variable: str) -> None:
        profile = Compat(settings.compat)
        self._provider = settings.provider
        self._name = settings.model or ""
        self._url = url
        self._headers = headers
        self._images = profile.images
        self._max_body = profile.number("max_request_body_bytes")
        self.max_tokens = settings.max_tokens or profile.number("default_max_tokens")
        host = host_of(url)
        self._service = HttpService(
            secure=url.lower().startswith("https:"),
            hints={
                401: f"Check `{variable}`: `{host}` does not accept it.",
                403: f"Check what the key in `{variable}` may do at `{host}`.",
                404: f"Check the model `{self._name}` and the base URL: `{without_secrets(url)}` was asked.",
            },
            secrets=[settings.api_key] if settings.api_key else [],
        )

    @property
    def provider(self) -> str:
        return self._provider

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_window(self) -> int:
        from trunkline.models import limits

        return limits.context_window(self._name)

    @property
    def images(self) -> bool:
        return self._images

    def body(self, request: Request) -> bytes:
        """What is sent for a request."""
        raise NotImplementedError

    def decoder(self) -> Decoder:
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
                body = self._checked(self.body(request))
            return Call(self._url, self._headers, body)

        return self._service.stream(call, lambda: AnswerReader(self.decoder()))

    async def close(self) -> None:
        await self._service.close()

    def _checked(self, body: bytes) -> bytes:
        if self._max_body is not None and len(body) > self._max_body:
            raise ProviderError(
                f"The request is {len(body)} bytes long, and `compat.max_request_body_bytes` allows {self._max_body}.",
                retryable=False,
                hint="Compact the conversation, or begin a new one.",
            )
        return body
