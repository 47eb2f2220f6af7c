"""Agents in the place of models, through a server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.puppet import Puppet
from tests.support.tryll_served import Peer, echo, served
from trunkline.agents.graph import agent_engine, agent_models
from trunkline.agents.graph.agent_engine import HIGH_WATER, _Heard
from trunkline.agents.graph.agent_models import AgentModels, offered
from trunkline.agents.graph.engines import DEFAULT_SAMPLING, ChatMessage, EngineError, Prompt, Slot
from trunkline.agents.graph.pool import ModelPool
from trunkline.base.redact import Redactor
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, Approve, Capabilities, Deny, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.faults import ConfigError, Unsupported
from trunkline.core.turns import NOBODY_TO_ASK
from trunkline.core.usage import Usage
from trunkline.wires.tryll import messages as m

DONE = core.TurnEnded("success")


class Troupe:
    """An agent with a puppet for every conversation."""

    name = "troupe"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.puppets: list[Puppet] = []
        self.fails: Exception | None = None
        self.slow: asyncio.Event | None = None
        self.refuses: Exception | None = None

    async def open(self, request: OpenRequest) -> Puppet:
        if self.fails is not None:
            raise self.fails
        puppet = Puppet()
        puppet.refuses = self.refuses
        self.puppets.append(puppet)
        if self.slow is not None:
            await self.slow.wait()
        return await puppet.open(request)

    async def busy(self, number: int = 0) -> Puppet:
        """The puppet of a conversation, once it is asked something."""
        await until(lambda: len(self.puppets) > number and self.puppets[number].busy)
        return self.puppets[number]


@pytest.fixture
def troupe() -> Troupe:
    return Troupe()


@asynccontextmanager
async def stage(folder: Path, troupe: Troupe, **options: Any) -> AsyncIterator[Peer]:
    """A client of a server that offers the troupe and the echo."""
    agents = {"echo": offered([])["echo"], "troupe": troupe}
    models = AgentModels(ModelPool(str(folder / "cache")), agents, **options)
    async with served(folder, models) as server, server.peer() as peer:
        yield peer
    assert all(puppet.closed for puppet in troupe.puppets)


@pytest.fixture
async def peer(tmp_path: Path, troupe: Troupe) -> AsyncIterator[Peer]:
    async with stage(tmp_path, troupe) as made:
        yield made


def said(answers: Sequence[m.AnswerText]) -> str:
    return "".join(answer.text for answer in answers)


async def reply(peer: Peer, troupe: Troupe, agent: int, text: str, *events: core.Event) -> tuple[str, m.TurnComplete]:
    """What the client hears of a turn in which the newest puppet does these things."""
    peer.say(m.SendMessageRequest(7, agent, text))
    puppet = await troupe.busy(max(0, len(troupe.puppets) - 1))
    puppet.say(*events)
    answers, complete = await peer.turn()
    return said(answers), complete


def problem(complete: m.TurnComplete) -> tuple[int, str]:
    assert complete.status == m.TurnStatus.ERROR
    error = json.loads(complete.debug_info)["error"]
    return error["code"], error["message"]


@pytest.mark.parametrize("engine", [m.InferenceEngine.MOCK, m.InferenceEngine.LLAMA_CPP, m.InferenceEngine.OPEN_VINO])
async def test_an_agent_answers_on_every_engine_word_by_word_or_whole(peer: Peer, engine: int) -> None:
    await peer.configure(inference_engine=engine, allow_auto_model_downloading=True)
    for stream in (True, False):
        request = m.CreateAgentRequest(2, echo(stream=stream), "agent:echo")
        agent = (await peer.ask(request, m.CreateAgentResponse)).agent_id
        peer.say(m.SendMessageRequest(3, agent, "so it goes"))
        answers, complete = await peer.turn()
        assert [answer.text for answer in answers] == (["so ", "it ", "goes", ""] if stream else ["so it goes"])
        assert (complete.status, complete.tokens_generated) == (m.TurnStatus.SUCCESS, 3)


async def test_it_is_told_the_system_prompt_once_and_then_only_what_is_new(peer: Peer, troupe: Troupe) -> None:
    know = m.NodeDescription("know", m.InstructionParams(instruction="The mill burned.", default_exit="say"))
    params = m.GenerateParams(system_prompt="You are a smith.", template="{{instruction_know}}", stream=True)
    graph = m.GraphDescription((know, m.NodeDescription("say", params)), "know")
    agent = (await peer.ask(m.CreateAgentRequest(2, graph, "agent:troupe"), m.CreateAgentResponse)).agent_id
    assert not troupe.puppets
    for text in ("Hello.", "And now?"):
        assert (await reply(peer, troupe, agent, text, core.TextDelta("Well."), DONE))[0] == "Well."
    (puppet,) = troupe.puppets
    assert puppet.request is not None
    assert puppet.request.instructions == "You are a smith."
    assert [message.text for message in puppet.heard] == ["The mill burned.\n\nHello.", "The mill burned.\n\nAnd now?"]
    assert not puppet.changes


async def test_each_node_of_each_agent_has_a_conversation_of_its_own(peer: Peer, troupe: Troupe) -> None:
    first = m.NodeDescription("first", m.GenerateParams(system_prompt="one", default_exit="second"))
    second = m.NodeDescription("second", m.GenerateParams(system_prompt="two"))
    graph = m.GraphDescription((first, second), "first")
    for number in range(2):
        request = m.CreateAgentRequest(2, graph, "agent:troupe")
        agent = (await peer.ask(request, m.CreateAgentResponse)).agent_id
        peer.say(m.SendMessageRequest(3, agent, "hi"))
        for place in (2 * number, 2 * number + 1):
            (await troupe.busy(place)).say(core.TextDelta(f"<{place}>"), DONE)
        assert said((await peer.turn())[0]) == f"<{2 * number}><{2 * number + 1}>"
    told = [puppet.request.instructions for puppet in troupe.puppets if puppet.request is not None]
    assert told == ["one", "two", "one", "two"]


async def test_cancelling_stops_the_agent_and_keeps_its_conversation(peer: Peer, troupe: Troupe) -> None:
    agent = await peer.agent("agent:troupe")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    puppet = await troupe.busy()
    puppet.say(core.TextDelta("begun "))
    assert (await peer.get(m.AnswerText)).text == "begun "
    peer.say(m.CancelTurnRequest(4, agent))
    assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
    await peer.get(m.Ack)
    await until(lambda: not puppet.busy)
    text, complete = await reply(peer, troupe, agent, "two", core.TextDelta("here"), DONE)
    assert (text, complete.status) == ("here", m.TurnStatus.SUCCESS)
    assert [message.text for message in puppet.heard] == ["one", "two"]


@pytest.mark.parametrize("how", ["destroy", "disconnect"])
async def test_whoever_goes_takes_the_conversation_along(peer: Peer, troupe: Troupe, how: str) -> None:
    agent = await peer.agent("agent:troupe")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    puppet = await troupe.busy()
    if how == "destroy":
        peer.say(m.DestroyAgentRequest(4, agent))
        assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
        await peer.get(m.Ack)
    else:
        peer.writer.transport.abort()
    await until(lambda: puppet.closed)
    assert not puppet.busy


async def test_an_agent_that_is_slow_to_begin_keeps_no_cancelled_turn_waiting(peer: Peer, troupe: Troupe) -> None:
    troupe.slow = asyncio.Event()
    agent = await peer.agent("agent:troupe")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    await until(lambda: troupe.puppets)
    peer.say(m.CancelTurnRequest(4, agent))
    assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
    await peer.get(m.Ack)
    troupe.puppets.clear()
    troupe.slow = None
    assert (await reply(peer, troupe, agent, "two", core.TextDelta("now"), DONE))[0] == "now"


async def test_what_needs_approval_is_denied_with_the_reason(peer: Peer, troupe: Troupe) -> None:
    agent = await peer.agent("agent:troupe")
    peer.say(m.SendMessageRequest(3, agent, "read it"))
    puppet = await troupe.busy()
    puppet.say(core.TextDelta("Let me look."), core.ToolRequested("c1", "Read", "info", {}, "Read a.txt"))
    await until(lambda: puppet.decisions)
    assert puppet.decisions == [("c1", Deny(NOBODY_TO_ASK))]
    puppet.say(core.TextDelta("I may not."), DONE)
    assert said((await peer.turn())[0]) == "Let me look.\n\nI may not."


async def test_what_the_server_was_started_with_may_be_done_unasked(tmp_path: Path, troupe: Troupe) -> None:
    def policy() -> Policy:
        return Policy(allow=("Read",), interactive=False)

    async with stage(tmp_path, troupe, policy=policy) as peer:
        peer.say(m.SendMessageRequest(3, await peer.agent("agent:troupe"), "read it"))
        puppet = await troupe.busy()
        puppet.say(core.ToolRequested("c1", "Read", "info", {}, ""), core.ToolRequested("c2", "Bash", "exec", {}, ""))
        await until(lambda: len(puppet.decisions) == 2)
        assert puppet.decisions == [("c1", Approve("once")), ("c2", Deny(NOBODY_TO_ASK))]
        puppet.say(DONE)
        await peer.turn()


async def test_a_failure_ends_the_turn_with_a_sentence_and_not_the_agent(peer: Peer, troupe: Troupe) -> None:
    agent = await peer.agent("agent:troupe", enable_diagnostics=True)
    failed = core.Failed("provider", "Too many requests.")
    _, complete = await reply(peer, troupe, agent, "1", core.TextDelta("Hm"), failed, core.TurnEnded("error"))
    assert problem(complete) == (4001, "The node `say`: The agent `troupe`: Too many requests.")
    _, complete = await reply(peer, troupe, agent, "2", core.TurnEnded("unknown"))
    assert problem(complete) == (4001, "The node `say`: The agent `troupe`: It ended without an answer.")
    text, complete = await reply(peer, troupe, agent, "3", failed, core.TextDelta("At last."), DONE)
    assert (text, complete.status) == ("At last.", m.TurnStatus.SUCCESS)


@pytest.mark.parametrize(
    ("failure", "told"),
    [(ConfigError("There is no key."), "There is no key."), (ValueError("secret"), "It could not begin (ValueError).")],
)
async def test_an_agent_that_cannot_begin_fails_the_turn_and_is_tried_again(
    peer: Peer, troupe: Troupe, failure: Exception, told: str
) -> None:
    agent = await peer.agent("agent:troupe", enable_diagnostics=True)
    troupe.fails = failure
    peer.say(m.SendMessageRequest(3, agent, "hi"))
    assert problem((await peer.turn())[1]) == (4001, f"The node `say`: The agent `troupe`: {told}")
    troupe.fails = None
    assert (await reply(peer, troupe, agent, "hi", core.TextDelta("yes"), DONE))[0] == "yes"


async def test_an_answer_without_an_end_is_cut_off(peer: Peer, troupe: Troupe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_engine, "MAX_ANSWER", 10)
    agent = await peer.agent("agent:troupe", enable_diagnostics=True)
    text, complete = await reply(peer, troupe, agent, "go", core.TextDelta("12345678"), core.TextDelta("12345678"))
    assert text == "12345678"
    assert "more than 10 characters" in problem(complete)[1]
    await until(lambda: not troupe.puppets[0].busy)


async def test_an_agent_is_in_so_many_conversations_and_no_more(
    troupe: Troupe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_models, "MAX_CONVERSATIONS", 1)
    models = AgentModels(ModelPool(str(tmp_path)), {"troupe": troupe, **offered([])})

    async def answers(name: str) -> str:
        engine = await models.language(f"agent:{name}", m.InferenceEngine.MOCK)
        prompt = Prompt((ChatMessage("user", "hi"),))
        return "".join([piece async for piece in engine.generate(prompt, DEFAULT_SAMPLING, stream=True)])

    first = await models._opened("troupe", None)
    with pytest.raises(EngineError, match="takes no more"):
        await answers("troupe")
    assert [await answers("echo") for _ in range(2)] == ["hi", "hi"]
    models._end(first)
    await until(lambda: not models._closing)
    troupe.fails = ConfigError("There is no key.")
    for _ in range(2):
        with pytest.raises(EngineError, match="no key"):
            await answers("troupe")
    await models.close()


async def test_what_a_turn_used_is_told(peer: Peer, troupe: Troupe) -> None:
    agent = await peer.agent("agent:troupe")
    used = core.TurnEnded("success", Usage(100, 9, 40))
    _, complete = await reply(peer, troupe, agent, "go", core.TextDelta("a"), core.TextDelta("b"), used)
    assert (complete.tokens_generated, complete.tokens_prompt, complete.tokens_cached) == (9, 100, 40)


async def test_a_history_that_is_restored_is_told_to_a_new_conversation(peer: Peer, troupe: Troupe) -> None:
    agent = await peer.agent("agent:troupe")
    await reply(peer, troupe, agent, "one", core.TextDelta("uno"), DONE)
    entries = (m.HistoryEntry("user", "two"), m.HistoryEntry("assistant", "due"))
    await peer.ask(m.RestoreHistoryRequest(4, agent, entries), m.Ack)
    await until(lambda: troupe.puppets[0].closed)
    for expected in ([AddHistory("User: two\n\nAssistant: due")], []):
        peer.say(m.SendMessageRequest(5, agent, "three"))
        puppet = await troupe.busy(len(troupe.puppets) if troupe.puppets[-1].closed else len(troupe.puppets) - 1)
        assert (puppet.changes, [message.text for message in puppet.heard]) == (expected, ["three"])
        puppet.say(core.TextDelta("tre"), DONE)
        await peer.turn()
        # An agent that takes no history goes on without.
        troupe.refuses = Unsupported("It takes none.")
        await peer.ask(m.RestoreHistoryRequest(6, agent, entries), m.Ack)
        await until(lambda: troupe.puppets[-1].closed)


async def test_secrets_of_the_server_are_masked(tmp_path: Path, troupe: Troupe) -> None:
    async with stage(tmp_path, troupe, secrets=Redactor(["sk-0123456789abcdef"])) as peer:
        agent = await peer.agent("agent:troupe")
        pieces = (core.TextDelta("it is sk-01234"), core.TextDelta("56789abcdef."))
        text, _ = await reply(peer, troupe, agent, "go", *pieces, DONE)
        assert "0123456789abcdef" not in text
        assert text.startswith("it is ")


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
    assert found == [(f"agent:{name}", m.ModelStatus.LOCAL, "language") for name in ("echo", "troupe")]
    assert "smollm2-135m" in {model.name for model in models}
    await peer.ask(m.LoadModelRequest(4, "agent:echo"), m.LoadModelResponse)
    await peer.ask(m.UnloadModelRequest(5, "agent:echo"), m.Ack)
    for request in (m.DownloadModelRequest, m.DeleteModelRequest, m.LoadModelRequest, m.UnloadModelRequest):
        assert await peer.refused(request(6, "agent:coder")) == 6002
    assert await peer.refused(m.DownloadModelRequest(7, "agent:echo")) == 6002
    assert await peer.refused(m.DeleteModelRequest(8, "agent:echo")) == 6002
    storage = m.CreateEmbeddedStringStorageRequest(9, "lore", strings=("x",), embedding_model="agent:echo")
    assert await peer.refused(storage) == 8003


async def test_an_agent_tells_no_probabilities_and_counts_by_guessing(troupe: Troupe, tmp_path: Path) -> None:
    models = AgentModels(ModelPool(str(tmp_path)), {"troupe": troupe})
    engine = await models.language("agent:troupe", m.InferenceEngine.MOCK)
    with pytest.raises(EngineError, match="probabilities"):
        await engine.score(Prompt(()), ["A"])
    assert engine.count("six ab") == 2
    engine.release(Slot("say"))
    await models.close()


async def test_the_end_of_the_models_is_the_end_of_every_conversation(troupe: Troupe, tmp_path: Path) -> None:
    models = AgentModels(ModelPool(str(tmp_path)), {"troupe": troupe})
    session = await models._opened("troupe", None)
    await models.close()
    assert troupe.puppets[0].closed
    assert session.status.value == "closed"


async def test_an_agent_waits_for_a_reader_that_is_behind() -> None:
    heard = _Heard()

    def show(*events: core.Event) -> None:
        heard.show([core.Envelope("s1", number, 1, 0.0, event) for number, event in enumerate(events, 1)])

    behind = []
    show(core.TextDelta("x" * HIGH_WATER), core.TextDelta("y"))
    behind.append(heard.congested)
    await heard.next()
    behind.append(heard.congested)
    show(core.TextDelta("x" * HIGH_WATER))
    behind.append(heard.congested)
    assert behind == [True, False, True]
    heard.leave()
    show(core.TextDelta("x" * HIGH_WATER))
    async with asyncio.timeout(1):
        await heard.drain()


def test_only_agents_that_are_there_and_can_answer_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(offered(["scripted:tour", "echo"])) == ["echo", "scripted:tour"]
    with pytest.raises(ConfigError, match="no agent `nobody`"):
        offered(["nobody"])
    made = offered([])["echo"]
    monkeypatch.setattr(type(made), "problem", lambda self: "It has lost its voice.", raising=False)
    with pytest.raises(ConfigError, match="lost its voice"):
        agent_models.offered([])
