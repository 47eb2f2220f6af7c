"""What a server counts, and how it tells of it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tryll_served import Peer, Served, echo, served
from tests.wires.tryll.serve.test_serve_models import Pool
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.serve.figures import MAX_MODELS, MAX_NAME, OTHER, ServerFigures

SAID = "a-word-of-somebodys"


def told(server: Served) -> dict[str, float]:
    """Every sample, by its name and labels."""
    assert server.server.figures is not None
    lines = server.server.figures.text(server.server).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


async def talk(peer: Peer, agent: int, text: str = SAID) -> m.TurnComplete:
    peer.say(m.SendMessageRequest(3, agent, text))
    return (await peer.turn())[1]


async def test_turns_are_told_by_model_and_outcome_with_their_tokens_and_times(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.peer() as peer:
        server.server.figures = ServerFigures()
        first = await talk(peer, await peer.agent("m1"))
        await talk(peer, await peer.agent("m1"), "one two three")
        ring = m.GraphDescription((m.NodeDescription("a", m.InstructionParams(default_exit="a")),), "a")
        looping = await peer.ask(m.CreateAgentRequest(2, ring, "m1"), m.CreateAgentResponse)
        assert (await talk(peer, looping.agent_id)).status == m.TurnStatus.ERROR
        found = told(server)
        assert found['trunkline_tryll_turns_total{model="m1",outcome="success"}'] == 2
        # No model was asked in that one.
        assert found['trunkline_tryll_turns_total{model="",outcome="error"}'] == 1
        assert found['trunkline_tryll_tokens_total{model="m1",kind="generated"}'] == first.tokens_generated + 5
        assert found['trunkline_tryll_first_word_seconds_count{model="m1"}'] == 2
        assert found['trunkline_tryll_turn_seconds_count{model="m1"}'] == 2
        assert found['trunkline_tryll_queue_wait_seconds_sum{model="m1"}'] == 0
        assert found["trunkline_tryll_sessions"] == 1
        assert found["trunkline_tryll_agents"] == 3
        assert SAID not in server.server.figures.text(server.server)


async def test_the_tokens_of_a_graph_with_two_models_are_each_ones_own(tmp_path: Path) -> None:
    nodes = (
        m.NodeDescription("a", m.GenerateParams(model_name="short", default_exit="b")),
        m.NodeDescription(
            "b", m.GenerateParams(model_name="long", template="hi and more", placement=m.Placement.IN_PLACE_OF_USER)
        ),
    )
    async with served(tmp_path) as server, server.peer() as peer:
        server.server.figures = ServerFigures()
        made = await peer.ask(m.CreateAgentRequest(2, m.GraphDescription(nodes, "a"), "x"), m.CreateAgentResponse)
        done = await talk(peer, made.agent_id, "hi")
        found = told(server)
        tokens = {name: found[f'trunkline_tryll_tokens_total{{model="{name}",kind="generated"}}'] for name in
                  ("short", "long")}  # fmt: skip
        assert sum(tokens.values()) == done.tokens_generated
        assert 0 < tokens["short"] < tokens["long"]
        assert found['trunkline_tryll_turns_total{model="long",outcome="success"}'] == 1


async def test_loaded_models_say_what_they_take_and_who_waits_for_them(tmp_path: Path) -> None:
    async with served(tmp_path, Pool()) as server, server.peer() as peer:
        server.server.figures = ServerFigures()
        found = told(server)
        assert found['trunkline_tryll_model_memory_bytes{model="good",source="measured"}'] == 1 << 20
        assert found['trunkline_tryll_model_memory_bytes{model="bad",source="estimated"}'] == 1 << 10
        assert found['trunkline_tryll_queue_length{model="good"}'] == 2
        assert found["trunkline_tryll_models_loaded"] == 2
        health = await peer.ask(m.HealthRequest(4), m.HealthResponse)
        assert (health.models_loaded, health.memory_bytes) == (2, (1 << 20) + (1 << 10))


async def test_a_client_that_invents_names_of_models_does_not_make_the_page_longer_for_ever(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.peer() as peer:
        server.server.figures = figures = ServerFigures()
        names = [f"{number:03}-{'x' * MAX_NAME}" for number in range(MAX_MODELS + 1)]
        for name in names:
            agent = await peer.agent(name)
            await talk(peer, agent, "x")
            await peer.ask(m.DestroyAgentRequest(4, agent), m.Ack)
        models = set(re.findall(r'turns_total\{model="([^"]*)"', figures.text(server.server)))
        assert models == {name[:MAX_NAME] for name in names[:MAX_MODELS]} | {OTHER}
        # What the server has is told apart, however late it comes.
        real = server.server.host.models.named("llm")[0]
        await talk(peer, await peer.agent(real), "x")
        assert told(server)[f'trunkline_tryll_turns_total{{model="{real}",outcome="success"}}'] == 1


async def test_who_is_not_let_in_is_counted_by_the_reason(tmp_path: Path) -> None:
    async with served(tmp_path, token="right") as server:
        server.server.figures = figures = ServerFigures()
        for request in (m.ConfigureSessionRequest(1, token="wrong"), m.ConfigureSessionRequest(1, protocol_version=9)):
            async with server.peer(configured=False) as peer:
                peer.say(request)
                await peer.get(m.ErrorResponse)
        assert (figures.refused["token"], figures.refused["version"], figures.refused["clients"]) == (1, 1, 0)
        assert told(server)['trunkline_tryll_connections_refused_total{reason="token"}'] == 1


async def test_tokens_are_counted_for_health_even_where_nobody_asks_for_figures(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.peer() as peer:
        assert server.server.figures is None
        tokens = (await talk(peer, await peer.agent())).tokens_generated
        assert (await peer.ask(m.HealthRequest(4), m.HealthResponse)).tokens_generated == tokens > 0
        peer.say(m.CreateAgentRequest(5, echo(), "any"))
        await peer.get(m.CreateAgentResponse)
