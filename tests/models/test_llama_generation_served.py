"""The same over HTTP: llama.cpp's server as a model server of a graph."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from tests.support.local_model import MODEL, TIMEOUT_SECONDS, llama_server
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.generating import generated
from trunkline.models.openai_language import OpenAILanguage
from trunkline.models.remote import Remote

pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]

MOOD = {"type": "object", "properties": {"mood": {"enum": ["calm", "angry"]}}, "required": ["mood"]}


async def said(engine: OpenAILanguage, text: str, sampling: SamplingParams) -> str:
    prompt = Prompt((ChatMessage("user", text),))
    async with aclosing(generated(engine, MODEL, prompt, sampling, stream=True, grammar=None, slot=None)) as pieces:
        return "".join([piece async for piece in pieces])


def test_a_server_keeps_to_ends_forms_and_seeds() -> None:
    async def ask(url: str, key: str) -> None:
        engine = OpenAILanguage(Remote(MODEL, [f"{url}/v1"], key=key), 1024)
        cold = SamplingParams(temperature=0.0, max_tokens=24)
        usual = await said(engine, "Tell me about lions.", cold)
        word = usual.split()[3]
        assert await said(engine, "Tell me about lions.", cold.replace(stop=(word,))) == usual[: usual.find(word)]
        value = json.loads(await said(engine, "How are you?", cold.replace(json_schema=json.dumps(MOOD))))
        assert value["mood"] in ("calm", "angry")
        warm = SamplingParams(temperature=1.5, max_tokens=16, seed=7)
        assert await said(engine, "A story.", warm) == await said(engine, "A story.", warm)
        await engine.close()

    with llama_server() as server:
        asyncio.run(ask(server.url, server.key))
