"""A conversation whose graph becomes another one: here, and on a Tryll server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.helpers import MemoryJournal, play, request, text_of
from tests.support.tryll_served import served
from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.graph import yaml_graph
from trunkline.agents.graph.conversation import GraphFileAgent
from trunkline.agents.graph.yaml_graph import GraphFile
from trunkline.core.agent import SetOptions
from trunkline.core.events import Event, Notice, TurnEnded
from trunkline.core.usage import NOTHING_USED
from trunkline.wires.tryll.drive import RemoteAgent
from trunkline.wires.tryll.errors import TryllError

FIRST = """start: say
default_model: mock
storages: {lines: [First.]}
knowledge: {lore: {embedding_model: m, strings: [a]}}
nodes:
  say: {type: CannedResponse, string_storage: lines, default: find}
  find: {type: Retrieve, embedded_string_storage: lore}
"""
SECOND = FIRST.replace("First.", "Second.")
#: What only shows when it is made: the agent is not there.
UNMAKEABLE = FIRST.replace(
    "type: Retrieve, embedded_string_storage: lore", "type: Speak, tts_model_name: '', default: more"
)
UNMAKEABLE += "  more: {type: CannedResponse, string_storage: nowhere}\n"


def graph(text: str) -> GraphFile:
    return yaml_graph.parse(text.encode(), "g.yaml")


def notices(events: list[Event]) -> list[str]:
    return [event.message for event in events if isinstance(event, Notice)]


async def test_the_next_turn_is_the_new_graphs_and_it_knows_what_was_said(tmp_path: Path) -> None:
    agent = GraphFileAgent(graph(FIRST), "g", str(tmp_path))
    journal = MemoryJournal()
    conversation = await agent.open(request(journal=journal, history=("once",)))
    assert text_of(await play(conversation, "one")) == "First."
    agent.file = graph(SECOND)
    assert text_of(await play(conversation, "two")) == "Second."
    assert conversation._agent is not None
    assert conversation._agent.history() == [("once", "I remember that."), ("one", "First."), ("two", "Second.")]
    await conversation.close()
    assert agent._hosts == {}


async def test_where_the_new_graph_cannot_be_had_the_one_before_goes_on_and_that_is_told_once(tmp_path: Path) -> None:
    agent = GraphFileAgent(graph(FIRST), "g", str(tmp_path))
    conversation = await agent.open(request())
    await play(conversation, "one")
    agent.file = graph(UNMAKEABLE)
    events = await play(conversation, "two")
    assert (text_of(events), events[-1]) == ("First.", TurnEnded("success", NOTHING_USED))
    (told,) = notices(events)
    assert told.startswith("The changed graph cannot be used, and the one before goes on. ")
    assert "nowhere" in told
    assert notices(await play(conversation, "three")) == []
    agent.file = graph(SECOND)
    assert text_of(await play(conversation, "four")) == "Second."
    await conversation.close()
    assert agent._hosts == {}


async def test_a_graph_that_names_another_model_gets_it(tmp_path: Path) -> None:
    answer = "start: a\ndefault_model: agent:echo\nnodes:\n  a: {type: Generate}\n"
    agent = GraphFileAgent(graph(FIRST), "g", str(tmp_path))
    conversation = await agent.open(request())
    await play(conversation, "one")
    agent.file = graph(answer)
    assert text_of(await play(conversation, "two")).endswith("two")
    await conversation.close()
    assert agent._hosts == {}


async def test_a_server_gets_another_agent_that_knows_what_was_said_and_loses_the_old_one(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        agent = TryllAgent("127.0.0.1", server.port, graph=graph(FIRST))
        conversation = await agent.open(request(journal=MemoryJournal()))
        assert text_of(await play(conversation, "one")) == "First."
        conversation.renew(graph(SECOND))
        assert text_of(await play(conversation, "two")) == "Second."
        assert conversation._agent is not None
        assert [entry.text for entry in await conversation._agent.history()] == ["one", "First.", "two", "Second."]
        assert (await conversation._tryll.health()).agents == 1
        await conversation.close()


@pytest.mark.parametrize("how", ["graph", "model"])
async def test_an_old_agent_that_does_not_go_does_not_cost_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    async def destroy(_: RemoteAgent) -> None:
        raise TryllError(5000, "It does not go.")

    async with served(tmp_path) as server:
        agent = TryllAgent("127.0.0.1", server.port, graph=graph(FIRST))
        conversation = await agent.open(request(journal=MemoryJournal()))
        await play(conversation, "one")
        before = conversation._agent
        monkeypatch.setattr(RemoteAgent, "destroy", destroy)
        if how == "graph":
            conversation.renew(graph(SECOND))
        else:
            await conversation.configure(SetOptions({"model": "mock-2"}))
        events = await play(conversation, "two")
        monkeypatch.undo()
        assert text_of(events) == ("Second." if how == "graph" else "First.")
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].outcome == "success"
        assert conversation._agent is not before
        assert "It does not go." in caplog.text
        await conversation.close()


async def test_a_server_that_cannot_use_the_new_graph_goes_on_with_the_old_one(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        agent = TryllAgent("127.0.0.1", server.port, graph=graph(FIRST))
        conversation = await agent.open(request(journal=MemoryJournal()))
        await play(conversation, "one")
        conversation.renew(graph(UNMAKEABLE.replace("First.", "Never.")))
        events = await play(conversation, "two")
        assert text_of(events) == "First."
        assert notices(events)[0].startswith(
            "The server cannot use the changed graph, and the one before goes on. [3010]"
        )
        # Its storages had changed already, and are what they were again.
        conversation.renew(graph(FIRST))
        assert text_of(await play(conversation, "three")) == "First."
        assert (await conversation._tryll.health()).agents == 1
        await conversation.close()


async def test_a_graph_that_changes_before_the_first_message_is_the_first_one(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        conversation = await TryllAgent("127.0.0.1", server.port, graph=graph(FIRST)).open(request())
        conversation.renew(graph(SECOND))
        assert text_of(await play(conversation, "one")) == "Second."
        await conversation.close()


async def test_who_waits_for_the_end_of_a_conversation_hears_of_it_once(tmp_path: Path) -> None:
    ended: list[str] = []
    conversation = await GraphFileAgent(graph(FIRST), "g", str(tmp_path)).open(request())
    conversation.when_closed(lambda: ended.append("over"))
    assert ended == []
    await conversation.close()
    await conversation.close()
    assert ended == ["over"]
