"""Checks of the transport, most of them judges: what every line of every conversation must be like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trunkline.base import jsontext
from trunkline.conform.acp.scenes import new_params, ready
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import is_response
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.expect import short
from trunkline.conform.kit import Broken, Judgement
from trunkline.conform.record import Record, RecordEntry

#: Bytes that are written at a time where a message comes in pieces, and the pause between them.
_PIECE_BYTES = 20
_PIECE_SECONDS = 0.02


def said(record: Record) -> list[RecordEntry]:
    """The agent's lines. What it was writing when the kit ended it is none of them."""
    lines = [entry for entry in record.entries if entry.who == "agent"]
    return lines[:-1] if record.was_killed and record.unfinished else lines


def messages(record: Record) -> Iterator[dict[str, Any]]:
    """The agent's lines that are messages."""
    return (entry.data for entry in said(record) if isinstance(entry.data, dict))


def each_message(record: Record, problem: Callable[[dict[str, Any]], str | None]) -> Judgement:
    """Look at all messages for the first with a problem."""
    count = 0
    for message in messages(record):
        count += 1
        if found := problem(message):
            return Judgement(count, found)
    return Judgement(count)


@SUITE.judge("acp.line.object", "MUST", "Transports")
def only_messages_are_written(record: Record) -> Judgement:
    """Standard output holds nothing but messages: each line is one JSON object, in UTF-8."""
    lines = said(record)
    for entry in lines:
        if not isinstance(entry.data, dict):
            return Judgement(len(lines), f"the line {short(entry.line)} is not a message")
    return Judgement(len(lines))


@SUITE.judge("acp.line.ended", "MUST", "Transports")
def messages_end_with_a_line_feed(record: Record) -> Judgement:
    """Every message ends with a line feed, the last one, too."""
    if record.was_killed:
        return Judgement(0)
    cut = record.unfinished
    return Judgement(1, f"the output ends with {short(cut)}, without a line feed" if cut else None)


@SUITE.check("acp.line.pieces", "MUST", "Transports")
async def messages_may_come_in_pieces(stage: Stage) -> None:
    """A message that arrives in pieces is one message."""
    agent = await ready(stage)
    request = {"jsonrpc": "2.0", "id": "conform-pieces", "method": "session/new", "params": new_params(stage)}
    line = jsontext.dumps(request) + b"\n"
    agent.process.record.add("host", line.removesuffix(b"\n"), request)
    for start in range(0, len(line), _PIECE_BYTES):
        agent.process.write(line[start : start + _PIECE_BYTES])
        await agent.until(lambda: False, _PIECE_SECONDS)
    if not await agent.until(lambda: agent.answer_to(request["id"]) is not None, stage.target.timeout):
        raise Broken(f"`session/new` in pieces was not answered {await agent.how_long(stage.target.timeout)}")


@SUITE.check("acp.line.several", "MUST", "Transports")
async def several_may_come_at_once(stage: Stage) -> None:
    """Several messages that arrive at once are answered each."""
    agent = await ready(stage)
    ids = ["conform-a", "conform-b", "conform-c"]
    requests = [{"jsonrpc": "2.0", "id": id, "method": "session/new", "params": new_params(stage)} for id in ids]
    agent.write(b"".join(jsontext.dumps(request) + b"\n" for request in requests))
    if not await agent.until(lambda: all(agent.answer_to(id) for id in ids), stage.target.timeout):
        missing = [id for id in ids if agent.answer_to(id) is None]
        raise Broken(f"of three requests in one write, {short(missing)} got no answer")


@SUITE.judge("acp.rpc.version", "MUST", "JSON-RPC")
def messages_say_their_version(record: Record) -> Judgement:
    """Every message has the member `jsonrpc` with the value "2.0"."""
    return each_message(record, lambda each: None if each.get("jsonrpc") == "2.0" else f"{short(each)} does not say so")


@SUITE.judge("acp.rpc.shape", "MUST", "JSON-RPC")
def messages_have_a_shape(record: Record) -> Judgement:
    """Every message is a request, a notification, or a response with an `id` and either a `result` or an `error`."""
    return each_message(record, _misshaped)


def _misshaped(message: dict[str, Any]) -> str | None:
    if "method" in message:
        fine = isinstance(message["method"], str) and isinstance(message.get("params", {}), dict | list)
        fine = fine and isinstance(message.get("id", 0), int | str) and "result" not in message
    else:
        fine = "id" in message and ("result" in message) != ("error" in message)
    return None if fine else f"{short(message)} is neither a request nor a notification nor a response"


@SUITE.judge("acp.rpc.errors", "MUST", "JSON-RPC", "the agent sent no error")
def errors_have_a_shape(record: Record) -> Judgement:
    """An error has a `code`, which is an integer, and a `message`, which is a string."""
    errors = [each["error"] for each in messages(record) if "error" in each]
    for error in errors:
        fine = isinstance(error, dict) and isinstance(error.get("message"), str)
        if not fine or not isinstance(error.get("code"), int) or isinstance(error.get("code"), bool):
            return Judgement(len(errors), f"the error {short(error)} lacks a `code` or a `message`")
    return Judgement(len(errors))


@SUITE.judge("acp.rpc.once", "MUST", "JSON-RPC")
def requests_are_answered_once(record: Record) -> Judgement:
    """A response belongs to a request, which is answered once."""
    open_ids: list[Any] = []
    count = 0
    for entry in record.entries:
        if not isinstance(entry.data, dict):
            continue
        if entry.who == "host" and "method" in entry.data and "id" in entry.data:
            open_ids.append(entry.data["id"])
        elif entry.who == "agent" and is_response(entry.data) and entry.data.get("id") is not None:
            count += 1
            id = entry.data["id"]
            if not any(type(each) is type(id) and each == id for each in open_ids):
                return Judgement(count, f"{short(entry.data)} answers no request, or one that was answered")
            open_ids.remove(id)
    return Judgement(count)
