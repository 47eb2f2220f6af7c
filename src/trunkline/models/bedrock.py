"""Claude on Amazon Bedrock: Anthropic's messages in Amazon's envelopes."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from trunkline.base import jsontext
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models import limits
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.bedrock_auth import AwsIdentity
from trunkline.models.eventstream import EventStreamDecoder, StreamEvent
from trunkline.models.hosted import HostedClaude, checked_region
from trunkline.models.http import HttpCall
from trunkline.models.model import Chunk
from trunkline.models.providers import PROVIDERS, ModelSettings

#: The edition of Anthropic's messages that Bedrock speaks; it has had one.
VERSION = "bedrock-2023-05-31"

#: Refused with an error if they are asked to cache.
_WITHOUT_CACHE = (
    "claude-2",
    "claude-instant",
    "claude-3-opus",
    "claude-3-sonnet",
    "claude-3-haiku",
    "claude-3-5-sonnet",
)

_HEADERS = {"Content-Type": "application/json", "Accept": "application/vnd.amazon.eventstream"}

_HINTS = {
    403: "Check that the account may use this model in this region, and that `AWS_SESSION_TOKEN` is not too old.",
    404: "Check the model's id and `AWS_REGION`.",
}


class BedrockModel(HostedClaude):
    """One model, by its Bedrock id, the id of an inference profile, or its ARN.

    Raises:
        ConfigError: `botocore` is missing, or half of a key.
    """

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        name = limits.plain_name(settings.model or PROVIDERS["bedrock"].model)
        super().__init__(
            settings,
            version=VERSION,
            asks_to_stream=False,
            hints=_HINTS,
            caching=not name.startswith(_WITHOUT_CACHE),
            # Bedrock checks schemas more strictly than Anthropic does.
            compat={"sanitize_schema": True},
            secrets=(
                settings.secret_access_key,
                settings.session_token,
                settings.api_key,
                environ.get("AWS_BEARER_TOKEN_BEDROCK"),
            ),
        )
        self._base_url = settings.base_url
        self._identity = AwsIdentity(settings, environ)

    async def prepare(self) -> None:
        """Find the credentials now rather than at the first question.

        Raises:
            ConfigError: there are none, or they cannot be had.
        """
        await self._identity.find()

    async def call(self, body: bytes) -> HttpCall:
        url = await self._url()
        return HttpCall(url, await self._identity.headers(url, body, _HEADERS), body)

    def answers(self, decoder: AnthropicDecoder) -> BedrockReader:
        return BedrockReader(decoder)

    async def _url(self) -> str:
        base = self._base_url
        if not base:
            region = checked_region(await self._identity.region())
            # The partition of China has a domain of its own.
            domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
            base = f"https://bedrock-runtime.{region}.{domain}"
        # Slashes and colons of an ARN, too: they are part of a name, not of the path.
        return f"{base.rstrip('/')}/model/{quote(self._name, safe='')}/invoke-with-response-stream"


class BedrockReader:
    """A `Reader` (see `models.http`): frames in, chunks out."""

    def __init__(self, decoder: AnthropicDecoder) -> None:
        self._frames = EventStreamDecoder()
        self._decoder = decoder
        self._failure: ProviderError | None = None

    @property
    def done(self) -> bool:
        return self._failure is not None or self._decoder.done

    @property
    def complete(self) -> bool:
        return self._decoder.complete

    @property
    def spent(self) -> Usage | None:
        return self._decoder.spent

    def feed(self, data: bytes) -> Sequence[Chunk]:
        chunks: list[Chunk] = []
        try:
            for event in self._frames.feed(data):
                if event.type == "chunk":
                    chunks += self._decoder.feed(_message(event))
        except ProviderError as error:
            if not chunks:
                raise
            # What came before the failure is shown before it.
            self._failure = error
        return chunks

    def finish(self) -> Sequence[Chunk]:
        if self._failure is not None:
            raise self._failure
        if not self._decoder.complete:
            self._frames.finish()
        return [self._decoder.finish()]


def _message(event: StreamEvent) -> Mapping[str, object]:
    """Anthropic's event in one of Bedrock's."""
    try:
        message = jsontext.loads(b64decode(jsontext.loads(event.payload)["bytes"], validate=True))
    except (ValueError, KeyError, TypeError):
        message = None
    if not isinstance(message, dict):
        raise ProviderError("Bedrock's answer holds an event that is not understood.", retryable=True)
    return message
