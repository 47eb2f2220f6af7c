"""Conversations that are saved and restored: as the wire tells them, and as an agent has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.fitting import joined
from trunkline.wires.tryll.messages import HistoryEntry

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve.session import ClientSession


#: What one response has of a conversation. It takes two milliseconds to make, and always fits into a frame; the longest
#: conversation (4096 exchanges, 4 Mi characters) comes in fewer parts than our client takes.
PART_ENTRIES = 512
PART_CHARACTERS = 128 * 1024


def responses(request_id: int, agent_id: int, exchanges: Iterable[tuple[str, str]]) -> Iterator[m.SaveHistoryResponse]:
    """What was said and answered, one entry each; a text that goes on in the next part is several of one role."""
    part: list[HistoryEntry] = []
    room = PART_CHARACTERS
    for pair in exchanges:
        for role, text in zip(("user", "assistant"), pair, strict=True):
            rest = text
            while len(part) == PART_ENTRIES or len(rest) > room:
                if room and len(part) < PART_ENTRIES:
                    part.append(HistoryEntry(role, rest[:room]))
                    rest = rest[room:]
                yield m.SaveHistoryResponse(request_id, agent_id, tuple(part), True)
                part, room = [], PART_CHARACTERS
            part.append(HistoryEntry(role, rest))
            room -= len(rest)
    yield m.SaveHistoryResponse(request_id, agent_id, tuple(part))


def exchanges_of(entries: Sequence[HistoryEntry]) -> list[tuple[str, str]]:
    """The other way round. Neighbours of one role are one text: what is too long for a frame comes in pieces.

    Raises:
        TryllError: 3007, they are not user and assistant in turns. System prompts belong to the nodes.
    """
    said = joined(entries)
    for number, entry in enumerate(said):
        if entry.role != ("user", "assistant")[number % 2]:
            raise TryllError(
                3007, f"Message {number}: user and assistant speak in turns, and `{entry.role}` is not next."
            )
    if len(said) % 2:
        raise TryllError(3007, "The last message has no answer.")
    texts = [entry.text for entry in said]
    return list(zip(texts[::2], texts[1::2], strict=True))


def _save(session: ClientSession, request: m.SaveHistoryRequest, size: int) -> None:
    served = session.served(request.agent_id)
    parts = responses(request.request_id, served.id, served.agent.history())
    first = next(parts)
    session.say(first)

    async def say_rest(request: m.SaveHistoryRequest) -> None:
        for part in parts:
            await asyncio.sleep(0)
            while session.connection.behind:
                await session.connection.waiter()
            session.say(part)

    if first.more:
        session.ahead(say_rest, request, size)
    else:
        # Even so it is a hundred times as long as the question.
        session.pause()


def _restore(session: ClientSession, request: m.RestoreHistoryRequest, size: int) -> None:
    served = session.served(request.agent_id)
    if served.turn is not None:
        # Before anything that could be wrong with the conversation: asked again later, it may fit.
        raise TryllError(3004)
    if session.waits(served, request, size):
        return
    exchanges = exchanges_of(request.entries)
    more = sum(getsizeof(text) for exchange in exchanges for text in exchange)
    session.said.take(more - (0 if request.append else served.said), 3007)
    served.said = more + (served.said if request.append else 0)
    try:
        served.agent.restore(exchanges, request.append)
    finally:
        session.heard(served)
    session.say(m.Ack(request.request_id))


#: What is done for each kind of request, and the number for a failure that nobody foresaw.
HISTORY: dict[type[m.Message], tuple[Callable[[ClientSession, Any, int], None], int]] = {
    m.SaveHistoryRequest: (_save, 3003),
    m.RestoreHistoryRequest: (_restore, 3007),
}
