"""OpenAI-compatible HTTP with clients that we did not write: those of Python, and those of npm.

Each has an environment of its own. The models are the mock, and the small real one where a grammar or a tool matters.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments import INSTALL_SECONDS
from tests.support import npm
from tests.support.local_model import MODEL, SHARED_CACHE, model_path
from tests.support.mcp_environment import environment
from tests.support.openai_process import openai_process
from tests.support.speech import pulled

# The first run makes the environments.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

OPENAI = ("openai==3.49.0", "numpy==2.4.6")
LITELLM = ("litellm==1.83.0", "openai==3.49.0")
LLM = ("llm==0.36",)
LANGCHAIN = ("langchain-openai==1.7.3", "openai==3.49.0")
AI = ("ai@7.0.169", "@ai-sdk/openai-compatible@3.0.90", "@ai-sdk/openai@4.0.114", "zod@4.6.7")
LLMPROBE = "llmprobe@0.6.12"

SMALL = f"model:{MODEL}"
MOCK = "model:mock"
#: How long a client may take: some load a second long, and the machine is busy.
CLIENT_SECONDS = 120


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the server is."""
    model_path()
    with openai_process("--agent", "echo", environ={"TRUNKLINE_CACHE": SHARED_CACHE}) as server:
        yield server.url


def told(command: list[str], script: str, url: str, **environ: str) -> Any:
    """What a program prints as JSON in its last line. It is given the address, and no way to anywhere else."""
    env = {**npm.node_environment(), "HOME": os.devnull, "OPENAI_API_KEY": "x", **environ}
    done = subprocess.run(
        [*command, script, url], env=env, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def python(requirements: tuple[str, ...], script: str, url: str) -> Any:
    """What a script prints that runs beside these packages."""
    return told([str(environment(requirements) / "python"), "-c"], script, url)


OPENAI_CHAT = """
import asyncio, json, sys
import openai
url = sys.argv[1]
client = openai.OpenAI(base_url=url, api_key="x", max_retries=0)
found = {}
found["models"] = [model.id for model in client.models.list()]
whole = client.chat.completions.create(model="echo", messages=[{"role": "user", "content": "one two"}])
found["whole"] = [whole.choices[0].message.content, whole.choices[0].finish_reason]
stream = client.chat.completions.create(
    model="model:mock", messages=[{"role": "user", "content": "one two"}],
    stream=True, stream_options={"include_usage": True})
chunks = list(stream)
found["streamed"] = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
found["ids"] = len({c.id for c in chunks})
found["usage"] = [chunks[-1].choices, chunks[-1].usage.total_tokens]
with client.chat.completions.stream(
    model="model:mock", messages=[{"role": "user", "content": "a b"}]) as events:
    found["helper"] = events.get_final_completion().choices[0].message.content
parsed = client.chat.completions.parse(
    model="model:mock", messages=[{"role": "user", "content": "Ann"}],
    response_format={"type": "json_schema", "json_schema": {"name": "p", "strict": True, "schema": {
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        "additionalProperties": False}}})
found["parsed"] = json.loads(parsed.choices[0].message.content)

async def both():
    async with openai.AsyncOpenAI(base_url=url, api_key="x") as client:
        asked = [client.chat.completions.create(model="echo", messages=[{"role": "user", "content": w}]) for w in "ab"]
        return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]
found["async"] = asyncio.run(both())

def error(work):
    try:
        work()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code, error.param]
    except openai.APIError as error:
        return [type(error).__name__, error.code]
usual = {"model": "echo", "messages": [{"role": "user", "content": "x"}]}
ask = lambda **more: client.chat.completions.create(**{**usual, **more})
found["errors"] = [
    error(lambda: ask(model="nobody")),
    error(lambda: ask(n=2)),
    error(lambda: ask(messages=[])),
    error(lambda: ask(tools=[{"type": "function", "function": {"name": "t"}}])),
    error(lambda: client.embeddings.create(model="echo", input="x")),
]
print(json.dumps(found))
"""


def test_the_openai_client_chats_streams_and_understands_errors(url: str) -> None:
    found = python(OPENAI, OPENAI_CHAT, url)
    assert found["models"][0] == "echo"
    assert {MOCK, SMALL} <= set(found["models"])
    assert found["whole"] == ["one two", "stop"]
    assert found["streamed"] == "one two"
    assert found["ids"] == 1
    assert found["usage"] == [[], 4]
    assert found["helper"] == "a b"
    assert found["parsed"] == {"name": "Ann"}
    assert found["async"] == ["a", "b"]
    assert found["errors"] == [
        ["NotFoundError", 404, "model_not_found", "model"],
        ["BadRequestError", 400, "unsupported_value", "n"],
        ["BadRequestError", 400, "missing_required_parameter", "messages"],
        ["BadRequestError", 400, "unsupported_parameter", "tools"],
        ["BadRequestError", 400, "unsupported_model", "model"],
    ]


OPENAI_RESPONSES = """
import json, sys
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
found = {}
first = client.responses.create(model="model:mock", input="one two", instructions="Be kind.")
found["first"] = [first.output_text, first.status, first.usage.input_tokens]
second = client.responses.create(model="model:mock", input="three", previous_response_id=first.id)
found["second"] = [second.output_text, second.usage.input_tokens, second.previous_response_id == first.id]
found["read"] = client.responses.retrieve(second.id).output_text
conversation = client.conversations.create()
for said in ("a", "b"):
    answer = client.responses.create(model="model:mock", input=said, conversation=conversation.id)
found["conversation"] = [answer.output_text, answer.usage.input_tokens]
with client.responses.stream(model="model:mock", input="one two") as events:
    found["events"] = [event.type for event in events]
    found["streamed"] = events.get_final_response().output_text
tool = {"type": "function", "name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
asked = client.responses.create(model="model:mock", input='tool: weather {"city": "Oslo"}', tools=[tool])
(call,) = [item for item in asked.output if item.type == "function_call"]
found["call"] = [call.name, json.loads(call.arguments)]
result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
found["result"] = client.responses.create(
    model="model:mock", input=[result], previous_response_id=asked.id, tools=[tool]).output_text
try:
    client.responses.create(model="model:mock", input="x", previous_response_id="resp_nobody")
except openai.BadRequestError as error:
    found["unknown"] = error.code
print(json.dumps(found))
"""


def test_the_openai_client_follows_responses_and_conversations(url: str) -> None:
    found = python(OPENAI, OPENAI_RESPONSES, url)
    assert found["first"] == ["one two", "completed", 2]
    # What was said before is read again: two words, their answer, and the new one.
    assert found["second"] == ["three", 5, True]
    assert found["read"] == "three"
    assert found["conversation"] == ["b", 3]
    assert found["events"][:2] == ["response.created", "response.in_progress"]
    assert found["events"][-1] == "response.completed"
    assert "response.output_text.delta" in found["events"]
    assert found["streamed"] == "one two"
    assert found["call"] == ["weather", {"city": "Oslo"}]
    assert found["result"] == "Result: rain"
    assert found["unknown"] == "previous_response_not_found"


OPENAI_REAL = """
import json, sys
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
small = sys.argv[2] if len(sys.argv) > 2 else "model:smollm2-135m"
schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}
messages = [{"role": "user", "content": "Ann is 30 years old."}]
form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
found = {}
answer = client.chat.completions.create(model=small, messages=messages, response_format=form, max_tokens=80, seed=1)
found["person"] = [json.loads(answer.choices[0].message.content), answer.choices[0].finish_reason]
found["usage"] = [answer.usage.prompt_tokens, answer.usage.completion_tokens]
tool = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                       "required": ["city"]}}}
messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
answer = client.chat.completions.create(
    model=small, messages=messages, tools=[tool], tool_choice="required", max_tokens=80, seed=1)
(call,) = answer.choices[0].message.tool_calls
found["call"] = [call.function.name, sorted(json.loads(call.function.arguments)), answer.choices[0].finish_reason]
messages += [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "It rains in Oslo."}]
answer = client.chat.completions.create(
    model=small, messages=messages, tools=[tool], tool_choice="none", max_tokens=20, seed=1)
found["answer"] = bool(answer.choices[0].message.content)
cut = client.chat.completions.create(model=small, messages=messages[:1], max_tokens=3, seed=1)
found["cut"] = [cut.choices[0].finish_reason, cut.usage.completion_tokens]
# Responses know no seed.
response = client.responses.create(
    model=small, input="Ann is 30 years old.", max_output_tokens=80, temperature=0,
    text={"format": {"type": "json_schema", "name": "person", "schema": schema, "strict": True}})
found["response"] = sorted(json.loads(response.output_text))
print(json.dumps(found))
"""


def test_a_real_model_is_held_to_a_schema_and_calls_the_clients_tool(url: str) -> None:
    found = python(OPENAI, OPENAI_REAL, url)
    person, why = found["person"]
    assert isinstance(person["name"], str)
    assert isinstance(person["age"], int)
    assert why == "stop"
    assert min(found["usage"]) > 0
    assert found["call"] == ["get_weather", ["city"], "tool_calls"]
    assert found["answer"]
    assert found["cut"] == ["length", 3]
    assert found["response"] == ["age", "name"]


OPENAI_MACHINE = """
import io, json, sys, wave
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
found = {}
texts = ["a cat sits", "a kitten sits", "the stock market"]
vectors = client.embeddings.create(model="text-embedding-3-small", input=texts)
one, two, three = [each.embedding for each in vectors.data]
near = lambda a, b: sum(x * y for x, y in zip(a, b))
found["nearer"] = near(one, two) > near(one, three)
found["tokens"] = vectors.usage.prompt_tokens
floats = client.embeddings.create(model="model:minilm-l6", input=texts[0], encoding_format="float").data[0].embedding
found["same"] = max(abs(a - b) for a, b in zip(one, floats)) < 1e-5
with client.audio.speech.with_streaming_response.create(
    model="tts-1", voice="alloy", input="The quick brown fox jumps over the lazy dog.",
    response_format="wav") as speech:
    sound = speech.read()
found["wav"] = wave.open(io.BytesIO(sound)).getnchannels()
hear = lambda **more: client.audio.transcriptions.create(model="whisper-1", file=("fox.wav", sound), **more)
found["heard"] = hear().text
found["text"] = hear(response_format="text")
found["segments"] = [[s.start, s.text] for s in hear(response_format="verbose_json").segments]
found["streamed"] = [event.type for event in hear(stream=True)][-1]
try:
    client.audio.transcriptions.create(model="whisper-1", file=("fox.mp3", b"ID3" + bytes(100)))
except openai.BadRequestError as error:
    found["refused"] = [error.code, error.param]
print(json.dumps(found))
"""


def test_the_openai_client_embeds_hears_and_speaks(url: str) -> None:
    for name in ("minilm-l6", "whisper-base", "piper-joe"):
        pulled(name)
    found = python(OPENAI, OPENAI_MACHINE, url)
    assert found["nearer"]
    assert found["same"]
    assert found["tokens"] == 5 + 5 + 5
    assert found["wav"] == 1
    assert "brown fox" in found["heard"]
    assert "brown fox" in found["text"]
    assert found["segments"][0][0] == 0
    assert found["streamed"] == "transcript.text.done"
    assert found["refused"] == ["invalid_file_format", "file"]


LITELLM_SCRIPT = """
import json, sys
import litellm
litellm.telemetry = False
how = {"api_base": sys.argv[1], "api_key": "x", "num_retries": 0}
messages = [{"role": "user", "content": "one two"}]
found = {}
found["whole"] = litellm.completion(model="openai/echo", messages=messages, **how).choices[0].message.content
parts = list(litellm.completion(model="openai/model:mock", messages=messages, stream=True, **how))
found["streamed"] = "".join(part.choices[0].delta.content or "" for part in parts)
found["finish"] = [part.choices[0].finish_reason for part in parts][-1]
found["response"] = litellm.responses(model="openai/echo", input="three", **how).output[0].content[0].text
found["vector"] = len(litellm.embedding(model="openai/model:mock", input=["x"], **how).data[0]["embedding"])
try:
    litellm.completion(model="openai/nobody", messages=messages, **how)
except litellm.NotFoundError as error:
    found["unknown"] = error.status_code
print(json.dumps(found))
"""


def test_litellm(url: str) -> None:
    found = python(LITELLM, LITELLM_SCRIPT, url)
    assert found == {
        "whole": "one two",
        "streamed": "one two",
        "finish": "stop",
        "response": "three",
        "vector": 384,
        "unknown": 404,
    }


LANGCHAIN_SCRIPT = """
import json, sys
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
how = {"base_url": sys.argv[1], "api_key": "x", "max_retries": 0}
found = {}
echo = ChatOpenAI(model="echo", **how)
found["whole"] = echo.invoke("one two").content
found["streamed"] = "".join(part.content for part in echo.stream("one two"))
mock = ChatOpenAI(model="model:mock", **how)
tool = {"name": "weather", "description": "x", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
asked = mock.bind_tools([tool], tool_choice="weather").invoke("Oslo")
found["call"] = [asked.tool_calls[0]["name"], asked.tool_calls[0]["args"], asked.usage_metadata["output_tokens"]]
schema = {"title": "person", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
found["structured"] = mock.with_structured_output(schema, method="json_schema").invoke("Ann")
responses = ChatOpenAI(model="model:mock", use_responses_api=True, **how)
found["response"] = responses.invoke("three").text
embeddings = OpenAIEmbeddings(model="model:mock", check_embedding_ctx_length=False, **how)
found["vector"] = len(embeddings.embed_query("x"))
print(json.dumps(found))
"""


def test_langchain(url: str) -> None:
    found = python(LANGCHAIN, LANGCHAIN_SCRIPT, url)
    assert found == {
        "whole": "one two",
        "streamed": "one two",
        "call": ["weather", {"city": "Oslo"}, 1],
        "structured": {"name": "Ann"},
        "response": "three",
        "vector": 384,
    }


def test_llm_with_a_file_of_extra_models(url: str, tmp_path: Path) -> None:
    models = f"- model_id: small\n  model_name: {MOCK}\n  api_base: {url}\n  api_key_name: x\n"
    (tmp_path / "extra-openai-models.yaml").write_text(models)
    (tmp_path / "keys.json").write_text(json.dumps({"x": "y"}))
    program = environment(LLM) / "llm"
    for options in ([], ["--no-stream"]):
        done = subprocess.run(
            [program, "-m", "small", *options, "one two"],
            env={"LLM_USER_PATH": str(tmp_path), "HOME": str(tmp_path), "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CLIENT_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "one two\n"), done.stderr


AI_SCRIPT = """
import { embed, generateObject, generateText, jsonSchema, streamText, tool, transcribe } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAI } from "@ai-sdk/openai";
const baseURL = process.argv[2];
const compatible = createOpenAICompatible({ name: "trunkline", baseURL, apiKey: "x", includeUsage: true,
                                            supportsStructuredOutputs: true });
const openai = createOpenAI({ baseURL, apiKey: "x" });
const found = {};
const weather = tool({ description: "x", inputSchema: jsonSchema({ type: "object",
  properties: { city: { type: "string" } }, required: ["city"] }), execute: async ({ city }) => `rain in ${city}` });
const kinds = { compatible, chat: (name) => openai.chat(name), responses: (name) => openai.responses(name) };
for (const [kind, model] of Object.entries(kinds)) {
  const said = {};
  const whole = await generateText({ model: model("model:mock"), prompt: "one two", maxRetries: 0 });
  said.whole = [whole.text, whole.finishReason, whole.usage.totalTokens];
  const stream = streamText({ model: model("echo"), prompt: "one two", maxRetries: 0 });
  said.streamed = "";
  for await (const part of stream.textStream) said.streamed += part;
  said.finish = await stream.finishReason;
  const used = await generateText({ model: model("model:mock"), prompt: 'tool: weather {"city": "Oslo"}',
                                    tools: { weather }, maxRetries: 0 });
  said.tool = used.toolResults.map((result) => result.output);
  const made = await generateObject({ model: model("model:mock"), prompt: "Ann", maxRetries: 0,
    schema: jsonSchema({ type: "object", properties: { name: { type: "string" } }, required: ["name"],
                         additionalProperties: false }) });
  said.object = made.object;
  try {
    await generateText({ model: model("nobody"), prompt: "x", maxRetries: 0 });
  } catch (error) { said.unknown = error.statusCode; }
  found[kind] = said;
}
const vector = await embed({ model: compatible.textEmbeddingModel("model:mock"), value: "x", maxRetries: 0 });
found.vector = vector.embedding.length;
console.log(JSON.stringify(found));
"""


def test_the_ai_sdk_of_npm(url: str, tmp_path: Path) -> None:
    place = npm.modules(*AI)
    (tmp_path / "node_modules").symlink_to(place)
    script = tmp_path / "client.mjs"
    script.write_text(AI_SCRIPT)
    found = told([str(npm.node())], str(script), url)
    assert found.pop("vector") == 384
    assert sorted(found) == ["chat", "compatible", "responses"]
    for said in found.values():
        assert said == {
            "whole": ["one two", "stop", 4],
            "streamed": "one two",
            "finish": "stop",
            "tool": ["rain in Oslo"],
            "object": {"name": "Ann"},
            "unknown": 404,
        }


@pytest.mark.parametrize("model", [MOCK, SMALL, "echo"])
def test_llmprobe_finds_nothing_wrong_with_chat_and_responses(url: str, model: str) -> None:
    program = npm.script(LLMPROBE)
    done = subprocess.run(
        [*program, url, "-k", "x", "-m", model, "--quick", "--no-bench", "--no-save"],
        env=npm.node_environment(NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    scores = dict(re.findall(r"^ +(models|chat|responses) +\d+/\d+ +([\d.]+)%", said, re.MULTILINE))
    assert scores == {"models": "100", "chat": "100", "responses": "100"}, said[-4000:]
