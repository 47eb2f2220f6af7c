"""Claude on Bedrock, over loopback: requests signed, the binary stream read, failures told apart."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote

import pytest

from tests.conftest import require
from tests.models.aws_frames import answer, chunk, exception, frame
from tests.support.provider import BREAK, HANG, Part, StubProvider
from tests.support.provider import Request as Asked
from trunkline.core.faults import ConfigError, ProviderError, TooLong
from trunkline.core.usage import Usage
from trunkline.models import backoff, http
from trunkline.models.bedrock import BedrockModel
from trunkline.models.messages import Message, Text, ToolUse
from trunkline.models.model import Answer, Chunk, Request, Retrying, TextChunk, ToolSpec
from trunkline.models.providers import ModelSettings, make

MODEL = "us.anthropic.claude-sonnet-4-20250514-v1:0"
HELLO = Request([Message("user", (Text("hello"),))])
KEY: dict[str, Any] = {"access_key_id": "AKIAME", "secret_access_key": "my-very-secret-key", "region": "eu-central-1"}


@pytest.fixture(autouse=True)
def _with_botocore_and_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    require("botocore", find_spec("botocore") is not None, "pip install 'trunkline[bedrock]'")
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.001)


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider() as one:
        yield one


def bedrock(stub: StubProvider, **settings: Any) -> BedrockModel:
    return BedrockModel(ModelSettings(**{"provider": "bedrock", "model": MODEL, "base_url": stub.url} | KEY | settings))


def play(stub: StubProvider, events: Iterable[dict[str, Any]], *parts: Part) -> None:
    stub.raw(b"".join(map(chunk, events)), *parts, content_type="application/vnd.amazon.eventstream")


async def chunks_of(model: BedrockModel, request: Request = HELLO) -> list[Chunk]:
    try:
        return [one async for one in model.stream(request)]
    finally:
        await model.close()


async def test_an_answer_is_streamed_and_counted(stub: StubProvider) -> None:
    play(stub, answer("Hel", "lo"))
    usage = Usage(input_tokens=17, output_tokens=7, cache_read_tokens=5, cache_write_tokens=2)
    assert await chunks_of(bedrock(stub)) == [TextChunk("Hel"), TextChunk("lo"), Answer((Text("Hello"),), "end", usage)]


async def test_the_request_names_the_model_in_its_address_and_the_version_in_its_body(stub: StubProvider) -> None:
    play(stub, answer("x"))
    await chunks_of(bedrock(stub))
    asked = stub.requests[0]
    path = asked.target.split("/")
    assert [*path[:2], *path[3:]] == ["", "model", "invoke-with-response-stream"]
    assert unquote(path[2]) == MODEL
    assert asked.json["anthropic_version"] == "bedrock-2023-05-31"
    assert asked.json["max_tokens"] == 64_000
    assert "model" not in asked.json
    assert "stream" not in asked.json


async def test_the_name_of_a_profile_with_slashes_is_one_part_of_the_address(stub: StubProvider) -> None:
    play(stub, answer("x"))
    arn = "arn:aws:bedrock:eu-central-1:1:application-inference-profile/abc"
    model = bedrock(stub, model=arn)
    await chunks_of(model)
    assert stub.requests[0].target.count("/") == 3
    assert unquote(stub.requests[0].target.split("/")[2]) == arn
    assert model.context_window == 200_000
    check_signature(stub.requests[0], stub.url)


def check_signature(asked: Asked, base: str) -> None:
    """What Amazon does with a request: compute the signature again, from what arrived."""
    from botocore.auth import SigV4Auth  # type: ignore[import-untyped]  # it has no types
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.credentials import Credentials  # type: ignore[import-untyped]

    signer = SigV4Auth(Credentials("AKIAME", "my-very-secret-key"), "bedrock", "eu-central-1")
    given = asked.headers["authorization"]
    names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date"} <= set(names)
    request = AWSRequest("POST", base + asked.target, headers={n: asked.headers[n] for n in names}, data=asked.body)
    request.context["timestamp"] = asked.headers["x-amz-date"]
    expected = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    assert given.endswith(f"Signature={expected}")


async def test_the_signature_is_true_for_what_arrived(stub: StubProvider) -> None:
    play(stub, answer("x"))
    await chunks_of(bedrock(stub))
    check_signature(stub.requests[0], stub.url)


async def test_every_try_is_signed_again(stub: StubProvider) -> None:
    stub.error(503, {"message": "later"})
    play(stub, answer("x"))
    chunks = await chunks_of(bedrock(stub))
    assert isinstance(chunks[0], Retrying)
    assert isinstance(chunks[-1], Answer)
    for asked in stub.requests:
        check_signature(asked, stub.url)


async def test_a_stream_cut_into_single_bytes_gives_the_same_answer(stub: StubProvider) -> None:
    whole = b"".join(map(chunk, answer("grüße ", "🐍")))
    stub.raw(*(whole[at : at + 1] for at in range(len(whole))))
    assert (await chunks_of(bedrock(stub)))[-1] == Answer((Text("grüße 🐍"),), "end", Usage(17, 7, 5, 2))


async def test_tool_calls_come_out(stub: StubProvider) -> None:
    events = [
        *list(answer())[:1],
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    play(stub, events)
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    request = Request(HELLO.messages, tools=[ToolSpec("Read", "Reads.", schema)])
    last = (await chunks_of(bedrock(stub), request))[-1]
    assert isinstance(last, Answer)
    assert (last.content, last.stop) == ((ToolUse("t1", "Read", {"a": 1}),), "tool_use")
    assert "additionalProperties" not in stub.requests[0].json["tools"][0]["input_schema"]


async def test_events_of_other_kinds_are_passed_over(stub: StubProvider) -> None:
    noise = frame({":message-type": "event", ":event-type": "initial-response"}, b"{}")
    stub.raw(noise, b"".join(map(chunk, answer("x"))))
    assert (await chunks_of(bedrock(stub)))[0] == TextChunk("x")


async def test_what_comes_after_the_end_is_not_waited_for(stub: StubProvider) -> None:
    play(stub, answer("x"), HANG)
    assert isinstance((await chunks_of(bedrock(stub)))[-1], Answer)


@pytest.mark.parametrize("ending", [BREAK, HANG])
async def test_an_answer_with_a_reason_for_its_end_is_complete_whatever_the_connection_does(
    stub: StubProvider, ending: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LAST_WORDS_SECONDS", 0.05)
    *events, last = answer("x")
    for rest in (b"", chunk(last)[:30]):
        play(stub, events, rest, ending)
        assert await chunks_of(bedrock(stub)) == [TextChunk("x"), Answer((Text("x"),), "end", Usage(17, 7, 5, 2))]


async def test_throttling_in_the_stream_is_tried_again_before_anything_was_shown(stub: StubProvider) -> None:
    stub.raw(exception("throttlingException", {"message": "Too many tokens"}))
    play(stub, answer("x"))
    first, *rest = await chunks_of(bedrock(stub))
    assert isinstance(first, Retrying)
    assert "Too many tokens" in first.reason
    assert rest[0] == TextChunk("x")


async def failing(model: BedrockModel) -> tuple[list[Chunk], ProviderError]:
    shown: list[Chunk] = []
    with pytest.raises(ProviderError) as caught:
        await collect(model, shown)
    await model.close()
    return shown, caught.value


async def collect(model: BedrockModel, into: list[Chunk]) -> None:
    async for one in model.stream(HELLO):
        into.append(one)


@pytest.mark.parametrize("together", [True, False])
async def test_a_failure_after_text_is_told_and_not_tried_again(stub: StubProvider, together: bool) -> None:
    begun, broken = b"".join(map(chunk, list(answer("Hel"))[:3])), exception("modelStreamErrorException", {})
    stub.raw(*([begun + broken] if together else [begun, broken]))
    shown, error = await failing(bedrock(stub))
    assert shown == [TextChunk("Hel")]
    assert error.retryable
    assert len(stub.requests) == 1


async def test_a_refusal_in_the_stream_is_not_tried_again(stub: StubProvider) -> None:
    stub.raw(exception("validationException", {"message": "prompt is too long"}))
    shown, error = await failing(bedrock(stub))
    assert (shown, error.retryable) == ([], False)
    assert isinstance(error, TooLong)
    assert "prompt is too long" in str(error)
    assert len(stub.requests) == 1


async def test_a_damaged_stream_is_tried_again_before_anything_was_shown(stub: StubProvider) -> None:
    damaged = bytearray(b"".join(map(chunk, answer("x"))))
    damaged[40] ^= 0x01
    stub.raw(bytes(damaged))
    play(stub, answer("x"))
    assert [type(one) for one in await chunks_of(bedrock(stub))] == [Retrying, TextChunk, Answer]


@pytest.mark.parametrize("payload", [b"{}", b"[]", b'{"bytes": 7}', b'{"bytes": "?"}', b'{"bytes": "WzFd"}', b"x"])
async def test_an_event_that_is_none_is_an_error(stub: StubProvider, payload: bytes) -> None:
    stub.default = None
    stub.raw(
        b"".join(map(chunk, list(answer("x"))[:3])), frame({":message-type": "event", ":event-type": "chunk"}, payload)
    )
    _, error = await failing(bedrock(stub))
    assert "not understood" in str(error)


async def test_an_answer_that_ends_too_early_is_an_error_that_may_pass(stub: StubProvider) -> None:
    play(stub, list(answer("x"))[:3])
    shown, error = await failing(bedrock(stub))
    assert shown == [TextChunk("x")]
    assert error.retryable


async def test_a_connection_that_breaks_within_a_frame_is_an_error_that_may_pass(stub: StubProvider) -> None:
    stub.raw(b"".join(map(chunk, answer("x")))[:-300], BREAK)
    _, error = await failing(bedrock(stub))
    assert error.retryable


@pytest.mark.parametrize(("status", "hint"), [(403, "may use this model"), (404, "AWS_REGION"), (400, "because")])
async def test_a_refusal_is_told_with_what_to_do_and_without_secrets(
    stub: StubProvider, status: int, hint: str
) -> None:
    stub.error(status, {"message": "because of my-very-secret-key"}, x_amzn_errortype="AccessDeniedException")
    _, error = await failing(bedrock(stub))
    assert hint in str(error)
    assert "because" in str(error)
    assert "my-very-secret-key" not in str(error)
    assert not error.retryable
    assert len(stub.requests) == 1


async def test_leaving_the_answer_closes_the_connection(stub: StubProvider) -> None:
    play(stub, list(answer("x"))[:3], HANG)
    model = bedrock(stub)
    answering = model.stream(HELLO)
    assert await anext(answering) == TextChunk("x")
    await answering.aclose()
    await stub.requests[0].left.wait()
    await model.close()


async def test_an_api_key_is_sent_instead_of_a_signature(stub: StubProvider) -> None:
    play(stub, answer("x"))
    await chunks_of(bedrock(stub, access_key_id=None, secret_access_key=None, api_key="bedrock-key"))
    assert stub.requests[0].headers["authorization"] == "Bearer bedrock-key"


async def test_older_models_are_not_asked_to_cache(stub: StubProvider) -> None:
    request = Request(HELLO.messages, system="Be brief.")
    for model in (MODEL, "anthropic.claude-3-haiku-20240307-v1:0"):
        play(stub, answer("x"))
        await chunks_of(bedrock(stub, model=model), request)
    newer, older = (json.dumps(asked.json) for asked in stub.requests)
    assert "cache_control" in newer
    assert "cache_control" not in older


async def test_the_configuration_bounds_requests_and_answers(stub: StubProvider) -> None:
    play(stub, answer("x"))
    await chunks_of(bedrock(stub, compat={"default_max_tokens": 1234}))
    assert stub.requests[0].json["max_tokens"] == 1234
    _, error = await failing(bedrock(stub, compat={"max_request_body_bytes": 10}))
    assert "max_request_body_bytes" in str(error)
    assert len(stub.requests) == 1


async def test_credentials_are_looked_for_when_asked_to_prepare(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(variable, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    await bedrock(stub).prepare()
    with pytest.raises(ConfigError, match="AWS_ACCESS_KEY_ID"):
        await bedrock(stub, access_key_id=None, secret_access_key=None).prepare()


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "bedrock-runtime.eu-west-1.amazonaws.com"),
        ("cn-north-1", "bedrock-runtime.cn-north-1.amazonaws.com.cn"),
    ],
)
async def test_the_region_is_in_the_address(region: str, host: str) -> None:
    model = BedrockModel(ModelSettings("bedrock", MODEL, region=region, access_key_id="A", secret_access_key="B"))
    assert (await model._url()).startswith(f"https://{host}/model/")


async def test_a_region_that_is_none_is_a_config_error(stub: StubProvider) -> None:
    with pytest.raises(ConfigError, match="is not a region"):
        await chunks_of(bedrock(stub, base_url=None, region="evil.example/"))


def test_it_is_what_the_provider_bedrock_makes() -> None:
    model = make(ModelSettings("bedrock", **KEY))
    assert isinstance(model, BedrockModel)
    assert (model.provider, model.name) == ("bedrock", "anthropic.claude-sonnet-5-5")
    assert (model.context_window, model.images) == (1_000_000, True)
