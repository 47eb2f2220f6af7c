"""What a session keeps: so much and no more, whichever way a client goes about it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.tryll_served import Peer, echo, served
from tests.wires.tryll import hostile
from trunkline.base.memory import weight
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import decode
from trunkline.wires.tryll.serve import session as serve_session

#: Room for one thing of `LARGE` characters, and not for two.
ROOM = 15_000
LARGE = "x" * 10_000


@pytest.fixture
async def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Peer]:
    monkeypatch.setattr(serve_session, "MAX_KEPT_BYTES", ROOM)
    monkeypatch.setattr(serve_session, "MAX_SAID_BYTES", ROOM)
    async with served(tmp_path) as server, server.peer() as made:
        yield made


LINES = m.CreateStringStorageRequest(3, "lines", (LARGE,))


async def test_a_session_keeps_no_more_than_its_share(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    await peer.ask(LINES, m.CreateStringStorageResponse)
    assert await peer.refused(LINES.replace(name="more")) == 7003
    assert await peer.refused(m.CreateAgentRequest(4, echo(system_prompt=LARGE), "any")) == 3003
    # What failed, and what is gone, does not count.
    await peer.ask(m.DestroyStringStorageRequest(5, "lines"), m.Ack)
    await peer.ask(LINES.replace(name="more"), m.CreateStringStorageResponse)
    monkeypatch.setattr(serve_session, "MAX_AGENTS", 1)
    first = await peer.agent()
    assert await peer.refused(m.CreateAgentRequest(6, echo(), "any")) == 3003
    await peer.ask(m.DestroyAgentRequest(7, first), m.Ack)
    assert await peer.agent() != first


async def test_a_storage_counts_as_long_as_an_agent_uses_it(peer: Peer) -> None:
    lines = m.GraphDescription((m.NodeDescription("a", m.CannedResponseParams(string_storage="lines")),), "a")
    guard = m.HumanMessageGuardrailParams(string_storage="lines")
    for graph in (lines, m.GraphDescription((m.NodeDescription("a", guard),), "a")):
        await peer.ask(LINES.replace(strings=("x" * 3000,) * 3), m.CreateStringStorageResponse)
        agent = (await peer.ask(m.CreateAgentRequest(4, graph), m.CreateAgentResponse)).agent_id
        peer.say(m.SendMessageRequest(5, agent, "hello"))
        await peer.turn()
        await peer.ask(m.DestroyStringStorageRequest(5, "lines"), m.Ack)
        assert await peer.refused(LINES) == 7003
        await peer.ask(m.DestroyAgentRequest(6, agent), m.Ack)
        await peer.ask(LINES, m.CreateStringStorageResponse)
        await peer.ask(m.DestroyStringStorageRequest(5, "lines"), m.Ack)


async def test_what_nodes_are_changed_to_counts(peer: Peer) -> None:
    nodes = tuple(
        m.NodeDescription(name, m.GenerateParams(default_exit=exit)) for name, exit in (("a", "b"), ("b", ""))
    )
    request = m.CreateAgentRequest(4, m.GraphDescription(nodes, "a"), "any")
    agent = (await peer.ask(request, m.CreateAgentResponse)).agent_id
    change = m.ChangeAgentParamRequest(5, agent, "a", m.GenerateParams(system_prompt=LARGE, default_exit="b"))
    for _ in range(3):
        await peer.ask(change, m.Ack)
    other = change.replace(node_name="b", params=m.GenerateParams(system_prompt=LARGE))
    assert await peer.refused(other) == 3007
    await peer.ask(change.replace(params=m.GenerateParams(default_exit="b")), m.Ack)
    # What failed does not count.
    assert await peer.refused(change.replace(node_name="c")) == 3005
    await peer.ask(other, m.Ack)
    assert await peer.refused(LINES) == 7003
    await peer.ask(m.DestroyAgentRequest(6, agent), m.Ack)
    await peer.ask(LINES, m.CreateStringStorageResponse)


async def test_vectors_count_beside_their_texts(peer: Peer) -> None:
    lore = m.CreateEmbeddedStringStorageRequest(3, "lore", strings=("a", "b", "c", "d", "e"), embedding_model="any")
    await peer.ask(lore, m.CreateEmbeddedStringStorageResponse)
    assert await peer.refused(lore.replace(name="more")) == 8003
    assert await peer.refused(m.DestroyEmbeddedStringStorageRequest(4, "more")) == 8001
    await peer.ask(m.DestroyEmbeddedStringStorageRequest(4, "lore"), m.Ack)
    await peer.ask(lore.replace(name="more"), m.CreateEmbeddedStringStorageResponse)


async def test_a_storage_that_is_refused_for_its_vectors_does_not_count(peer: Peer) -> None:
    lore = m.CreateEmbeddedStringStorageRequest(3, "lore", strings=("a", "b", "c", "d", "e"), embedding_model="any")
    await peer.ask(lore, m.CreateEmbeddedStringStorageResponse)
    # All the descriptions together would take what room there is beside it.
    more = lore.replace(name="more")
    for _ in range(ROOM // weight(more) + 1):
        assert await peer.refused(more) == 8003
    await peer.ask(m.DestroyEmbeddedStringStorageRequest(4, "lore"), m.Ack)
    await peer.ask(LINES, m.CreateStringStorageResponse)


async def test_records_count_with_their_fields_and_vectors_however_short_they_are(peer: Peer) -> None:
    given = {"fields": [{"name": "kind", "type": "set<string>", "default": []}], "records": [{"text": "a"}]}
    lore = m.CreateEmbeddedStringStorageRequest(3, "lore", embedding_model="any", records_json=json.dumps(given))
    count = 0
    while isinstance(await told(peer, lore.replace(name=f"{count}")), m.CreateEmbeddedStringStorageResponse):
        count += 1
    # A vector has 1536 bytes, and records and fields have some, too.
    assert 3 < count < ROOM // 2000
    # What is refused takes no name, and no room: what is gone makes some.
    for name in ("0", "1"):
        await peer.ask(m.DestroyEmbeddedStringStorageRequest(4, name), m.Ack)
    await peer.ask(lore, m.CreateEmbeddedStringStorageResponse)
    given["records"] = [{"text": "a", "metadata": {"kind": [f"{number}"]}} for number in range(3)]
    more = lore.replace(name="more", records_json=json.dumps(given))
    assert await peer.refused(more) == 8003
    assert await peer.refused(m.DestroyEmbeddedStringStorageRequest(4, "more")) == 8001


async def told(peer: Peer, request: m.Message) -> m.Message | None:
    peer.say(request)
    return await peer.hear()


async def test_a_file_under_many_names_does_not_count_and_its_names_do(peer: Peer, tmp_path: Path) -> None:
    (tmp_path / "root" / "lines.txt").write_text("x" * 2 * ROOM)
    request = m.CreateStringStorageRequest(3, "n" * 200, file_path="lines.txt")
    for _ in range(2):
        count = 0
        while isinstance(await told(peer, request.replace(name=f"{count:0200}")), m.CreateStringStorageResponse):
            count += 1
        assert 10 < count < ROOM // 250
        for number in range(count):
            await peer.ask(m.DestroyStringStorageRequest(4, f"{number:0200}"), m.Ack)


async def test_conversations_count_and_forget_their_beginnings(peer: Peer) -> None:
    first, second = await peer.agent(), await peer.agent()
    told = (m.HistoryEntry("user", "x" * 5000), m.HistoryEntry("assistant", "y" * 5000))
    await peer.ask(m.RestoreHistoryRequest(3, first, told), m.Ack)
    assert await peer.refused(m.RestoreHistoryRequest(3, first, told, True)) == 3007
    assert await peer.refused(m.RestoreHistoryRequest(3, second, told)) == 3007
    await peer.ask(m.RestoreHistoryRequest(3, first, told), m.Ack)
    # A turn is never refused.
    for text in ("1" * 2000, "2" * 3000):
        peer.say(m.SendMessageRequest(4, second, text))
        assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
        saved = await peer.ask(m.SaveHistoryRequest(5, second), m.SaveHistoryResponse)
        kept = [entry.text for entry in saved.entries if entry.role == "user"]
        assert kept == ([text] if text[0] == "1" else [])
    assert (await peer.ask(m.SaveHistoryRequest(5, first), m.SaveHistoryResponse)).entries == told
    await peer.ask(m.DestroyAgentRequest(6, first), m.Ack)
    await peer.ask(m.RestoreHistoryRequest(3, second, told), m.Ack)


async def test_an_agent_in_a_turn_is_busy_whatever_it_is_to_remember(peer: Peer) -> None:
    agent = await peer.agent("mock-slow")
    too_much = (m.HistoryEntry("user", "x" * ROOM), m.HistoryEntry("assistant", "y"))
    senseless = (m.HistoryEntry("narrator", "x"),)
    peer.say(m.SendMessageRequest(3, agent, "word " * 500))
    peer.say(*(m.RestoreHistoryRequest(4, agent, told) for told in (too_much, senseless, ())))
    peer.say(m.CancelTurnRequest(5, agent))
    heard: list[m.Message | None] = []
    while not isinstance(heard[-1] if heard else None, m.Ack):
        heard.append(await peer.hear())
    assert [each.code for each in heard if isinstance(each, m.ErrorResponse)] == [3004] * 3
    assert await peer.refused(m.RestoreHistoryRequest(4, agent, too_much)) == 3007


def test_texts_weigh_what_they_take_in_memory_and_each_once() -> None:
    shared = decode(hostile.same_string(1000, 60))
    assert 1000 < weight(shared) < 4000
    wide = m.CreateStringStorageRequest(1, "x", ("\N{GRINNING FACE}" + "x" * 999,))
    assert 4000 < weight(wide) < 5000


def test_what_was_made_of_a_message_weighs_what_it_takes_in_memory() -> None:
    default = frozenset(("x",))
    assert weight({"a": [default] * 100}) < 2000
    assert weight({"a": [frozenset((f"{number}",)) for number in range(100)]}) > 100 * 200
    assert weight([number + 0.5 for number in range(100)]) > 100 * 24
