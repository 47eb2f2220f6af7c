"""A model behind an HTTP address: what the formats and the hosts have in common."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from trunkline.core.faults import TooLong
from trunkline.models.answers import AnswerReader, Decoder
from trunkline.models.backoff import GIVE_UP_SECONDS, MAX_TRIES
from trunkline.models.encoding import Compat
from trunkline.models.endpoint import host_of
from trunkline.models.http import HttpCall, HttpService, ReplyReader
from trunkline.models.http_errors import BASE_URL
from trunkline.models.model import Chunk, Request
from trunkline.models.providers import ModelSettings


class HttpModel:
    """A `Model` over HTTP. `body`, `call` and `reader` are filled in.

    Args:
        name: the provider's id of the model.
        kind: the name by which its limits are known.
        profile: how the provider differs from the usual.
    """

    def __init__(self, settings: ModelSettings, service: HttpService, *, name: str, kind: str, profile: Compat) -> None:
        self._provider = settings.provider
        self._name = name
        self._kind = kind
        self._images = profile.images
        self._max_body = profile.number("max_request_body_bytes")
        self.max_tokens = settings.max_tokens or profile.number("default_max_tokens")
        self._service = service

    @property
    def provider(self) -> str:
        return self._provider

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_window(self) -> int:
        from trunkline.models import limits

        return limits.context_window(self._kind)

    @property
    def known_max_tokens(self) -> int:
        """Tokens that an answer of this model may have, as far as is known."""
        from trunkline.models import limits

        return limits.max_tokens(self._kind)

    @property
    def longest_answer(self) -> int | None:
        """Tokens that an answer has at most, unless the request says it; None: nobody is told, and it need not be."""
        return self.max_tokens

    @property
    def images(self) -> bool:
        return self._images

    def body(self, request: Request) -> bytes:
        """What is sent for a request."""
        raise NotImplementedError

    async def call(self, body: bytes) -> HttpCall:
        """A request with that body, ready to send: the address, and the headers that prove who sends it."""
        raise NotImplementedError

    def reader(self) -> ReplyReader:
        """Reads one answer."""
        raise NotImplementedError

    def warm(self) -> None:
        """Do now what the first question would have to wait for. Takes a while; safe in another thread.

        Raises:
            ConfigError: the environment names a proxy or certificates that cannot be used.
        """
        self._service.warm()

    @property
    def is_warm(self) -> bool:
        """Whether nothing of that is left to do."""
        return self._service.warmed()

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        body: bytes | None = None

        async def call() -> HttpCall:
            nonlocal body
            if body is None:
                body = self._checked(self.body(request))
            return await self.call(body)

        return self._service.stream(call, self.reader, request.on_spent)

    async def close(self) -> None:
        await self._service.close()

    def _checked(self, body: bytes) -> bytes:
        if self._max_body is not None and len(body) > self._max_body:
            raise TooLong(
                f"The request is {len(body)} bytes long, and `compat.max_request_body_bytes` allows {self._max_body}.",
                retryable=False,
                hint="Compact the conversation, or begin a new one.",
            )
        return body


def keyed_service(
    url: str,
    *,
    model: str,
    key: str | None,
    variable: str,
    address: str | None = None,
    give_up: float = GIVE_UP_SECONDS,
    tries: int = MAX_TRIES,
) -> HttpService:
    """The service at a fixed address, which is opened by a key from that variable."""
    host = host_of(url)
    return HttpService(
        secure=url.lower().startswith("https:"),
        hints={
            401: f"Check `{variable}`: `{host}` does not accept it."
            if key
            else f"Set `{variable}`: `{host}` wants a key, and none was sent.",
            403: f"Check what the key in `{variable}` may do at `{host}`.",
            404: f"Check the model `{model}` and the base URL: `{url.partition('?')[0]}` was asked.",
        },
        secrets=[key] if key else [],
        address=address or BASE_URL,
        give_up=give_up,
        tries=tries,
    )


class KeyedModel(HttpModel):
    """One at a fixed address, with a key in the headers. The formats fill in `body` and `decoder`."""

    def __init__(self, settings: ModelSettings, *, url: str, headers: Mapping[str, str], variable: str) -> None:
        name = settings.model or ""
        service = keyed_service(
            url,
            model=name,
            key=settings.api_key,
            variable=settings.key_name or variable,
            address=settings.base_url_name,
        )
        super().__init__(settings, service, name=name, kind=name, profile=Compat(settings.compat))
        self._url = url
        self._headers = headers

    def decoder(self) -> Decoder:
        """Makes chunks of one answer's events."""
        raise NotImplementedError

    async def call(self, body: bytes) -> HttpCall:
        return HttpCall(self._url, self._headers, body)

    def reader(self) -> ReplyReader:
        return AnswerReader(self.decoder())
