"""Claude where somebody else hosts it: what Amazon's and Google's offers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.core.faults import ConfigError
from trunkline.models import limits
from trunkline.models.anthropic import AnthropicFormat
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.encoding import Compat
from trunkline.models.http import HttpService, ReplyReader
from trunkline.models.http_model import HttpModel
from trunkline.models.model import Request
from trunkline.models.providers import PROVIDERS, ModelSettings


class HostedClaude(HttpModel):
    """A `Model`. The hosts fill in `call` and `answers`.

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
        name = settings.model or PROVIDERS[settings.provider].model
        plain = limits.plain_name(name)
        # A host's name for a model may say nothing about it, except that it is Claude.
        kind = plain if plain.startswith("claude") else "claude"
        service = HttpService(
            secure=not (settings.base_url or "").lower().startswith("http:"),
            hints=hints,
            secrets=[secret for secret in secrets if secret],
        )
        super().__init__(settings, service, name=name, kind=kind, profile=Compat(exceptions))
        self._version = version
        self._asks_to_stream = asks_to_stream
        self._format = AnthropicFormat(caching=caching, compat=exceptions)

    def answers(self, decoder: AnthropicDecoder) -> ReplyReader:
        """Reads one answer, whose events go to the decoder."""
        raise NotImplementedError

    @property
    def longest_answer(self) -> int:
        return self.max_tokens or self.known_max_tokens

    def body(self, request: Request) -> bytes:
        return self._format.body(
            request,
            model=None,
            max_tokens=self.longest_answer,
            version=self._version,
            stream=self._asks_to_stream,
            name=self._kind,
        )

    def reader(self) -> ReplyReader:
        return self.answers(self._format.decoder())


def checked_region(region: str) -> str:
    """A region's name, to be put into a host's.

    Raises:
        ConfigError: it is none.
    """
    if not region.isascii() or not region.replace("-", "").isalnum():
        raise ConfigError(f"`{region[:100]}` is not a region.", hint="Write it like `us-east-1`.")
    return region.lower()
