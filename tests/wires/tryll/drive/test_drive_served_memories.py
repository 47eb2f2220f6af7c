"""Memories and directors over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tryll_served import served
from trunkline.core.graph.hosting import EmbeddedStorageDescription
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.errors import TryllError

MEMORY = EmbeddedStorageDescription("player", embedding_model="mini", memory_path="memory/ann.jsonl")
KEEPING = m.GraphDescription(
    (
        m.NodeDescription("find", m.RetrieveParams("player", threshold=0.9, found_exit="say", not_found_exit="say")),
        m.NodeDescription("say", m.GenerateParams(template="{{#knowledge_find}}{{text}} {{/knowledge_find}}",
                                                  placement=m.Placement.IN_PLACE_OF_USER, default_exit="keep")),
        m.NodeDescription("keep", m.RememberParams("player", notify_client=True)),
    ),
    "find",
)  # fmt: skip


async def test_what_a_session_wrote_down_the_next_one_knows(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        async with Tryll(port=server.port) as tryll:
            assert {"memory", "director"} <= set(tryll.extensions)
            await tryll.bring(MEMORY)
            agent = await tryll.create_agent(KEEPING, default_model="mock")
            events: list[m.NodeEvent] = []
            agent.on("memory", events.append)
            await agent.ask("My name is Ann.")
            assert {pair.key: pair.value for pair in events[0].kv_pairs}["text"] == "My name is Ann."
        async with Tryll(port=server.port) as tryll:
            made = await tryll.create_embedded_storage("player", embedding_model="mini", memory_path="memory/ann.jsonl")
            assert made.record_count == 1
            agent = await tryll.create_agent(KEEPING, default_model="mock")
            assert "The user said (20" in (await agent.ask("What is my name?")).text


@pytest.mark.parametrize(
    ("path", "code"),
    [("../ann.jsonl", 3009), ("/ann.jsonl", 3009), ("ann.json", 8003), ("lore.jsonl", 8003), ("a\0.jsonl", 3010)],
)
async def test_a_path_that_is_no_memorys_is_refused_as_others_are(tmp_path: Path, path: str, code: int) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/lore.jsonl").write_text("mine\n")
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        with pytest.raises(TryllError) as refused:
            await tryll.create_embedded_storage("player", embedding_model="mini", memory_path=path)
        assert refused.value.code == code
    assert (tmp_path / "root/lore.jsonl").read_text() == "mine\n"


async def test_a_session_writes_below_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "root/game").mkdir(parents=True)
    config = m.ConfigureSessionRequest(storage_data_folder="game")
    async with served(tmp_path) as server, Tryll(port=server.port, config=config) as tryll:
        await tryll.bring(MEMORY)
        await (await tryll.create_agent(KEEPING, default_model="mock")).ask("My name is Ann.")
    assert (tmp_path / "root/game/memory/ann.jsonl").exists()


async def test_a_folder_that_a_memory_made_is_no_way_to_deeper_ones(tmp_path: Path) -> None:
    deep = "f/f/f/f/f/f/f/f"
    (tmp_path / "root" / deep).mkdir(parents=True)
    config = m.ConfigureSessionRequest(storage_data_folder=deep)
    async with served(tmp_path) as server, Tryll(port=server.port, config=config) as tryll:
        await tryll.create_embedded_storage("ann", embedding_model="mini", memory_path="ann.jsonl")
        with pytest.raises(TryllError, match="more than 8 folders") as refused:
            await tryll.create_embedded_storage("bob", embedding_model="mini", memory_path="f/bob.jsonl")
        assert refused.value.code == 8003


async def test_a_node_that_remembers_needs_a_memory(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        await tryll.create_embedded_storage("player", ["a"], embedding_model="mini")
        with pytest.raises(TryllError) as refused:
            await tryll.create_agent(KEEPING, default_model="mock")
        assert refused.value.code == 3011


async def test_lines_of_a_scene_are_pieces_of_the_answer_and_events(tmp_path: Path) -> None:
    characters = (m.CharacterDefinition("Anna", "An innkeeper."), m.CharacterDefinition("Bert", "A smith.", "mock"))
    talk = m.DirectorParams(characters=characters, max_lines=2)
    async with served(tmp_path) as server, Tryll(port=server.port) as tryll:
        agent = await tryll.create_agent(m.GraphDescription((m.NodeDescription("talk", talk),), "talk"),
                                         default_model="mock")  # fmt: skip
        lines: list[m.NodeEvent] = []
        agent.on("line", lines.append)
        async with agent.stream("Hello") as reply:
            pieces = [piece async for piece in reply]
        assert pieces == ["Anna: You said: Hello", "\nBert: You said: Hello"]
        assert [(pair.key, pair.value) for pair in lines[1].kv_pairs] == [
            ("speaker", "Bert"), ("text", "You said: Hello"),
        ]  # fmt: skip
        with pytest.raises(TryllError) as refused:
            await agent.change_some("talk", characters=characters[:1])
        assert refused.value.code == 3006
        with pytest.raises(TryllError) as refused:
            await agent.change_some("talk", max_lines=65)
        assert refused.value.code == 3007
