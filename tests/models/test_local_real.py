"""A language model in this process: the real engine with the real small model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from tests.support.local_model import THREADS, TIMEOUT_SECONDS, Served, llama_server, model_path
from tests.support.loop import at_once
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.memory import resident
from trunkline.core.faults import ProviderError
from trunkline.models.local import LocalModel
from trunkline.models.messages import Message, Text, ToolResultBlock, ToolUse
from trunkline.models.model import Answer, Chunk, Model, Request, TextChunk, ToolSpec
from trunkline.models.providers import ModelSettings

pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]

#: A prompt that takes seconds to read, and an answer that would not end by itself soon.
LONG = Request([Message("user", (Text("Count: " + "one two three four " * 300),))], max_tokens=2000)
STORY = Request([Message("user", (Text("Tell me a very long story about a fox."),))], max_tokens=2000)
SYSTEM = "You are a helpful assistant."
SHORT = Request([Message("user", (Text("What is the capital of France?"),))], SYSTEM, max_tokens=20)


def settings(model: str, **compat: Any) -> ModelSettings:
    return ModelSettings("local", model=model, compat={"threads": THREADS, "temperature": 0, **compat})


def tool(name: str, **schema: Any) -> ToolSpec:
    return ToolSpec(name, f"The tool {name}.", {"type": "object", **schema})


READ = tool("Read", properties={"file_path": {"type": "string", "maxLength": 40}}, required=["file_path"])


@pytest.fixture(scope="module")
def gguf() -> str:
    return model_path()


@pytest.fixture
async def model(gguf: str) -> AsyncIterator[LocalModel]:
    model = LocalModel(settings(gguf))
    yield model
    await model.close()


@pytest.fixture
async def caller(gguf: str) -> AsyncIterator[LocalModel]:
    """A model whose every answer is a tool call."""
    model = LocalModel(settings(gguf, force_tool=True))
    yield model
    await model.close()


async def ask(model: Model, request: Request) -> tuple[list[Chunk], Answer]:
    chunks = [chunk async for chunk in model.stream(request)]
    answer = chunks.pop()
    assert isinstance(answer, Answer)
    return chunks, answer


def says(text: str, *tools: ToolSpec, max_tokens: int = 300) -> Request:
    return Request([Message("user", (Text(text),))], system=SYSTEM, tools=tools, max_tokens=max_tokens)


def first_bytes(path: str, count: int, copy: Path) -> str:
    with open(path, "rb") as whole:
        copy.write_bytes(whole.read(count))
    return str(copy)


async def test_text_streams_and_its_usage_is_known(model: LocalModel) -> None:
    chunks, answer = await ask(model, SHORT)
    assert len(chunks) > 3
    assert all(isinstance(chunk, TextChunk) for chunk in chunks)
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
    assert "Paris" in text
    assert answer.content == (Text(text),)
    assert answer.usage is not None
    assert answer.usage.input_tokens
    assert answer.usage.output_tokens


async def test_what_was_said_before_is_not_read_again(model: LocalModel) -> None:
    _, first = await ask(model, SHORT)
    more = Request([*SHORT.messages, Message("assistant", first.content), SHORT.messages[0]], SYSTEM, max_tokens=5)
    _, second = await ask(model, more)
    assert first.usage is not None
    assert second.usage is not None
    assert (second.usage.cache_read_tokens or 0) >= (first.usage.input_tokens or 0)


async def test_an_answer_that_reaches_its_limit_says_so(model: LocalModel) -> None:
    _, answer = await ask(model, Request(STORY.messages, max_tokens=5))
    assert answer.stop == "max_tokens"
    assert answer.usage is not None
    assert answer.usage.output_tokens == 5


async def test_free_text_streams_when_there_are_tools(model: LocalModel) -> None:
    chunks, answer = await ask(model, says("What is the capital of France?", READ))
    assert len(chunks) > 3
    assert answer.stop == "end"
    assert isinstance(answer.content[0], Text)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"file_path": {"type": "string", "maxLength": 60}}, "required": ["file_path"]},
        {
            "properties": {
                "count": {"type": "integer", "minimum": 0},
                "ratio": {"type": "number"},
                "deep": {"type": "boolean"},
                "mode": {"enum": ["fast", 'with "quotes"', "caf\u00e9"]},
                "nothing": {"type": "null"},
            },
            "required": ["count", "ratio", "deep", "mode", "nothing"],
        },
        {
            "properties": {
                "todos": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {
                        "type": "object",
                        "properties": {"text": {"type": "string", "maxLength": 20}, "done": {"type": "boolean"}},
                        "required": ["text", "done"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["todos"],
        },
        {
            "properties": {"tree": {"$ref": "#/$defs/Node"}},
            "required": ["tree"],
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 8},
                        "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                    },
                    "required": ["name"],
                }
            },
        },
        {"additionalProperties": {"type": "integer"}},
        {"properties": {}},
    ],
    ids=["string", "scalars", "list of objects", "recursive", "map", "nothing"],
)
async def test_a_call_fits_its_schema(caller: LocalModel, schema: dict[str, Any]) -> None:
    spec = tool("do_it", **schema)
    chunks, answer = await ask(caller, says("Do it with src/main.py, twice.", spec))
    assert chunks == []
    assert answer.stop == "tool_use"
    (call,) = answer.content
    assert isinstance(call, ToolUse)
    assert call.name == "do_it"
    jsonschema.validate(call.input, spec.schema)


async def test_one_of_many_tools_is_called(caller: LocalModel) -> None:
    tools = [tool(f"mcp_server_tool_{number}", properties=READ.schema["properties"]) for number in range(20)]
    _, answer = await ask(caller, says("Read src/main.py", READ, *tools))
    (call,) = answer.content
    assert isinstance(call, ToolUse)
    assert call.name in {"Read", *(each.name for each in tools)}
    assert call.input is not None


async def test_a_call_that_reaches_the_limit_is_told_as_cut_off(caller: LocalModel) -> None:
    _, answer = await ask(caller, says("Read src/main.py", READ, max_tokens=18))
    assert answer.stop == "max_tokens"
    (call,) = answer.content
    assert isinstance(call, ToolUse)
    assert (call.name, call.input) == ("Read", None)


async def test_the_result_of_a_tool_is_understood(model: LocalModel) -> None:
    history = [
        Message("user", (Text("Read a.txt and tell me what is in it."),)),
        Message("assistant", (ToolUse("1", "Read", {"file_path": "a.txt"}),)),
        Message("user", (ToolResultBlock("1", "The secret word is banana."),)),
    ]
    _, answer = await ask(model, Request(history, system=SYSTEM, tools=[READ], max_tokens=40))
    assert "banana" in str(answer.content)


async def test_leaving_while_it_writes_frees_the_engine_at_once(model: LocalModel) -> None:
    stream = model.stream(STORY)
    await anext(stream)
    left = time.process_time()
    leaving = asyncio.ensure_future(stream.aclose())
    assert await at_once(leaving)
    await leaving
    await check_that_it_was_freed(model, left)


async def test_leaving_while_it_reads_frees_the_engine_at_once(model: LocalModel) -> None:
    await ask(model, SHORT)
    asked = asyncio.create_task(ask(model, LONG))
    # Nothing tells from outside that it reads; it does so for many times as long.
    await asyncio.wait([asked], timeout=0.5)
    left = time.process_time()
    asked.cancel()
    assert await at_once(asked)
    assert asked.cancelled()
    await check_that_it_was_freed(model, left)


async def check_that_it_was_freed(model: LocalModel, left: float) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await ask(model, SHORT)
    # To its end, what was left takes ten seconds of the processor and more.
    assert time.process_time() - left < 5


async def test_a_request_that_waits_can_be_left(model: LocalModel) -> None:
    first = model.stream(STORY)
    await anext(first)
    second = asyncio.create_task(ask(model, SHORT))
    await asyncio.wait([second], timeout=0.05)
    second.cancel()
    await asyncio.wait([second], timeout=1)
    assert second.cancelled()
    assert isinstance(await anext(first), TextChunk)
    await first.aclose()


async def test_requests_wait_for_each_other(model: LocalModel) -> None:
    answers = await asyncio.gather(*(ask(model, SHORT) for _ in range(3)))
    for _, answer in answers:
        assert "Paris" in str(answer.content)


async def test_a_prompt_beyond_the_window_is_a_clear_error_and_the_model_goes_on(gguf: str) -> None:
    model = LocalModel(settings(gguf, n_ctx=512))
    assert model.context_window == 512
    with pytest.raises(
        ProviderError, match=r"The prompt has \d+ tokens, and 512 fit into the model\. Use `/compact`"
    ) as caught:
        await ask(model, LONG)
    assert not caught.value.retryable
    await ask(model, SHORT)
    await model.close()


async def test_closing_frees_the_memory_and_ends_what_goes_on(gguf: str) -> None:
    model = LocalModel(settings(gguf))
    stream = model.stream(STORY)
    await anext(stream)
    loaded = resident()
    await model.close()
    await model.close()
    assert resident() < loaded - 50 * 1024 * 1024
    with pytest.raises(ProviderError, match="unloaded in the middle"):
        async for _ in stream:
            pass
    assert not any("llama" in thread.name for thread in threading.enumerate() if thread.is_alive())


async def test_a_damaged_file_is_an_error_of_the_first_request(gguf: str, tmp_path: Path) -> None:
    model = LocalModel(settings(first_bytes(gguf, 1_000_000, tmp_path / "half.gguf")))
    with pytest.raises(ProviderError, match="cannot be loaded"):
        await ask(model, SHORT)
    await model.close()


async def test_nothing_but_ours_is_printed_and_the_process_ends_by_itself(gguf: str) -> None:
    program = f"""
import asyncio
from trunkline.models.local import LocalModel
from trunkline.models.messages import Message, Text
from trunkline.models.model import Request
from trunkline.models.providers import ModelSettings


async def main():
    model = LocalModel(ModelSettings("local", model={gguf!r}))
    async for chunk in model.stream(Request([Message("user", (Text("Tell me a long story."),))], max_tokens=2000)):
        break
    print("left")

asyncio.run(main())
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"left\n", b"")


async def test_the_engines_own_server_answers_nobody(model: LocalModel) -> None:
    await model.load()
    assert model._loading is not None
    server = model._loading.result()._server
    assert server is not None
    url = server._server.listening_address
    assert url.startswith("http://127.0.0.1:")
    async with httpx.AsyncClient(trust_env=False) as client:
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        for path in ("/v1/chat/completions", "/v1/messages", "/tokenize"):
            assert (await client.post(url + path, json=body)).status_code == 401


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with llama_server() as served:
        yield served


def test_it_speaks_openais_format(served: Served) -> None:
    events = stream(served, "/v1/chat/completions")
    assert events[-1] == "[DONE]"
    assert "Paris" in "".join(json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events[:-1])


def test_it_speaks_anthropics_format(served: Served) -> None:
    events = [json.loads(event) for event in stream(served, "/v1/messages")]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert "Paris" in "".join(deltas)


def stream(served: Served, path: str) -> list[str]:
    body = {
        "model": "any",
        "max_tokens": 20,
        "stream": True,
        "temperature": 0,
        "messages": [
            {"role": "user", "content": "You know capitals."},
            {"role": "assistant", "content": "I do."},
            {"role": "user", "content": "What is the capital of France?"},
        ],
    }
    headers = {"authorization": f"Bearer {served.key}", "x-api-key": served.key}
    answer = httpx.post(served.url + path, json=body, headers=headers, timeout=30, trust_env=False)
    assert answer.status_code == 200
    return [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
