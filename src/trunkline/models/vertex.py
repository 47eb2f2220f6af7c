"""Claude on Google's Vertex AI: Anthropic's messages at Google's addresses, with Google's tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote

from trunkline.core.faults import ConfigError
from trunkline.models.answers import AnswerReader
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.hosted import HostedClaude, checked_region
from trunkline.models.http import HttpCall
from trunkline.models.providers import ModelSettings
from trunkline.models.vertex_auth import GoogleIdentity

#: Wherever there is room, at no extra price.
DEFAULT_REGION = "global"

#: The edition of Anthropic's messages that Vertex AI speaks; it has had one.
VERSION = "vertex-2023-10-16"

#: Where the project's name is looked for: our own variable, then those of Anthropic's and Google's programs.
PROJECT_VARIABLES = ("VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
REGION_VARIABLES = ("VERTEX_REGION", "CLOUD_ML_REGION")

_HEADERS = {"content-type": "application/json", "accept": "text/event-stream"}

_HINTS = {
    401: "Run `gcloud auth application-default login`, or check `GOOGLE_APPLICATION_CREDENTIALS`.",
    403: "Check that the account may use Vertex AI, and that Claude is enabled in the project's Model Garden.",
    404: "Check the model's id, `VERTEX_PROJECT_ID` and `VERTEX_REGION`.",
}


class VertexModel(HostedClaude):
    """One model, by its Vertex AI id.

    Raises:
        ConfigError: `google-auth` is missing, or the region is none.
    """

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(settings, version=VERSION, asks_to_stream=True, hints=_HINTS)
        environ = os.environ if environ is None else environ
        self._identity = GoogleIdentity(settings.credentials, environ)
        self._project = settings.project or _first(environ, PROJECT_VARIABLES)
        self._region = checked_region(settings.region or _first(environ, REGION_VARIABLES) or DEFAULT_REGION)
        self._base_url = settings.base_url or f"https://{_host(self._region)}"

    async def prepare(self) -> None:
        """Find credentials and project now rather than at the first question. Nobody is asked for a token yet.

        Raises:
            ConfigError: they cannot be found.
            ProviderError: the machine is Google's, and does not answer.
        """
        await self._identity.project()
        await self._url()

    async def call(self, body: bytes) -> HttpCall:
        url = await self._url()
        return HttpCall(url, {**_HEADERS, "authorization": f"Bearer {await self._identity.token()}"}, body)

    def answers(self, decoder: AnthropicDecoder) -> AnswerReader:
        return AnswerReader(decoder)

    async def _url(self) -> str:
        base = self._base_url.rstrip("/")
        if not base.endswith("/v1"):
            base += "/v1"
        place = f"projects/{quote(await self._known_project(), safe='')}/locations/{self._region}"
        # The `@` before a version is written as it is, as in all of Google's examples.
        return f"{base}/{place}/publishers/anthropic/models/{quote(self._name, safe='@')}:streamRawPredict"

    async def _known_project(self) -> str:
        if not self._project:
            self._project = await self._identity.project()
        if not self._project:
            raise ConfigError("Vertex AI needs a project.", hint="Set `VERTEX_PROJECT_ID` to its id.")
        return self._project


def _host(region: str) -> str:
    if region == "global":
        return "aiplatform.googleapis.com"
    if region in ("us", "eu"):
        # A continent instead of a place in it.
        return f"aiplatform.{region}.rep.googleapis.com"
    return f"{region}-aiplatform.googleapis.com"


def _first(environ: Mapping[str, str], variables: tuple[str, ...]) -> str | None:
    return next((value for variable in variables if (value := environ.get(variable))), None)
