"""Which agents are among the models of a server, and in how many conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.fake_agents import FakeAgents, problem
from tests.support.loop import until
from tests.support.tryll_served import Peer, echo, served
from trunkline.agents.graph import agent_models
from trunkline.agents.graph.agent_engine import GraphClient, SessionAgents
from trunkline.agents.graph.agent_models import AgentModels, offered
from trunkline.agents.graph.pool import ModelPool
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models.engines import ChatMessage, Prompt, Slot
from trunkline.models.sampling import DEFAULT_SAMPLING
from trunkline.wires.tryll import messages as m


async def test_a_conversation_ends_when_the_last_of_its_nodes_lets_go(tmp_path: Path) -> None:
    models = AgentModels(ModelPool(), offered([]))
    client = GraphClient()
    one, other = [await models.language("agent:echo", m.InferenceEngine.MOCK, client) for _ in range(2)]
    slot = Slot("say")
    open_then = []
    for node in (one, other):
        prompt = Prompt((ChatMessage("user", "hi"),))
        assert [piece async for piece in node.generate(prompt, DEFAULT_SAMPLING, stream=True)]
    for node in (one, one, other):
        open_then.append(client.session_agents.conversations)
        node.release(slot)
        await until(lambda: not models._closing)
    assert (open_then, client.session_agents.conversations) == ([1, 1, 1], 0)
    await models.close()


async def test_a_session_is_in_so_many_conversations_whoever_they_are_with(
    tmp_path: Path, fakes: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_models, "MAX_SESSION_CONVERSATIONS", 2)
    models = AgentModels(ModelPool(), offered([]))
    async with served(tmp_path, models) as server, server.peer() as peer, server.peer() as other:
        agents = [await peer.agent("agent:echo", enable_diagnostics=True) for _ in range(3)]
        endings = []
        for agent in (*agents, agents[0]):
            peer.say(m.SendMessageRequest(3, agent, "hi"))
            endings.append((await peer.turn())[1])
        assert [each.status for each in endings] == [0, 0, m.TurnStatus.ERROR, 0]
        assert "at most 2 conversations" in problem(endings[2])[1]
        other.say(m.SendMessageRequest(3, await other.agent("agent:echo"), "hi"))
        assert (await other.turn())[1].status == m.TurnStatus.SUCCESS
        await peer.ask(m.DestroyAgentRequest(4, agents[0]), m.Ack)
        await until(lambda: not models._closing)
        peer.say(m.SendMessageRequest(5, agents[2], "hi"))
        assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS


async def test_who_is_in_as_many_conversations_as_may_be_waits_for_the_end_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_models, "MAX_SESSION_CONVERSATIONS", 2)
    models = AgentModels(ModelPool(), offered([]))
    async with served(tmp_path, models) as server, server.peer() as peer:
        agents = [await peer.agent("agent:echo") for _ in range(3)]
        for agent in agents[:2]:
            peer.say(m.SendMessageRequest(3, agent, "hi"))
            assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
        told = (m.HistoryEntry("user", "a"), m.HistoryEntry("assistant", "b"))
        for first in (m.RestoreHistoryRequest(4, agents[0], told), m.DestroyAgentRequest(4, agents[0])):
            peer.say(first, m.SendMessageRequest(5, agents[0 if "Restore" in type(first).__name__ else 2], "hi"))
            await peer.get(m.Ack)
            assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS


async def test_who_waits_for_room_waits_for_any_conversation_of_the_session(
    fakes: FakeAgents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_models, "MAX_SESSION_CONVERSATIONS", 1)
    models = AgentModels(ModelPool(), {"fakes": fakes, **offered([])})
    session_agents = SessionAgents()
    models._end(await models._opened("fakes", session_agents, None))
    assert session_agents.conversations == 1
    await models._opened("echo", session_agents, None)
    await models.close()


async def test_an_agent_is_in_so_many_conversations_and_no_more(
    fakes: FakeAgents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_models, "MAX_CONVERSATIONS", 1)
    models = AgentModels(ModelPool(), {"fakes": fakes, **offered([])})

    async def answers(name: str) -> str:
        engine = await models.language(f"agent:{name}", m.InferenceEngine.MOCK)
        prompt = Prompt((ChatMessage("user", "hi"),))
        return "".join([piece async for piece in engine.generate(prompt, DEFAULT_SAMPLING, stream=True)])

    first = await models._opened("fakes", SessionAgents(), None)
    with pytest.raises(ProviderError, match="its limit of conversations"):
        await answers("fakes")
    assert [await answers("echo") for _ in range(2)] == ["hi", "hi"]
    # Who comes while one ends waits for it.
    models._end(first)
    models._end(await models._opened("fakes", SessionAgents(), None))
    fakes.fails = ConfigError("There is no key.")
    for _ in range(2):
        with pytest.raises(ProviderError, match="no key"):
            await answers("fakes")
    await models.close()


@pytest.mark.parametrize(
    "params",
    [
        m.ToolCallParams(model_name="agent:echo", tools=(m.ToolDefinition("open"),)),
        m.ClassifyIntentLLMParams(model_name="agent:echo", intents_ids="a,b"),
    ],
)
async def test_nodes_that_need_more_than_words_are_refused(peer: Peer, params: m.NodeParams) -> None:
    graph = m.GraphDescription((m.NodeDescription("judge", params),), "judge")
    error = await peer.ask(m.CreateAgentRequest(3, graph, "any"), m.ErrorResponse)
    assert (error.code, "judge" in error.message, "agent:echo" in error.message) == (3003, True, True)
    inherited = m.GraphDescription((m.NodeDescription("judge", params.replace(model_name=None)),), "judge")
    assert await peer.refused(m.CreateAgentRequest(4, inherited, "agent:echo")) == 3003
    await peer.ask(m.CreateAgentRequest(5, inherited, "any"), m.CreateAgentResponse)


@pytest.mark.parametrize("name", ["agent:coder", "agent:", "agent:scripted:tour", "agent:os:getcwd", "agent:ECHO"])
async def test_a_name_that_is_not_offered_makes_no_agent(peer: Peer, name: str) -> None:
    error = await peer.ask(m.CreateAgentRequest(3, echo(), name), m.ErrorResponse)
    assert (error.code, f"`{name}`" in error.message) == (3003, True)


async def test_agents_are_listed_and_there_is_nothing_to_fetch_or_to_delete(peer: Peer) -> None:
    models = (await peer.ask(m.ListModelsRequest(3), m.ListModelsResponse)).models
    found = [(model.name, model.status, model.model_type) for model in models if model.name.startswith("agent:")]
    assert found == [(f"agent:{name}", m.ModelStatus.LOCAL, "language") for name in ("echo", "fakes")]
    assert "smollm2-135m" in {model.name for model in models}
    await peer.ask(m.LoadModelRequest(4, "agent:echo"), m.LoadModelResponse)
    await peer.ask(m.UnloadModelRequest(5, "agent:echo"), m.Ack)
    for request in (m.DownloadModelRequest, m.DeleteModelRequest, m.LoadModelRequest, m.UnloadModelRequest):
        assert await peer.refused(request(6, "agent:coder")) == 6002
    assert await peer.refused(m.DownloadModelRequest(7, "agent:echo")) == 6002
    assert await peer.refused(m.DeleteModelRequest(8, "agent:echo")) == 6002
    storage = m.CreateEmbeddedStringStorageRequest(9, "lore", strings=("x",), embedding_model="agent:echo")
    assert await peer.refused(storage) == 8003


async def test_the_end_of_the_models_is_the_end_of_every_conversation(fakes: FakeAgents, tmp_path: Path) -> None:
    models = AgentModels(ModelPool(), {"fakes": fakes})
    session = await models._opened("fakes", SessionAgents(), None)
    await models.close()
    assert fakes.opened[0].closed
    assert session.status.value == "closed"


def test_only_agents_that_are_there_and_can_answer_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(offered(["scripted:tour", "echo"])) == ["echo", "scripted:tour"]
    with pytest.raises(ConfigError, match="no agent `nobody`"):
        offered(["nobody"])
    made = offered([])["echo"]
    monkeypatch.setattr(type(made), "problem", lambda self: "It has lost its voice.", raising=False)
    with pytest.raises(ConfigError, match="lost its voice"):
        agent_models.offered([])


async def test_an_agent_stops_and_is_held_to_no_form(tmp_path: Path) -> None:
    async with served(tmp_path, AgentModels(ModelPool(), offered([]))) as server, server.peer() as peer:

        def graph(**sampling: Any) -> m.GraphDescription:
            params = m.GenerateParams("agent:echo", stream=True, sampling=m.SamplingOverrides(**sampling))
            return m.GraphDescription((m.NodeDescription("say", params),), "say")

        made = await peer.ask(m.CreateAgentRequest(2, graph(stop=("three",))), m.CreateAgentResponse)
        peer.say(m.SendMessageRequest(3, made.agent_id, "one two three four"))
        texts, ending = await peer.turn()
        assert "".join(each.text for each in texts) == "one two "
        assert ending.status == m.TurnStatus.SUCCESS
        refused: dict[str, dict[str, Any]] = {
            "json_schema": {"json_schema": "{}"},
            "logit_bias": {"logit_bias": (m.LogitBias("a", 1.0),)},
            "lora": {"lora": (m.LoraAdapter("a"),)},
        }
        for field, sampling in refused.items():
            error = await peer.ask(m.CreateAgentRequest(2, graph(**sampling)), m.ErrorResponse)
            assert error.code == 3007
            assert f"The node `say`: An agent answers as it will, and cannot be given `{field}`." in error.message
