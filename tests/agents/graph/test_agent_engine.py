"""Agents in the place of models, through a server on loopback."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from tests.agents.graph.fake_agents import DONE, FakeAgents, problem, reply, said, stage
from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, echo
from trunkline.agents.graph import agent_engine
from trunkline.agents.graph.agent_engine import HIGH_WATER, GraphClient, _Heard
from trunkline.agents.graph.agent_models import AgentModels
from trunkline.agents.graph.pool import ModelPool
from trunkline.base.redact import Redactor
from trunkline.core import events as core
from trunkline.core.agent import AddHistory, Approve, Deny
from trunkline.core.approvals import NOBODY_TO_ASK, Policy
from trunkline.core.faults import ConfigError, ProviderError, Unsupported
from trunkline.core.usage import Usage
from trunkline.models.engines import ChatMessage, Prompt, Slot
from trunkline.models.sampling import DEFAULT_SAMPLING
from trunkline.wires.tryll import messages as m


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


async def test_it_is_told_the_system_prompt_once_and_then_only_what_is_new(peer: Peer, fakes: FakeAgents) -> None:
    know = m.NodeDescription("know", m.InstructionParams(instruction="The mill burned.", default_exit="say"))
    params = m.GenerateParams(system_prompt="You are a smith.", template="{{instruction_know}}", stream=True)
    graph = m.GraphDescription((know, m.NodeDescription("say", params)), "know")
    agent = (await peer.ask(m.CreateAgentRequest(2, graph, "agent:fakes"), m.CreateAgentResponse)).agent_id
    assert not fakes.opened
    for text in ("Hello.", "And now?"):
        assert (await reply(peer, fakes, agent, text, core.TextDelta("Well."), DONE))[0] == "Well."
    (fake,) = fakes.opened
    assert fake.request is not None
    assert fake.request.instructions == "You are a smith."
    assert [message.text for message in fake.heard] == ["The mill burned.\n\nHello.", "The mill burned.\n\nAnd now?"]
    assert not fake.changes


async def test_all_nodes_of_an_agent_share_one_conversation_and_each_agent_has_its_own(
    peer: Peer, fakes: FakeAgents
) -> None:
    first = m.NodeDescription("first", m.GenerateParams(system_prompt="one", default_exit="second"))
    second = m.NodeDescription("second", m.GenerateParams(system_prompt="two"))
    graph = m.GraphDescription((first, second), "first")
    agents = []
    for number in range(2):
        request = m.CreateAgentRequest(2, graph, "agent:fakes")
        agents.append((await peer.ask(request, m.CreateAgentResponse)).agent_id)
        peer.say(m.SendMessageRequest(3, agents[number], "hi"))
        fake = await fakes.busy(number)
        fake.say(core.TextDelta("<1>"), DONE)
        await until(partial(_has_heard, fake, 2))
        fake.say(core.TextDelta("<2>"), DONE)
        assert said((await peer.turn())[0]) == "<1>\n<2>"
    assert [fake.request.instructions for fake in fakes.opened if fake.request is not None] == ["one", "one"]
    await peer.ask(m.DestroyAgentRequest(4, agents[0]), m.Ack)
    await until(lambda: fakes.opened[0].closed)
    assert not fakes.opened[1].closed


def _has_heard(fake: FakeAgent, count: int) -> bool:
    return len(fake.heard) == count


async def test_cancelling_stops_the_agent_and_keeps_its_conversation(peer: Peer, fakes: FakeAgents) -> None:
    agent = await peer.agent("agent:fakes")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    fake = await fakes.busy()
    fake.say(core.TextDelta("begun "))
    assert (await peer.get(m.AnswerText)).text == "begun "
    peer.say(m.CancelTurnRequest(4, agent))
    assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
    await peer.get(m.Ack)
    await until(lambda: not fake.busy)
    text, complete = await reply(peer, fakes, agent, "two", core.TextDelta("here"), DONE)
    assert (text, complete.status) == ("here", m.TurnStatus.SUCCESS)
    assert [message.text for message in fake.heard] == ["one", "two"]


@pytest.mark.parametrize("how", ["destroy", "disconnect"])
async def test_whoever_goes_takes_the_conversation_along(peer: Peer, fakes: FakeAgents, how: str) -> None:
    agent = await peer.agent("agent:fakes")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    fake = await fakes.busy()
    if how == "destroy":
        peer.say(m.DestroyAgentRequest(4, agent))
        assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
        await peer.get(m.Ack)
    else:
        peer.writer.transport.abort()
    await until(lambda: fake.closed)
    assert not fake.busy


async def test_an_agent_that_is_slow_to_begin_keeps_no_cancelled_turn_waiting(peer: Peer, fakes: FakeAgents) -> None:
    fakes.slow = asyncio.Event()
    agent = await peer.agent("agent:fakes")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    await until(lambda: fakes.opened)
    peer.say(m.CancelTurnRequest(4, agent))
    assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
    await peer.get(m.Ack)
    (late,) = fakes.opened
    fakes.opened.clear()
    fakes.slow = None
    assert (await reply(peer, fakes, agent, "two", core.TextDelta("now"), DONE))[0] == "now"
    assert late.request is None


@pytest.mark.parametrize("how", ["cancelled", "released"])
async def test_what_begins_when_nobody_needs_it_any_more_is_ended_at_once(
    tmp_path: Path, fakes: FakeAgents, how: str
) -> None:
    fakes.slow = asyncio.Event()
    fakes.stubborn = True
    models = AgentModels(ModelPool(), {"fakes": fakes})
    client = GraphClient()
    engine = await models.language("agent:fakes", m.InferenceEngine.MOCK, client)
    answer = engine.generate(Prompt((ChatMessage("user", "hi"),)), DEFAULT_SAMPLING, stream=True)
    turn = asyncio.ensure_future(anext(answer))
    await until(lambda: fakes.opened)
    if how == "cancelled":
        turn.cancel()
    else:
        engine.release(Slot("say"))
    fakes.slow.set()
    with pytest.raises((asyncio.CancelledError, ProviderError)):
        await turn
    await until(lambda: fakes.opened[0].closed and not models._closing)
    assert (client.session_agents.conversations, models._count["fakes"]) == (0, 0)
    await models.close()


async def test_what_needs_approval_is_denied_with_the_reason(peer: Peer, fakes: FakeAgents) -> None:
    agent = await peer.agent("agent:fakes")
    peer.say(m.SendMessageRequest(3, agent, "read it"))
    fake = await fakes.busy()
    fake.say(core.TextDelta("Let me look."), core.ToolRequested("c1", "Read", "info", {}, "Read a.txt"))
    await until(lambda: fake.decisions)
    assert fake.decisions == [("c1", Deny(NOBODY_TO_ASK))]
    fake.say(core.TextDelta("I may not."), DONE)
    assert said((await peer.turn())[0]) == "Let me look.\n\nI may not."


async def test_a_command_that_needs_an_approver_is_not_taken(peer: Peer, fakes: FakeAgents) -> None:
    agent = await peer.agent("agent:fakes", enable_diagnostics=True)
    peer.say(m.SendMessageRequest(3, agent, "/undo"))
    assert "does not take this command" in problem((await peer.turn())[1])[1]
    assert fakes.opened[0].heard == []


async def test_what_the_server_was_started_with_may_be_done_unasked(tmp_path: Path, fakes: FakeAgents) -> None:
    def policy() -> Policy:
        return Policy(allow=("Read",), interactive=False)

    async with stage(tmp_path, fakes, policy=policy) as peer:
        peer.say(m.SendMessageRequest(3, await peer.agent("agent:fakes"), "read it"))
        fake = await fakes.busy()
        fake.say(core.ToolRequested("c1", "Read", "info", {}, ""), core.ToolRequested("c2", "Bash", "exec", {}, ""))
        await until(lambda: len(fake.decisions) == 2)
        assert fake.decisions == [("c1", Approve("once")), ("c2", Deny(NOBODY_TO_ASK))]
        fake.say(DONE)
        await peer.turn()


async def test_a_failure_ends_the_turn_with_a_sentence_and_not_the_agent(peer: Peer, fakes: FakeAgents) -> None:
    agent = await peer.agent("agent:fakes", enable_diagnostics=True)
    failed = core.Failed("provider", "Too many requests.")
    _, complete = await reply(peer, fakes, agent, "1", core.TextDelta("Hm"), failed, core.TurnEnded("error"))
    assert problem(complete) == (4001, "The node `say`: The agent `fakes`: Too many requests.")
    _, complete = await reply(peer, fakes, agent, "2", core.TurnEnded("unknown"))
    assert problem(complete) == (4001, "The node `say`: The agent `fakes`: It ended without an answer.")
    crashed = core.Failed("crashed", "RuntimeError: of the agent's own")
    _, complete = await reply(peer, fakes, agent, "3", crashed, core.TurnEnded("error"))
    assert problem(complete) == (4001, "The node `say`: The agent `fakes`: The agent failed. Its log says why.")
    text, complete = await reply(peer, fakes, agent, "4", failed, core.TextDelta("At last."), DONE)
    assert (text, complete.status) == ("At last.", m.TurnStatus.SUCCESS)


@pytest.mark.parametrize(
    ("failure", "told"),
    [(ConfigError("There is no key."), "There is no key."), (ValueError("secret"), "It could not begin (ValueError).")],
)
async def test_an_agent_that_cannot_begin_fails_the_turn_and_is_tried_again(
    peer: Peer, fakes: FakeAgents, failure: Exception, told: str
) -> None:
    agent = await peer.agent("agent:fakes", enable_diagnostics=True)
    fakes.fails = failure
    peer.say(m.SendMessageRequest(3, agent, "hi"))
    assert problem((await peer.turn())[1]) == (4001, f"The node `say`: The agent `fakes`: {told}")
    fakes.fails = None
    assert (await reply(peer, fakes, agent, "hi", core.TextDelta("yes"), DONE))[0] == "yes"


async def test_an_answer_without_an_end_is_cut_off(
    peer: Peer, fakes: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_engine, "MAX_ANSWER", 10)
    agent = await peer.agent("agent:fakes", enable_diagnostics=True)
    text, complete = await reply(peer, fakes, agent, "go", core.TextDelta("12345678"), core.TextDelta("12345678"))
    assert text == "12345678"
    assert "more than 10 characters" in problem(complete)[1]
    await until(lambda: not fakes.opened[0].busy)


async def test_what_a_turn_used_is_told(peer: Peer, fakes: FakeAgents) -> None:
    agent = await peer.agent("agent:fakes")
    used = core.TurnEnded("success", Usage(100, 9, 40))
    _, complete = await reply(peer, fakes, agent, "go", core.TextDelta("a"), core.TextDelta("b"), used)
    assert (complete.tokens_generated, complete.tokens_prompt, complete.tokens_cached) == (9, 100, 40)


async def test_a_history_that_is_restored_is_told_to_a_new_conversation(peer: Peer, fakes: FakeAgents) -> None:
    agent = await peer.agent("agent:fakes")
    await reply(peer, fakes, agent, "one", core.TextDelta("uno"), DONE)
    entries = (m.HistoryEntry("user", "two"), m.HistoryEntry("assistant", "due"))
    await peer.ask(m.RestoreHistoryRequest(4, agent, entries), m.Ack)
    await until(lambda: fakes.opened[0].closed)
    for expected in ([AddHistory("User: two\n\nAssistant: due")], []):
        peer.say(m.SendMessageRequest(5, agent, "three"))
        fake = await fakes.busy(len(fakes.opened) if fakes.opened[-1].closed else len(fakes.opened) - 1)
        assert (fake.changes, [message.text for message in fake.heard]) == (expected, ["three"])
        fake.say(core.TextDelta("tre"), DONE)
        await peer.turn()
        # An agent that takes no history goes on without.
        fakes.refuses = Unsupported("It takes none.")
        await peer.ask(m.RestoreHistoryRequest(6, agent, entries), m.Ack)
        await until(lambda: fakes.opened[-1].closed)


async def test_secrets_of_the_server_are_masked(tmp_path: Path, fakes: FakeAgents) -> None:
    async with stage(tmp_path, fakes, secrets=Redactor(["sk-0123456789abcdef"])) as peer:
        agent = await peer.agent("agent:fakes")
        pieces = (core.TextDelta("it is sk-01234"), core.TextDelta("56789abcdef."))
        text, _ = await reply(peer, fakes, agent, "go", *pieces, DONE)
        assert "0123456789abcdef" not in text
        assert text.startswith("it is ")


async def test_an_agent_tells_no_probabilities_and_counts_by_guessing(fakes: FakeAgents, tmp_path: Path) -> None:
    models = AgentModels(ModelPool(), {"fakes": fakes})
    engine = await models.language("agent:fakes", m.InferenceEngine.MOCK)
    with pytest.raises(ProviderError, match="probabilities"):
        await engine.score(Prompt(()), ["A"])
    assert engine.count("six ab") == 2
    engine.release(Slot("say"))
    await models.close()


async def test_an_agent_waits_for_a_reader_that_is_behind() -> None:
    heard = _Heard()
    heard.turn = 1

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
    async with asyncio.timeout(PATIENCE_SECONDS):
        await heard.drain()
