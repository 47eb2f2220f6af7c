"""Judges of tool calls: their ids, what is in them, and how they end."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from typing import Any

from trunkline.conform.acp.lines import messages
from trunkline.conform.acp.subject import PERMISSION, UPDATE, is_response
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.updates import bad_block
from trunkline.conform.acp.vocabulary import FINAL_STATUSES, TOOL_CALL, TOOL_CALL_UPDATE, TOOL_KINDS, TOOL_STATUSES
from trunkline.conform.expect import short
from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record

_NONE = "the agent used no tool; the prompt `write` must make it use one"
_NO_DIFF = "the agent showed no diff"

#: What tells of a call: an update of either kind, or the request for a permission.
_Told = tuple[str, str, dict[str, Any]]


def told(record: Record) -> Iterator[_Told]:
    """What is told of tool calls, in order: the session, what tells it, and the call."""
    return (found for message in messages(record) if (found := _told_in(message)))


def _told_in(message: dict[str, Any]) -> _Told | None:
    params = message.get("params")
    if not isinstance(params, dict):
        return None
    session, update, call = str(params.get("sessionId")), params.get("update"), params.get("toolCall")
    if message.get("method") == PERMISSION and isinstance(call, dict):
        return session, PERMISSION, call
    if message.get("method") == UPDATE and isinstance(update, dict):
        kind = update.get("sessionUpdate")
        return (session, str(kind), update) if kind in (TOOL_CALL, TOOL_CALL_UPDATE) else None
    return None


def _items(call: dict[str, Any], name: str) -> list[Any]:
    found = call.get(name)
    return found if isinstance(found, list) else []


@SUITE.judge("acp.tool.shape", "MUST", "Tool Calls", _NONE)
def calls_have_a_shape(record: Record) -> Judgement:
    """A `tool_call` has a `toolCallId` and a `title`; kinds and statuses are those of the schema."""
    found = list(told(record))
    for _, what, call in found:
        names = ("toolCallId", "title") if what == TOOL_CALL else ("toolCallId",)
        missing = [name for name in names if not isinstance(call.get(name), str)]
        known = call.get("kind") in TOOL_KINDS | {None} and call.get("status") in TOOL_STATUSES | {None}
        if missing or not known:
            return Judgement(len(found), f"the tool call {short(call)} is not as the schema has them")
    return Judgement(len(found))


@SUITE.judge("acp.tool.known", "MUST", "Tool Calls", _NONE)
def updates_are_about_calls(record: Record) -> Judgement:
    """A `tool_call_update` is about a call that was told before, in the same session."""
    known: set[tuple[str, Any]] = set()
    count = 0
    for session, what, call in told(record):
        count += what == TOOL_CALL_UPDATE
        id = str(call.get("toolCallId"))
        if what == TOOL_CALL_UPDATE and (session, id) not in known:
            return Judgement(count, f"the update {short(call)} is about a call that nobody told of")
        known.add((session, id))
    return Judgement(count)


@SUITE.judge("acp.tool.unique", "SHOULD", "Tool Calls", _NONE)
def calls_are_told_once(record: Record) -> Judgement:
    """A call is told once by `tool_call`; what changes comes in updates."""
    calls = [(session, str(call.get("toolCallId"))) for session, what, call in told(record) if what == TOOL_CALL]
    if _loaded(record):
        return Judgement(0)
    twice = [id for place, (session, id) in enumerate(calls) if (session, id) in calls[:place]]
    return Judgement(len(calls), f"the call {short(twice[0])} was told twice" if twice else None)


def _loaded(record: Record) -> bool:
    """Whether the history of a session was told again."""
    return any(
        entry.who == "host" and isinstance(entry.data, dict) and entry.data.get("method") == "session/load"
        for entry in record.entries
    )


@SUITE.judge("acp.tool.ends", "SHOULD", "Tool Calls", _NONE)
def calls_end(record: Record) -> Judgement:
    """When a turn is over, each of its calls is `completed` or `failed`, unless it was cancelled."""
    turns: dict[str, Any] = {}
    statuses: dict[tuple[str, str], Any] = {}
    count = 0
    for entry in record.entries:
        data = entry.data if isinstance(entry.data, dict) else {}
        params = data.get("params")
        if entry.who == "host" and data.get("method") == "session/prompt" and isinstance(params, dict):
            session = str(params.get("sessionId"))
            turns[session] = data.get("id")
            statuses = {key: status for key, status in statuses.items() if key[0] != session}
        elif entry.who == "agent" and is_response(data):
            for session in [each for each, id in turns.items() if id == data.get("id")]:
                calls = {key: status for key, status in statuses.items() if key[0] == session}
                count += len(calls)
                if (problem := _unended(calls)) and _ended_by_itself(data):
                    return Judgement(count, problem)
        elif entry.who == "agent" and (found := _told_in(data)) and found[1] != PERMISSION:
            key = (found[0], str(found[2].get("toolCallId")))
            statuses[key] = found[2].get("status") or statuses.get(key)
    return Judgement(count)


def _unended(calls: dict[tuple[str, str], Any]) -> str | None:
    left = [(id, status) for (_, id), status in calls.items() if status not in FINAL_STATUSES]
    return f"the call {short(left[0][0])} is {short(left[0][1])} although its turn is over" if left else None


def _ended_by_itself(response: dict[str, Any]) -> bool:
    result = response.get("result")
    return isinstance(result, dict) and result.get("stopReason") == "end_turn"


@SUITE.judge("acp.tool.final", "SHOULD", "Tool Calls", _NONE)
def ends_are_final(record: Record) -> Judgement:
    """A call that is `completed` or `failed` stays so."""
    if _loaded(record):
        return Judgement(0)
    statuses: dict[tuple[str, str], Any] = {}
    count = 0
    for session, _, call in told(record):
        key, status = (session, str(call.get("toolCallId"))), call.get("status")
        if statuses.get(key) in FINAL_STATUSES and status not in (None, statuses[key]):
            return Judgement(count, f"the call {short(key[1])} was {statuses[key]}, and is {short(status)} now")
        statuses[key] = status or statuses.get(key)
        count += status in FINAL_STATUSES
    return Judgement(count)


@SUITE.judge("acp.tool.content", "MUST", "Tool Calls", "no tool call had a content")
def calls_have_contents(record: Record) -> Judgement:
    """The contents of a call are content blocks, diffs and terminals, with what each of them needs."""
    items = [item for _, _, call in told(record) for item in _items(call, "content")]
    for item in items:
        if problem := _bad_item(item):
            return Judgement(len(items), problem)
    return Judgement(len(items))


def _bad_item(item: Any) -> str | None:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "content":
        return bad_block(item.get("content"))
    if kind == "terminal" and isinstance(item.get("terminalId"), str):
        return None
    return None if kind == "diff" else f"the content {short(item)} of a call is of no known type"


def _diffs(record: Record) -> list[dict[str, Any]]:
    found = [item for _, _, call in told(record) for item in _items(call, "content")]
    return [item for item in found if isinstance(item, dict) and item.get("type") == "diff"]


@SUITE.judge("acp.tool.diff", "MUST", "Tool Calls", _NO_DIFF)
def diffs_have_both_texts(record: Record) -> Judgement:
    """A diff has a `path` and the `newText`; its `oldText` is a string, or null for a new file."""
    found = _diffs(record)
    for diff in found:
        fine = isinstance(diff.get("path"), str) and isinstance(diff.get("newText"), str)
        if not fine or not isinstance(diff.get("oldText"), str | None):
            return Judgement(len(found), f"the diff {short(diff)} lacks something")
    return Judgement(len(found))


@SUITE.judge("acp.tool.paths", "MUST", "Overview", "the agent named no file")
def paths_are_absolute(record: Record) -> Judgement:
    """The paths of diffs and locations are absolute."""
    locations = [each for _, _, call in told(record) for each in _items(call, "locations")]
    paths = [each.get("path") for each in (*_diffs(record), *locations) if isinstance(each, dict)]
    wrong = [path for path in paths if not isinstance(path, str) or not _is_absolute(path)]
    return Judgement(len(paths), f"the path {short(wrong[0])} is not absolute" if wrong else None)


def _is_absolute(path: str) -> bool:
    # An agent may run on another system than the kit.
    return os.path.isabs(path) or path[1:3] in (":\\", ":/")


@SUITE.judge("acp.tool.lines", "MUST", "Tool Calls", "the agent named no line")
def lines_are_numbers(record: Record) -> Judgement:
    """The `line` of a location is an integer, not negative."""
    found = [each for _, _, call in told(record) for each in _items(call, "locations") if isinstance(each, dict)]
    lines = [each["line"] for each in found if each.get("line") is not None]
    wrong = [line for line in lines if not isinstance(line, int) or isinstance(line, bool) or line < 0]
    return Judgement(len(lines), f"the line {short(wrong[0])} is not a line number" if wrong else None)
