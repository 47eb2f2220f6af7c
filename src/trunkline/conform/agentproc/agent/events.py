"""Judges of 0.4: what every event of every turn must be like."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trunkline.base import jsontext
from trunkline.conform.agentproc.agent.lines import lines_of
from trunkline.conform.agentproc.agent.suite import NEW
from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record
from trunkline.wires.agentproc.codec_ndjson import EVENT_TYPES, event_of

Event = dict[str, Any]

#: What the protocol allows as an id. A bridge may take fewer: ours refuses white space and colons as well.
_SESSION_ID = re.compile(r"(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]+")
#: The member of each event that carries its text.
_TEXTS = {"partial": "text", "result": "text", "error": "message"}


def _events(record: Record) -> list[Event]:
    return [event for line in lines_of(record) if (event := event_of(line)) is not None]


def _turn(record: Record) -> Event:
    """What the kit told the agent."""
    for entry in record.entries:
        if entry.who == "host" and entry.line.startswith(b"{"):
            turn: Event = jsontext.loads(entry.line)
            return turn
    return {}


def _each(record: Record, problem: Callable[[Event], str | None]) -> Judgement:
    """The first event that has a problem."""
    events = _events(record)
    found = next((wrong for event in events if (wrong := problem(event)) is not None), None)
    return Judgement(len(events), found)


@NEW.judge("ap4.line.event", "MUST", "0.4")
def lines_are_events(record: Record) -> Judgement:
    """Every line is a JSON object in UTF-8 whose `type` is defined by the protocol."""
    lines = [line for line in lines_of(record) if line.strip()]
    wrong = next((line for line in lines if event_of(line) is None), None)
    if wrong is None:
        return Judgement(len(lines))
    return Judgement(len(lines), f"{wrong[:80]!a} is not an event (there are {', '.join(sorted(EVENT_TYPES))})")


@NEW.judge("ap4.event.text", "MUST", "0.4")
def texts_are_texts(record: Record) -> Judgement:
    """`partial` and `result` have a string `text`, `error` a string `message`."""

    def problem(event: Event) -> str | None:
        member = _TEXTS.get(event["type"])
        if member is None or isinstance(event.get(member), str):
            return None
        return f"`{event['type']}.{member}` is {event.get(member)!a}"

    return _each(record, problem)


@NEW.judge("ap4.event.session", "MUST", "0.4")
def ids_are_ids(record: Record) -> Judgement:
    """`session_id`, if present, is a string that can be an id: no slash, no control character."""

    def problem(event: Event) -> str | None:
        value = event.get("session_id", "")
        fine = isinstance(value, str) and (value == "" or _SESSION_ID.fullmatch(value) is not None)
        return None if fine else f"`session_id` is {value!a}"

    return _each(record, problem)


@NEW.judge("ap4.event.same-session", "MUST", "0.4")
def ids_do_not_change(record: Record) -> Judgement:
    """All events of a turn carry the same `session_id`: a bridge takes the first."""
    events = _events(record)
    ids = {event["session_id"] for event in events if isinstance(event.get("session_id"), str) and event["session_id"]}
    return Judgement(len(events), f"the ids {', '.join(sorted(ids))!a} in one turn" if len(ids) > 1 else None)


@NEW.judge("ap4.event.result-once", "MUST", "0.4")
def there_is_one_result(record: Record) -> Judgement:
    """There is at most one `result`."""
    events = _events(record)
    count = sum(event["type"] == "result" for event in events)
    return Judgement(len(events), f"{count} results in one turn" if count > 1 else None)


@NEW.judge("ap4.event.result", "SHOULD", "0.4")
def success_has_a_result(record: Record) -> Judgement:
    """A successful turn has a `result`: a bridge without streaming reads nothing else."""
    events = _events(record)
    if record.was_killed or record.exit_code != 0 or any(event["type"] == "error" for event in events):
        return Judgement(0)
    there = any(event["type"] == "result" for event in events)
    return Judgement(1, None if there else "a turn ended with exit status 0 and without a `result`")


@NEW.judge("ap4.event.error-last", "MUST", "0.4")
def errors_end_it(record: Record) -> Judgement:
    """Neither `partial` nor `result` follows an `error`."""
    events = _events(record)
    kinds = [event["type"] for event in events]
    behind = kinds[kinds.index("error") + 1 :] if "error" in kinds else []
    late = next((kind for kind in behind if kind in ("partial", "result")), None)
    return Judgement(len(events), f"`{late}` after an `error`" if late else None)


@NEW.judge("ap4.event.error-status", "SHOULD", "Exit codes")
def errors_have_their_status(record: Record) -> Judgement:
    """After an `error` the exit status is not 0."""
    if record.was_killed or not any(event["type"] == "error" for event in _events(record)):
        return Judgement(0)
    return Judgement(1, "the exit status is 0 after an `error`" if record.exit_code == 0 else None)


@NEW.judge("ap4.event.request", "MUST", "0.4")
def requests_are_whole(record: Record) -> Judgement:
    """A `permission_request` is complete (`request_id`, `tool_name`, `input`) and sent only if somebody can answer."""
    allowed = _turn(record).get("permission") is True

    def problem(event: Event) -> str | None:
        if event["type"] != "permission_request":
            return None
        if not allowed:
            return "a `permission_request` although nobody can answer it"
        named = isinstance(event.get("request_id"), str) and isinstance(event.get("tool_name"), str)
        return None if named and isinstance(event.get("input"), dict) else "an incomplete `permission_request`"

    return _each(record, problem)
