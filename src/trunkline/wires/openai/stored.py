"""Responses and conversations that were before, read from the logs of their sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from trunkline.core.events import Envelope, Event, Gap, TurnStarted, UserMessage
from trunkline.core.faults import SessionNotFound
from trunkline.core.keeper import KnownSession, SessionKeeper
from trunkline.wires.openai.codec import split_id, split_item_id
from trunkline.wires.openai.cutting import AskedCuts
from trunkline.wires.openai.errors import OpenAIRefused, bad
from trunkline.wires.openai.messages import REFERENCE, EarlierMessage
from trunkline.wires.openai.responses import echoed
from trunkline.wires.openai.responses_writer import ResponsesWriter
from trunkline.wires.openai.telling import TurnTeller
from trunkline.wires.openai.turn import AnsweringTurn

#: How long to wait for the end of a turn that was stopped: it ends within one second.
STOP_SECONDS = 3.0
#: The most items in one list, as OpenAI has it.
MOST_ITEMS = 100

_MILLISECONDS = 1000
_CONFLICT, _NOT_FOUND = 409, 404
_NO_CUTS = AskedCuts()


class StoredTurn:
    """What the log has of one turn."""

    def __init__(self, session: str, number: int, agent: str, cuts: AskedCuts) -> None:
        self.session = session
        self._cuts = cuts
        self.number = number
        self.agent = agent
        self.events: list[Event] = []
        self.message: UserMessage | None = None
        self.at = self.ended_at = 0.0
        self.turns = 0
        """How many turns the session has."""

    def read(self, records: Iterator[Envelope | Gap]) -> None:
        """Find it among all that happened. To be called in a thread."""
        for item in records:
            if isinstance(item, Gap) or item.event.private:
                continue
            self.turns = max(self.turns, item.turn)
            if item.turn != self.number:
                continue
            if isinstance(item.event, TurnStarted):
                self.message, self.at = item.event.message, item.at
            self.ended_at = item.at
            self.events.append(item.event)

    def members(self, waiting: str = "queued") -> dict[str, Any]:
        """As a response, `waiting` if it has not begun. Of its request, only what was said is kept."""
        writer = ResponsesWriter(
            self.agent,
            self.session,
            self.number,
            int(self.at),
            echoed=echoed({}),
            streams=False,
            clock=lambda: self.ended_at,
        )
        teller = TurnTeller(writer, self._cuts.cutter(writer.id))
        for event in self.events:
            teller.tell(event)
        if not self.events:
            writer.status = waiting
        return writer.whole()


def no_response(id: str) -> OpenAIRefused:
    """There is no response of that id."""
    return OpenAIRefused(_NOT_FOUND, f"Response with id '{id[:80]}' not found.", param="response_id")


def no_conversation(id: str) -> OpenAIRefused:
    """There is no session of that id."""
    return OpenAIRefused(_NOT_FOUND, f"Conversation with id '{id[:80]}' not found.", param="conversation_id")


async def find(keeper: SessionKeeper, id: str, cuts: AskedCuts = _NO_CUTS) -> StoredTurn:
    """The turn that a response's id names; one that waits for its turn has no events yet.

    Raises:
        OpenAIRefused: there is none.
    """
    place = split_id(id)
    known = await keeper.known(place[0]) if place is not None else None
    if place is None or known is None:
        raise no_response(id)
    found = StoredTurn(*place, known.agent, cuts)
    try:
        records = await keeper.read(place[0])
        await asyncio.to_thread(found.read, records)
        if not found.events and not await _waits(keeper, *place):
            raise no_response(id)
    except SessionNotFound:
        raise no_response(id) from None
    return found


async def _waits(keeper: SessionKeeper, session: str, number: int) -> bool:
    """Whether a message waits for that turn."""
    seat = await keeper.join(session)
    try:
        return 0 < seat.session.turn < number <= seat.session.latest
    finally:
        await asyncio.shield(seat.leave())


async def dereferenced(keeper: SessionKeeper, before: Sequence[EarlierMessage]) -> tuple[EarlierMessage, ...]:
    """The messages, with the items that some of them only refer to. Reasoning is not told again.

    Raises:
        OpenAIRefused: there is no such item.
    """
    found: list[EarlierMessage] = []
    known: dict[str, Sequence[Mapping[str, Any]]] = {}
    for message in before:
        if message.role != REFERENCE:
            found.append(message)
            continue
        response, index = split_item_id(message.text) or ("", 0)
        if response not in known:
            try:
                known[response] = (await find(keeper, response)).members()["output"]
            except OpenAIRefused:
                known[response] = ()
        item = next((each for each in known[response][index : index + 1] if each["id"] == message.text), None)
        if item is None:
            raise bad("input", f"Item with id '{message.text[:80]}' not found.", "item_not_found")
        if item["type"] == "message":
            found.append(EarlierMessage("assistant", "".join(part["text"] for part in item["content"])))
        elif item["type"] == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            found.append(EarlierMessage("assistant", "", (call,)))
    return tuple(found)


async def cancel(keeper: SessionKeeper, id: str, cuts: AskedCuts) -> dict[str, Any]:
    """Stop the turn that a response's id names, whether it runs or waits.

    Raises:
        OpenAIRefused: there is none, or it has ended.
    """
    place = split_id(id)
    if place is None:
        raise no_response(id)
    session, number = place
    try:
        seat = await keeper.join(session)
    except SessionNotFound:
        raise no_response(id) from None
    turn = AnsweringTurn(seat, shared=True)
    turn.number = number
    try:
        if 0 < seat.session.turn <= number <= seat.session.latest:
            writer = ResponsesWriter(seat.agent, session, number, 0, echoed={}, streams=False, clock=lambda: 0)
            turn.begin(TurnTeller(writer))
            seat.stop(number)
            # One that waits is withdrawn; its end is told when its turn would have come.
            if seat.session.turn == number:
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOP_SECONDS):
                        await turn.over.wait()
    finally:
        turn.number = 0
        await asyncio.shield(turn.leave())
    found = (await find(keeper, id, cuts)).members(waiting="cancelled")
    if found["status"] in ("completed", "failed", "incomplete"):
        raise bad("response_id", "That response is complete: it cannot be cancelled.", "response_not_cancellable")
    return found


async def delete(keeper: SessionKeeper, id: str) -> Mapping[str, Any]:
    """Forget a response, and with it its session, which must have no other.

    Raises:
        OpenAIRefused: there is none, or there are others.
    """
    found = await find(keeper, id)
    if found.turns > 1:
        told = f"It is one of {found.turns} in the session `{found.session}`, which can only be forgotten as a whole."
        raise OpenAIRefused(_CONFLICT, f"{told} `DELETE /v1/conversations/{found.session}` does that.")
    await keeper.remove(found.session)
    return {"id": id, "object": "response", "deleted": True}


async def input_items(keeper: SessionKeeper, id: str) -> Mapping[str, Any]:
    """What a response answers."""
    found = await find(keeper, id)
    return listed([_user_item(found.message, found.number, found.session)] if found.message is not None else [])


async def conversation_items(keeper: SessionKeeper, session: str, cuts: AskedCuts) -> Mapping[str, Any]:
    """What was said in a session, newest first, as far as one list goes."""
    try:
        records = await keeper.read(session)
    except SessionNotFound:
        raise no_conversation(session) from None
    known = await keeper.known(session)
    agent = known.agent if known is not None else ""

    def read() -> list[Mapping[str, Any]]:
        turns: dict[int, StoredTurn] = {}
        for item in records:
            if isinstance(item, Envelope) and item.turn:
                turn = turns.setdefault(item.turn, StoredTurn(session, item.turn, agent, cuts))
                turn.read(iter((item,)))
                if len(turns) > MOST_ITEMS:
                    del turns[min(turns)]
        found: list[Mapping[str, Any]] = []
        for number, turn in turns.items():
            if turn.message is not None:
                found.append(_user_item(turn.message, number, session))
            found += [item for item in turn.members()["output"] if item["type"] == "message"]
        return found[::-1]

    items = await asyncio.to_thread(read)
    return listed(items[:MOST_ITEMS], has_more=len(items) > MOST_ITEMS)


def listed(items: list[Mapping[str, Any]], *, has_more: bool = False) -> Mapping[str, Any]:
    """A list as OpenAI gives it."""
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {"first_id": None, "last_id": None}
    return {"object": "list", "data": items, **ends, "has_more": has_more}


def conversation(known: KnownSession) -> Mapping[str, Any]:
    """A session as OpenAI tells it."""
    created = known.created_at // _MILLISECONDS
    return {"id": known.id, "object": "conversation", "created_at": created, "metadata": {}}


def _user_item(message: UserMessage, turn: int, session: str) -> Mapping[str, Any]:
    content = [{"type": "input_text", "text": message.text}]
    id = f"msg_in_{turn}_{session}"
    return {"id": id, "type": "message", "role": "user", "status": "completed", "content": content}
