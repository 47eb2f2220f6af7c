"""Claude on Vertex AI, over loopback: Google's addresses and tokens around Anthropic's stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.models.google_account import token_reply, write_account
from tests.support.provider import HANG, Reply, Request, StubProvider
from tests.support.provider_streams import anthropic_sse, anthropic_text
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models import backoff
from trunkline.models.messages import Message, Text
from trunkline.models.model import Answer, Chunk, Retrying, TextChunk
from trunkline.models.model import Request as Question
from trunkline.models.providers import ModelSettings, make
from trunkline.models.vertex import VertexModel

HELLO = Question([Message("user", (Text("hello"),))])


@pytest.fixture(autouse=True)
def _with_google_auth_and_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    require("google-auth", find_spec("google") is not None, "pip install 'trunkline[vertex]'")
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.001)


class Google:
    """The token service and the model service, on one port each; tokens are numbered."""

    def __init__(self, folder: Path) -> None:
        self.tokens = StubProvider(self._token)
        self.models = StubProvider()
        self._folder = folder

    def _token(self, _: Request) -> Reply:
        return token_reply(f"token-{len(self.tokens.requests)}")

    def model(self, **settings: Any) -> VertexModel:
        file = write_account(self._folder / "account.json", self.tokens.url)
        given = {"provider": "vertex", "base_url": self.models.url, "credentials": str(file)}
        return VertexModel(ModelSettings(**given | settings), {"CLOUDSDK_CONFIG": "/nowhere"})


@pytest.fixture
async def google(tmp_path: Path) -> AsyncIterator[Google]:
    one = Google(tmp_path)
    async with one.tokens, one.models:
        yield one


async def chunks_of(model: VertexModel) -> list[Chunk]:
    try:
        return [one async for one in model.stream(HELLO)]
    finally:
        await model.close()


async def test_an_answer_is_streamed(google: Google) -> None:
    google.models.anthropic(anthropic_text("Hello there"), cut=1)
    *words, last = await chunks_of(google.model())
    assert "".join(chunk.text for chunk in words if isinstance(chunk, TextChunk)) == "Hello there"
    assert isinstance(last, Answer)
    assert last.content == (Text("Hello there"),)


async def test_the_request_names_project_region_and_model_in_its_address_and_the_version_in_its_body(
    google: Google,
) -> None:
    google.models.anthropic(anthropic_text("x"))
    await chunks_of(google.model(region="europe-west1", project="my project"))
    asked = google.models.requests[0]
    place = "/v1/projects/my%20project/locations/europe-west1"
    assert asked.target == f"{place}/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict"
    assert asked.json["anthropic_version"] == "vertex-2023-10-16"
    assert asked.json["stream"] is True
    assert asked.json["max_tokens"] == 128_000
    assert "model" not in asked.json
    assert asked.headers["authorization"] == "Bearer token-1"


async def test_the_project_may_be_the_credentials_own(google: Google) -> None:
    google.models.anthropic(anthropic_text("x"))
    await chunks_of(google.model())
    assert "/projects/some-project/locations/global/" in google.models.requests[0].target


async def test_one_token_serves_many_requests(google: Google) -> None:
    model = google.model()
    for _ in range(3):
        google.models.anthropic(anthropic_text("x"))
        await chunks_of(model)
    assert len(google.tokens.requests) == 1
    assert {asked.headers["authorization"] for asked in google.models.requests} == {"Bearer token-1"}


async def test_a_passing_failure_is_tried_again(google: Google) -> None:
    google.models.error(429, {"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}})
    google.models.anthropic(anthropic_text("x"))
    first, *_, last = await chunks_of(google.model())
    assert isinstance(first, Retrying)
    assert "Quota exceeded" in first.reason
    assert isinstance(last, Answer)


async def test_a_token_service_that_stumbles_is_asked_again(google: Google) -> None:
    google.tokens.error(503, {"error": "internal_failure"})
    google.models.anthropic(anthropic_text("x"))
    assert isinstance((await chunks_of(google.model()))[-1], Answer)


@pytest.mark.parametrize(("status", "hint"), [(401, "gcloud auth"), (403, "Model Garden"), (404, "VERTEX_REGION")])
async def test_a_refusal_is_told_with_what_to_do(google: Google, status: int, hint: str) -> None:
    google.models.error(status, [{"error": {"code": status, "message": "because"}}])
    with pytest.raises(ProviderError, match="because") as caught:
        await chunks_of(google.model())
    assert hint in str(caught.value)
    assert not caught.value.retryable
    assert len(google.models.requests) == 1


async def test_leaving_the_answer_closes_the_connection(google: Google) -> None:
    google.models.raw(anthropic_sse(anthropic_text("Hello there")[:4]), HANG)
    model = google.model()
    answering = model.stream(HELLO)
    assert isinstance(await anext(answering), TextChunk)
    await answering.aclose()
    await google.models.requests[0].left.wait()
    await model.close()


async def test_a_missing_project_is_a_config_error_that_names_the_variable(google: Google, tmp_path: Path) -> None:
    file = write_account(tmp_path / "other.json", google.tokens.url, project_id=None)
    with pytest.raises(ConfigError, match="VERTEX_PROJECT_ID"):
        await google.model(credentials=str(file)).prepare()


async def test_missing_credentials_are_a_config_error_that_names_the_variable(google: Google) -> None:
    with pytest.raises(ConfigError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        await google.model(credentials=None, project="p").prepare()


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
async def test_the_region_decides_the_host(google: Google, region: str, host: str) -> None:
    model = google.model(base_url=None, project="p", region=region)
    assert (await model._url()).startswith(f"https://{host}/v1/projects/p/locations/{region}/")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"VERTEX_PROJECT_ID": "a", "GOOGLE_CLOUD_PROJECT": "b"}, "/projects/a/locations/global/"),
        ({"GOOGLE_CLOUD_PROJECT": "b", "CLOUD_ML_REGION": "c"}, "/projects/b/locations/c/"),
        ({"ANTHROPIC_VERTEX_PROJECT_ID": "d", "VERTEX_REGION": "e"}, "/projects/d/locations/e/"),
    ],
)
async def test_the_environment_names_project_and_region(environ: dict[str, str], expected: str) -> None:
    assert expected in await VertexModel(ModelSettings("vertex"), environ)._url()


@pytest.mark.parametrize("region", ["evil.example/", "us east", "@", "é"])
def test_a_region_that_is_none_is_a_config_error(region: str) -> None:
    with pytest.raises(ConfigError, match="is not a region"):
        VertexModel(ModelSettings("vertex", region=region), {})


def test_it_is_what_the_provider_vertex_makes() -> None:
    model = make(ModelSettings("vertex", project="p", model="claude-opus-4-6"))
    assert isinstance(model, VertexModel)
    assert (model.provider, model.name) == ("vertex", "claude-opus-4-6")
    assert (model.context_window, model.images) == (1_000_000, True)
