"""Turns of a client's graph, for whoever follows them."""

from __future__ import annotations

from pathlib import Path

from tests.support.loop import until
from tests.support.spans import attributes, following
from tests.support.tryll_served import echo, served
from trunkline.wires.tryll import messages as m

SAID = "a-word-of-somebodys"


async def test_a_turn_is_a_span_and_what_it_asks_of_a_model_is_one_below_it(tmp_path: Path) -> None:
    with following() as made:
        async with served(tmp_path) as server, server.peer() as peer:
            agent = await peer.agent()
            peer.say(m.SendMessageRequest(3, agent, f"{SAID} and two"))
            await peer.turn()
            await until(lambda: len(made.all) == 2)
    chat, turn = made.all
    assert turn.name == "invoke_agent graph"
    assert chat.name == f"chat {attributes(chat)['gen_ai.request.model']}"
    assert attributes(turn) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "graph",
        "gen_ai.conversation.id": str(agent),
        **{name: value for name, value in attributes(chat).items() if name.startswith("gen_ai.usage.")},
        "trunkline.outcome": "success",
    }
    assert attributes(chat)["gen_ai.provider.name"] == "mock"
    assert chat.parent == turn.context
    assert attributes(turn)["gen_ai.usage.input_tokens"] == 3
    assert SAID not in made.everything()


async def test_a_turn_that_fails_has_the_kind_of_its_fault(tmp_path: Path) -> None:
    ring = m.GraphDescription((m.NodeDescription("n", m.InstructionParams(default_exit="n")),), "n")
    with following() as made:
        async with served(tmp_path) as server, server.peer() as peer:
            made_agent = await peer.ask(m.CreateAgentRequest(2, ring, ""), m.CreateAgentResponse)
            peer.say(m.SendMessageRequest(3, made_agent.agent_id, "x"))
            await peer.turn()
            await until(lambda: len(made.all) == 1)
    assert attributes(made["invoke_agent graph"])["error.type"]


async def test_a_turn_that_outlives_its_client_was_cancelled(tmp_path: Path) -> None:
    with following() as made:
        async with served(tmp_path) as server, server.peer() as peer:
            slow = await peer.ask(m.CreateAgentRequest(2, echo(), "mock-slow"), m.CreateAgentResponse)
            peer.say(m.SendMessageRequest(3, slow.agent_id, "word " * 1000))
            await peer.get(m.AnswerText)
            peer.writer.transport.abort()
            await until(lambda: len(made.all) == 2)
    assert attributes(made["invoke_agent graph"])["trunkline.outcome"] == "cancelled"


async def test_a_server_that_nobody_follows_pays_nothing_for_it(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert server.server.tracer is None
