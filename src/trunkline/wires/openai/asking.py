"""From a request to a turn: which session, what its agent is told first, and the message itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

from trunkline.core.agent import AddHistory, SetOptions
from trunkline.core.events import Envelope, Gap, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError, Fault, SessionNotFound, Unsupported
from trunkline.core.ids import new_id
from trunkline.core.keeper import Seat, SessionKeeper
from trunkline.wires.openai import files
from trunkline.wires.openai.codec import split_id
from trunkline.wires.openai.content import transcript
from trunkline.wires.openai.errors import OpenAIRefused, bad, of_failed_turn, of_fault, unsupported
from trunkline.wires.openai.messages import REFERENCE, AskedTurn
from trunkline.wires.openai.stored import dereferenced
from trunkline.wires.openai.turn import AnsweringTurn

logger = logging.getLogger(__name__)

#: How the names of plain models begin.
MODEL = "model:"
#: What they take, and what is put back where a request does not say it.
_OPTIONS = ("instructions", "tools", "tool_choice", "stop", "max_tokens", "temperature", "top_p", "seed", "schema")

NOT_TOLD = "This agent cannot be given instructions or an earlier conversation: it hears the last message only."
_CONFLICT, _GONE = 409, 410


def is_model(name: str) -> bool:
    """Whether it is a plain model, which takes a client's own tools and the ways to sample."""
    return name.startswith(MODEL)


async def ask(keeper: SessionKeeper, asked: AskedTurn) -> AnsweringTurn:
    """Have a message answered. The turn is to be left by the caller.

    Raises:
        OpenAIRefused, Fault: it is not.
    """
    _check(asked)
    if any(message.role == REFERENCE for message in asked.before):
        asked = asked.replace(before=await dereferenced(keeper, asked.before))
    turn: AnsweringTurn | None = None

    def removed() -> None:
        if turn is not None:
            turn.end(OpenAIRefused(_GONE, "The session was removed.", code="session_removed"))

    brought = await files.bring(asked.files)
    try:
        seat = await _take_seat(keeper, asked, removed)
        turn = AnsweringTurn(seat, shared=keeper.is_shared)
        message_id = new_id()
        await _tell_first(turn, asked, message_id)
        paths = tuple([await seat.keep_file(name, data) for name, data in brought])
        await turn.submit(UserMessage(asked.text or "", paths, id=message_id, sender=seat.client or None))
    except BaseException:
        if turn is not None:
            await asyncio.shield(turn.leave())
        raise
    return turn


def _check(asked: AskedTurn) -> None:
    """See that agents are asked for nothing that they cannot do.

    Raises:
        OpenAIRefused: they are.
    """
    if is_model(asked.model):
        return
    if asked.options.get("tools"):
        told = f"`{asked.model[:80]}` is an agent with tools of its own, and takes none from clients."
        raise unsupported("tools", f"{told} Leave `tools` out, or use a plain model (`{MODEL}NAME`).")
    if asked.options.get("schema") is not None:
        param = "response_format" if asked.param == "messages" else "text.format"
        told = f"`{asked.model[:80]}` is an agent, and answers in text."
        raise unsupported(param, f"{told} Leave `{param}` out, or use a plain model (`{MODEL}NAME`).")
    if asked.text is None:
        told = f"`{asked.param}` ends with the result of a tool, and agents use tools of their own."
        raise bad(asked.param, f"{told} It must end with a message of the user.")


async def _take_seat(keeper: SessionKeeper, asked: AskedTurn, removed: Any) -> Seat:
    if asked.previous is not None:
        return await _following(keeper, asked, asked.previous, removed)
    try:
        if asked.session is not None:
            return await keeper.open(asked.model, asked.session, removed=removed)
        return await keeper.open(asked.model, passing=asked.is_passing, removed=removed)
    except ConfigError as fault:
        # Of a session that the client did not name, nothing is the client's fault.
        if asked.session is None and fault.kind == "config":
            raise of_failed_turn(fault) from None
        raise


async def _following(keeper: SessionKeeper, asked: AskedTurn, previous: str, removed: Any) -> Seat:
    """The session of an earlier response, or, if others have followed it already, a new one that begins with it."""
    unknown = bad(
        "previous_response_id",
        f"Previous response with id '{previous[:80]}' not found.",
        "previous_response_not_found",
    )
    found = split_id(previous)
    if found is None:
        raise unknown
    session, number = found
    try:
        seat = await keeper.join(session, removed=removed)
    except SessionNotFound:
        raise unknown from None
    try:
        if seat.agent != asked.model:
            told = f"That response is of the model `{seat.agent}`, and this request asks `{asked.model[:80]}`."
            raise OpenAIRefused(_CONFLICT, told, param="previous_response_id", code="model_mismatch")
        latest = seat.session.latest
        if number > latest:
            raise unknown
    except BaseException:
        await asyncio.shield(seat.leave())
        raise
    if number == latest:
        return seat
    try:
        await seat.session.settled()
        records = await keeper.read(session)
        at = await asyncio.to_thread(_end_of, records, number)
        if at is None:
            told = "That response is not complete yet, and others wait behind it already."
            raise OpenAIRefused(_CONFLICT, told, param="previous_response_id", code="response_in_progress")
        forked = await keeper.fork(session, at, to_ask=True)
    finally:
        await asyncio.shield(seat.leave())
    return await keeper.join(forked.id, removed=removed)


def _end_of(records: Iterator[Envelope | Gap], turn: int) -> int | None:
    """The number of the event that ends a turn."""
    for item in records:
        if isinstance(item, Envelope) and item.turn == turn and isinstance(item.event, TurnEnded):
            return item.seq
    return None


async def _tell_first(turn: AnsweringTurn, asked: AskedTurn, message_id: str) -> None:
    """What comes before the message: the earlier conversation, where the session does not know it, and options.

    Raises:
        Fault: the agent cannot take it.
    """
    session = turn.seat.session
    is_new = session.latest == 0
    if is_model(asked.model):
        try:
            await turn.seat.configure(SetOptions(_model_options(asked, is_new=is_new), message_id))
        except ConfigError as fault:
            raise bad(_param_of(fault), str(fault)) from None
        return
    before = transcript(asked.instructions, asked.before) if is_new else ""
    if not before:
        return
    try:
        await turn.seat.configure(AddHistory(before))
    except Unsupported:
        turn.notes.append(NOT_TOLD)


def _model_options(asked: AskedTurn, *, is_new: bool) -> dict[str, Any]:
    given = {**asked.options, "max_tokens": asked.max_tokens}
    given["instructions"] = asked.instructions or None
    given["stop"] = list(asked.stop) or None
    options: dict[str, Any] = {name: given.get(name) for name in _OPTIONS}
    if is_new:
        options["messages"] = [message.members for message in asked.before]
    elif asked.text is None:
        results = [message for message in asked.before if message.role == "tool"]
        options["tool_outputs"] = [{"id": each.tool_call_id, "output": each.text} for each in results]
    return options


def _param_of(fault: Fault) -> str | None:
    """The option that a model refuses: its name comes first in what it says."""
    first = fault.message.partition(":")[0].strip("`")
    return first if first in (*_OPTIONS, "messages", "tool_outputs") else None


def refused_of(error: Exception) -> OpenAIRefused:
    """What a client is told of a fault before there is a turn."""
    return error if isinstance(error, OpenAIRefused) else of_fault(error) if isinstance(error, Fault) else _internal()


def _internal() -> OpenAIRefused:
    return OpenAIRefused(500, "Internal error.", code="internal")
