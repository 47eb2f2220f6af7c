"""Models behind an address."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.pools import REAL, refusal
from trunkline.agents.graph.pool import ModelPool
from trunkline.core.faults import ProviderError
from trunkline.core.graph.description import LogitBias, LoraAdapter
from trunkline.core.graph.models import SamplingParams
from trunkline.models import openai_language, remote
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.generating import generated
from trunkline.models.http import ReplyReader
from trunkline.models.model import Chunk, TextChunk
from trunkline.models.openai_language import MAX_STOPS, OpenAILanguage
from trunkline.models.overflow import PromptTooLong
from trunkline.models.remote import Remote

#: What servers answer in other ways than they should, by the message.
ODD = {
    "page": b"<html>hello</html>",
    "empty": b"",
    "object": b'{"status": "fine"}',
    "cut": b'data: {"choices": [{"delta": {"content": "hal"}}]}\n\n',
    "too long": b'data: {"error": {"code": "context_length_exceeded", "message": "no", "n_prompt_tokens": 99}}\n\n',
    "long whole": b'{"choices": "' + b"x" * 500_000,
    "long part": b'data: {"choices": "' + b"x" * 500_000,
    "whole": b'{"choices": [{"message": {"content": "all of it"}}], "usage": {"prompt_tokens": "3"}, "error": null}',
    "parts": b'data: {"error": null, "choices": [{"delta": {"content": ["all ", {"type": "text", "text": "of it"}, 5]},'
    b' "finish_reason": "stop"}], "usage": [1]}',
}


class _Far(BaseHTTPRequestHandler):
    """An OpenAI-compatible server in a few lines."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer secret" or body["model"] != "big":
            self._send(b'{"error": {"message": "who are you"}}', 401)
        elif self.path == "/v1/embeddings":
            data = [{"index": at, "embedding": [3.0, 4.0 * at]} for at in range(len(body["input"]))]
            self._send(json.dumps({"data": data[::-1]}).encode())
        elif body.get("logprobs"):
            top = [{"token": "B", "logprob": -0.1}, {"token": "A", "logprob": -3.0}]
            self._send(json.dumps({"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]}).encode())
        elif body["messages"][-1]["content"] in ODD:
            self._send(ODD[body["messages"][-1]["content"]])
        else:
            words = ("Hello", " ", body["messages"][-1]["content"])
            said: list[dict[str, Any]] = [{"choices": [{"delta": {"content": word}}]} for word in words]
            said.append({"choices": [], "usage": {"completion_tokens": 5, "prompt_tokens": 7}})
            self._send(b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in said) + b"data: [DONE]\n\n")

    def _send(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def far(tmp_path: Path) -> Iterator[ModelPool]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Far) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        variant = {"engine": "openai", "url": f"http://127.0.0.1:{server.server_port}/v1", "model": "big"}
        models = [
            {"name": "far", "variants": [variant | {"api_key_env": "FAR_KEY"}]},
            {"name": "vectors", "purpose": "embedding", "variants": [variant | {"api_key_env": "FAR_KEY"}]},
            {"name": "stranger", "variants": [variant]},
        ]
        (tmp_path / "models.json").write_text(json.dumps({"models": models}))
        yield ModelPool(models_dir=str(tmp_path))
        server.shutdown()
        thread.join()


async def test_a_model_behind_an_address_answers_scores_and_embeds(
    far: ModelPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR_KEY", "secret")
    prompt = Prompt((ChatMessage("user", "world"),))
    engine = await far.language("far", REAL)
    streamed = [piece async for piece in engine.generate(prompt, SamplingParams(), stream=True)]
    assert streamed == ["Hello", " ", "world", ""]
    assert sum(getattr(piece, "tokens", 1) for piece in streamed) == 5
    # A server may come to no end: whoever asks has to see what comes, also if nobody is to hear it.
    unheard = [piece async for piece in engine.generate(prompt, SamplingParams(), stream=False)]
    assert unheard == streamed
    assert await engine.score(prompt, ["A", "B", "C"]) == [-3.0, -0.1, -4.0]
    vectors = await far.embedding("vectors", REAL)
    assert vectors.dimensions == 2
    assert [list(map(float, vector)) for vector in await vectors.embed(["a", "b"])] == [
        [1.0, 0.0],
        [pytest.approx(0.6), pytest.approx(0.8)],
    ]
    assert (await refusal(far.download("far"))).code == 6002
    await far.close()


async def said(far: ModelPool, text: str) -> str:
    engine = await far.language("far", REAL)
    prompt = Prompt((ChatMessage("user", text),))
    return "".join([piece async for piece in engine.generate(prompt, SamplingParams(), stream=True)])


async def test_an_answer_that_is_told_in_another_way_is_read(far: ModelPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", "secret")
    assert await said(far, "whole") == await said(far, "parts") == "all of it"
    await far.close()


async def test_what_is_no_answer_is_an_error(far: ModelPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", "secret")
    monkeypatch.setattr(remote, "GIVE_UP_SECONDS", 0.0)
    for text, problem in {"page": "a web page", "empty": "ended", "object": "ended", "cut": "ended"}.items():
        with pytest.raises(ProviderError, match=f"The server of the model `far`: .*{problem}"):
            await said(far, text)
    with pytest.raises(PromptTooLong) as caught:
        await said(far, "too long")
    assert caught.value.tokens == 99
    await far.close()


async def test_an_answer_that_has_begun_is_not_tried_again_with_less() -> None:
    class Late(Remote):
        async def stream(self, *asked: object) -> AsyncGenerator[Chunk, None]:
            yield TextChunk("hal")
            raise PromptTooLong("no", 99)

    answer = OpenAILanguage(Late("far", ["http://far"]), 100).generate(Prompt(()), SamplingParams(), stream=True)
    assert await anext(answer) == "hal"
    with pytest.raises(ProviderError, match="no") as late:
        await anext(answer)
    assert not isinstance(late.value, PromptTooLong)


@pytest.mark.parametrize("text", ["long whole", "long part"])
async def test_an_answer_that_is_longer_than_anybody_reads_at_once_is_an_error(
    far: ModelPool, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("FAR_KEY", "secret")
    monkeypatch.setattr(openai_language, "MAX_WHOLE", 100_000)
    with pytest.raises(ProviderError, match="100000 bytes"):
        await said(far, text)
    await far.close()


async def test_what_a_server_refuses_is_said(far: ModelPool) -> None:
    engine = await far.language("stranger", REAL)
    with pytest.raises(ProviderError, match=r"`stranger`: API error 401: who are you\. Set `api_key_env`"):
        async for _ in engine.generate(Prompt((ChatMessage("user", "hi"),)), SamplingParams(), stream=True):
            pass
    await far.close()


class _Asked(Remote):
    """Keeps what it is asked, and answers nothing."""

    def __init__(self) -> None:
        super().__init__("far", ["http://127.0.0.1:1/v1"])
        self.bodies: list[Mapping[str, Any]] = []

    async def stream(
        self, path: str, body: Mapping[str, Any], reader: Callable[[], ReplyReader]
    ) -> AsyncGenerator[Chunk, None]:
        self.bodies.append(body)
        for word in ("one", " EN", "D two"):
            yield TextChunk(word)


async def test_what_is_asked_of_an_answer_is_sent_as_these_servers_know_it() -> None:
    asked = _Asked()
    engine = OpenAILanguage(asked, 1000)
    prompt = Prompt((ChatMessage("user", "hello"),))
    stops = ("END", "v", "x", "y", "z")
    sampling = SamplingParams(stop=stops, json_schema='{"type": "object"}', seed=7)
    pieces = generated(engine, "far", prompt, sampling, stream=True, grammar=None, slot=None)
    # Also of a server that does not stop by itself.
    assert "".join([piece async for piece in pieces]) == "one "
    body = asked.bodies[0]
    assert (body["stop"], body["seed"]) == (list(stops[:MAX_STOPS]), 7)
    schema = {"name": "answer", "schema": {"type": "object"}}
    assert body["response_format"] == {"type": "json_schema", "json_schema": schema}
    # A grammar of one's own comes first.
    await anext(engine.generate(prompt, sampling, stream=True, grammar='root ::= "x"'))
    assert "response_format" not in asked.bodies[1]
    await anext(engine.generate(prompt, SamplingParams(), stream=True))
    assert not {"stop", "seed", "response_format"} & asked.bodies[2].keys()


def test_what_these_servers_cannot_be_asked_is_refused() -> None:
    engine = OpenAILanguage(_Asked(), 1000)
    assert engine.refusal(SamplingParams(stop=("END",), json_schema="{}", seed=7)) is None
    assert "`logit_bias`" in (engine.refusal(SamplingParams(logit_bias=(LogitBias("a", 1.0),))) or "")
    assert "adapters" in (engine.refusal(SamplingParams(lora=(LoraAdapter("a"),))) or "")
