"""Conversations that are saved and restored, and what that costs everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.loop import until
from tests.support.tryll_served import Peer, Served
from trunkline.agents.graph.dialog import MAX_CHARS, MAX_EXCHANGES
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, encode
from trunkline.wires.tryll.drive.connection import MAX_PARTS
from trunkline.wires.tryll.fitting import joined
from trunkline.wires.tryll.serve.connection import HIGH_WATER, ServerConnection
from trunkline.wires.tryll.serve.history import PART_CHARACTERS, PART_ENTRIES, exchanges_of, responses

WIDE = "\N{GRINNING FACE}"
SHORT = [("q", "a")] * MAX_EXCHANGES


def uneven() -> Iterator[tuple[str, str]]:
    """Texts that end at, before and after the end of a part, and between them some without any."""
    for length in (0, 1, PART_CHARACTERS - 1, PART_CHARACTERS, PART_CHARACTERS + 1, 5 * PART_CHARACTERS // 2):
        yield "x" * length, ""
        yield "", "y" * length
    yield from SHORT[: PART_ENTRIES // 2]


@pytest.mark.parametrize(
    "exchanges",
    [
        [],
        [("hello", "hi")],
        SHORT,
        [(WIDE * (MAX_CHARS // 2), WIDE * (MAX_CHARS // 2))],
        # The most parts: half of it is many short ones, and the other half long.
        [*SHORT[1:], (WIDE * (MAX_CHARS // 2), WIDE * (MAX_CHARS // 2 - 2 * MAX_EXCHANGES))],
        list(uneven()),
    ],
    ids=["nothing", "one", "many", "wide", "many and wide", "uneven"],
)
def test_any_conversation_comes_in_parts_that_fit_and_not_in_too_many(exchanges: list[tuple[str, str]]) -> None:
    found = list(responses(9, 3, exchanges))
    assert [part.more for part in found] == [True] * (len(found) - 1) + [False]
    assert {(part.request_id, part.agent_id) for part in found} == {(9, 3)}
    assert all(len(encode(part)) <= MAX_FRAME for part in found)
    assert all(part.entries for part in found[:-1])
    assert len(found) <= MAX_PARTS
    assert exchanges_of(joined(entry for part in found for entry in part.entries)) == exchanges


@pytest.fixture
async def talker(server: Served) -> AsyncIterator[tuple[Peer, int]]:
    """A client whose agent has a conversation of very many very short exchanges."""
    async with server.peer() as peer:
        agent = await peer.agent()
        (connection,) = server.server.connections
        assert connection.session is not None
        connection.session.served(agent).agent.restore(SHORT, False)
        yield peer, agent


async def save(peer: Peer, number: int) -> list[m.HistoryEntry]:
    found: list[m.HistoryEntry] = []
    more = True
    while more:
        part = await peer.get(m.SaveHistoryResponse)
        assert part.request_id == number
        found += part.entries
        more = part.more
    return found


async def test_whoever_saves_long_conversations_leaves_time_for_others(
    server: Served, talker: tuple[Peer, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, agent = talker
    said: list[type[m.Message]] = []
    say = ServerConnection.say

    def saying(connection: ServerConnection, message: m.Message) -> None:
        said.append(type(message))
        say(connection, message)

    async with server.peer() as other:
        monkeypatch.setattr(ServerConnection, "say", saying)
        peer.say(m.SaveHistoryRequest(1, agent), m.SaveHistoryRequest(2, agent), m.HealthRequest(3))
        first = await peer.get(m.SaveHistoryResponse)
        other.say(m.HealthRequest(4))
        await other.get(m.HealthResponse)
        # Neither the second conversation nor all of the first was on its way.
        assert said.count(m.SaveHistoryResponse) < 2 * MAX_EXCHANGES // PART_ENTRIES
        # And all comes in its order.
        assert first.more
        assert len(first.entries) + len(await save(peer, 1)) == len(await save(peer, 2)) == 2 * MAX_EXCHANGES
        assert (await peer.get(m.HealthResponse)).request_id == 3


async def test_short_conversations_that_are_saved_often_leave_time_for_others(server: Served, peer: Peer) -> None:
    agent = await peer.agent()
    (connection,) = server.server.connections
    session = connection.session
    assert session is not None
    waits: list[bool] = []
    for number in (1, 2):
        session.handle(m.SaveHistoryRequest(number, agent), 60)
        # Nothing more is taken before others have had their turn.
        waits.append(session.crowded)
        await until(lambda: not session.crowded)
    assert waits == [True, True]
    assert await save(peer, 1) == await save(peer, 2) == []


async def test_a_conversation_that_is_saved_waits_for_its_reader(server: Served, peer: Peer) -> None:
    agent = await peer.agent()
    (connection,) = server.server.connections
    assert connection.session is not None
    # Far more than what the system holds for both of them.
    text = WIDE * (MAX_CHARS // 2)
    connection.session.served(agent).agent.restore([(text, text)], False)
    transport = peer.writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    peer.say(m.SaveHistoryRequest(1, agent))
    await until(lambda: connection.behind)
    for _ in range(2 * MAX_CHARS // PART_CHARACTERS):
        await asyncio.sleep(0)
    assert connection.transport.get_write_buffer_size() < HIGH_WATER + 2 * len(WIDE.encode()) * PART_CHARACTERS
    transport.resume_reading()
    assert exchanges_of(await save(peer, 1)) == [(text, text)]


async def test_a_client_that_goes_while_it_saves_is_gone(server: Served, talker: tuple[Peer, int]) -> None:
    peer, agent = talker
    peer.say(m.SaveHistoryRequest(1, agent))
    await peer.get(m.SaveHistoryResponse)
    peer.writer.transport.abort()
    await until(lambda: not server.server.connections)


async def test_what_is_added_to_a_long_conversation_makes_room_for_itself(talker: tuple[Peer, int]) -> None:
    peer, agent = talker
    more = (m.HistoryEntry("user", "x"), m.HistoryEntry("assistant", "y"))
    peer.say(*(m.RestoreHistoryRequest(number, agent, more, True) for number in range(1, 61)))
    for number in range(1, 61):
        assert (await peer.get(m.Ack)).request_id == number
    peer.say(m.SaveHistoryRequest(61, agent))
    found = await save(peer, 61)
    assert [entry.text for entry in found] == ["q", "a"] * (MAX_EXCHANGES - 60) + ["x", "y"] * 60
