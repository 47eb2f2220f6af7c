"""What decides: which model is asked, and how a small one is held to valid actions."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.provider import StubProvider
from tests.support.provider_streams import anthropic_text
from trunkline.core.faults import ConfigError, Fault, ProviderError
from trunkline.models.messages import ToolUse
from trunkline.models.model import Answer, Chunk, Request
from trunkline.runner import brains, guided
from trunkline.runner.config import RunnerConfig, normalise
from trunkline.runner.prompting import DecisionPrompt
from trunkline.runner.state import AgentState

PROMPT = DecisionPrompt("Be brief.", "What now?")


def config(brain: dict[str, Any] | None, **more: Any) -> RunnerConfig:
    return normalise({"runnerToken": "t", "agentId": "a", "brain": brain, "timeoutSec": 5, **more})


@pytest.fixture
def state(tmp_path: Path) -> Iterator[AgentState]:
    kept = AgentState(str(tmp_path), "a")
    yield kept
    kept.close()


async def test_anthropic_is_asked_with_its_own_key_and_always_a_limit(state: AgentState, tmp_path: Path) -> None:
    async with StubProvider() as server:
        server.anthropic(anthropic_text("[]"))
        given = {"kind": "anthropic", "baseUrl": server.url, "model": "claude-x", "apiKey": "key-of-mine"}
        brain = brains.make(config(given), {}, state, str(tmp_path))
        reply = await brain.answer(PROMPT)
        await brain.close()
        (request,) = server.requests
    assert reply.text == "[]"
    assert reply.usage is not None
    assert request.headers["x-api-key"] == "key-of-mine"
    assert request.json["max_tokens"] > 0


async def test_a_whole_answer_in_place_of_a_stream_is_taken_and_a_refusal_not_repeated(
    state: AgentState, tmp_path: Path
) -> None:
    async with StubProvider() as server:
        whole = {"choices": [{"message": {"role": "assistant", "content": "[1]"}, "finish_reason": "stop"}]}
        server.raw(json.dumps(whole).encode(), content_type="application/json")
        server.error(429)
        given = {"kind": "openai", "baseUrl": f"{server.url}/v1", "model": "m"}
        brain = brains.make(config(given), {}, state, str(tmp_path))
        assert (await brain.answer(PROMPT)).text == "[1]"
        with pytest.raises(ProviderError):
            await brain.answer(PROMPT)
        await brain.close()
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"kind": "oracle"},
        {"kind": "scripted"},
        {"kind": "scripted", "replies": []},
        {"kind": "litellm", "apiKey": "key-of-mine"},
        {"kind": "anthropic"},
        {"kind": "agent"},
        {"kind": "agent", "name": "nobody"},
    ],
)
def test_a_brain_that_cannot_work_is_said_to(given: dict[str, Any], state: AgentState, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        brains.make(config(given), {}, state, str(tmp_path))


def test_a_key_of_the_environment_is_not_sent_to_another_address(
    state: AgentState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    with pytest.raises(ConfigError, match=r"brain\.apiKey not set"):
        brains.make(config({"kind": "openai", "baseUrl": "https://example.org/v1"}), {}, state, str(tmp_path))


@pytest.mark.parametrize("given", [{"model": 5}, {"options": "x"}, {"baseUrl": []}])
def test_a_member_of_the_wrong_kind_is_named(given: dict[str, Any], state: AgentState, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"`brain\.{next(iter(given))}` must be"):
        brains.make(config({"kind": "openai", "apiKey": "key-of-mine", **given}), {}, state, str(tmp_path))


@pytest.mark.parametrize("is_own", [True, False], ids=["brain", "llm"])
async def test_a_key_that_is_not_accepted_is_named_where_it_was_written(
    state: AgentState, tmp_path: Path, is_own: bool
) -> None:
    async with StubProvider() as server:
        server.error(401)
        given = {"kind": "openai", "baseUrl": f"{server.url}/v1", "model": "m", "apiKey": "key-of-mine"}
        llm = {"apiKey": "key-of-mine", "baseUrl": f"{server.url}/v1"}
        found = config(given) if is_own else config(None, llm=llm)
        brain = brains.make(found, {"llmProvider": "OPENAI", "llmModel": "m"}, state, str(tmp_path))
        with pytest.raises(Fault, match=r"`brain\.apiKey`" if is_own else r"`llm\.apiKey`"):
            await brain.answer(PROMPT)
        await brain.close()


@pytest.mark.parametrize("is_own", [True, False], ids=["brain", "llm"])
async def test_where_nobody_listens_the_address_is_named_where_it_was_written(
    state: AgentState, tmp_path: Path, is_own: bool
) -> None:
    async with StubProvider() as server:
        url = f"{server.url}/v1"
    given = {"kind": "openai", "baseUrl": url, "model": "m", "apiKey": "key-of-mine"}
    found = config(given) if is_own else config(None, llm={"apiKey": "key-of-mine", "baseUrl": url})
    brain = brains.make(found, {"llmProvider": "OPENAI", "llmModel": "m"}, state, str(tmp_path))
    with pytest.raises(Fault, match=r"`brain\.baseUrl`" if is_own else r"`llm\.baseUrl`"):
        await brain.answer(PROMPT)
    await brain.close()


class SmallModel:
    """Calls the last tool that it is offered, with the first thing that fits."""

    provider, name, context_window, images = "local", "small", 8192, False

    def __init__(self) -> None:
        self.request: Request | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.request = request
        tool = request.tools[-1]
        given = {name: schema.get("enum", ["words"])[0] for name, schema in tool.schema["properties"].items()}
        yield Answer((ToolUse("1", tool.name, given),), "tool_use")

    async def close(self) -> None:
        pass


async def test_a_small_model_chooses_among_what_is_there_and_its_call_is_the_decision() -> None:
    functions = [{"name": "inc", "inputs": [{"type": "uint256"}]}]
    threads = [{"id": "t0", "type": "SYSTEM"}, *({"id": f"t{number}", "body": "x" * 9000} for number in range(1, 90))]
    community = {"slug": "vault", "contracts": [{"abiFunctions": functions}], "threads": threads}
    model = SmallModel()
    text, _ = await guided.answer(model, PROMPT.replace(context={"communities": [community]}))
    assert json.loads(text) == {"action": "comment", "communitySlug": "vault", "threadId": "t1", "body": "words"}
    assert model.request is not None
    asked = str(model.request.messages[0].content)
    assert "inc(uint256)" in asked
    assert len(asked) < 2000

    text, _ = await guided.answer(model, PROMPT.replace(context={"communities": [{"slug": "empty"}]}))
    assert json.loads(text)["action"] == "create_thread"
