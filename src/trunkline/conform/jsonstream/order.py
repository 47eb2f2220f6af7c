"""Judges of the order of things: what may come before, between and after what, in any conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.conform.jsonstream.shapes import Problem, events, judged
from trunkline.conform.jsonstream.subject import SeenEvent
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record

_TOOL_EVENTS = ("tool_request", "tool_running", "tool_result", "tool_cancelled")
#: What happens only while a message is being answered.
_INSIDE = ("text_delta", "thinking", *_TOOL_EVENTS)

#: What may come next for a call, by what came last for it.
_NEXT: Mapping[str, tuple[str, ...]] = {
    "": ("tool_request", "tool_running", "tool_cancelled"),
    "tool_request": ("tool_running", "tool_cancelled"),
    "tool_running": ("tool_result", "tool_cancelled"),
    "tool_result": (),
    "tool_cancelled": (),
}


@SUITE.judge("js.ready.first", "MUST", "1.1")
def ready_is_first(record: Record) -> Judgement:
    """The agent writes nothing before `ready`."""
    found = list(events(record))
    if not any(event.type == "ready" for event in found):
        return Judgement(0)
    return judged([None if found[0].type == "ready" else f"`{found[0].type}` came before `ready`"])


@SUITE.judge("js.ready.once", "MUST", "1.1")
def ready_is_once(record: Record) -> Judgement:
    """A process sends `ready` exactly once."""
    count = sum(event.type == "ready" for event in events(record))
    if not count:
        return Judgement(0)
    return judged([None if count == 1 else f"`ready` came {count} times"])


@SUITE.judge("js.turn.start-first", "MUST", "1.2")
def turns_begin_with_start(record: Record) -> Judgement:
    """A turn begins with one `stream_start`; none of its events come before it."""
    problems: list[Problem] = []
    started: set[str] = set()
    stopped = False
    for who, message in _both(record):
        if who == "host":
            stopped = stopped or message.get("type") == "stop"
            continue
        event = SeenEvent(0.0, message)
        if event.msg_id is None or event.type not in (*_INSIDE, "stream_start", "stream_end"):
            continue
        # A message that a `stop` dropped before its turn may well end without having begun.
        is_early = event.msg_id not in started and event.type != "stream_start"
        is_dropped = event.type == "stream_end" and stopped
        problems.append(f"`{event.type}` before `stream_start`" if is_early and not is_dropped else None)
        started.add(event.msg_id)
    return judged(problems)


@SUITE.judge("js.turn.one-start", "MUST", "1.2")
def messages_start_once(record: Record) -> Judgement:
    """Each message gets at most one `stream_start`."""
    return _counted(record, "stream_start")


@SUITE.judge("js.turn.one-end", "MUST", "1.9")
def messages_end_once(record: Record) -> Judgement:
    """Each message gets at most one `stream_end`."""
    return _counted(record, "stream_end")


@SUITE.judge("js.turn.one-at-a-time", "MUST", "1.9")
def turns_do_not_overlap(record: Record) -> Judgement:
    """A turn begins only after the previous one has ended."""
    problems: list[Problem] = []
    open_turn: str | None = None
    for event in events(record):
        if event.type == "stream_start" and event.msg_id is not None:
            overlaps = open_turn is not None and open_turn != event.msg_id
            problems.append(f"`{event.msg_id}` began before `{open_turn}` ended" if overlaps else None)
            open_turn = event.msg_id
        elif event.type == "stream_end" and event.msg_id == open_turn:
            open_turn = None
    return judged(problems)


@SUITE.judge("js.turn.msg-id", "MUST", "2.1")
def events_name_their_message(record: Record) -> Judgement:
    """Every event of a turn carries the `msg_id` of the message it answers."""
    problems: list[Problem] = []
    sent: set[Any] = set()
    for who, message in _both(record):
        if who == "host":
            sent.add(_hashable(message.get("msg_id")))
            continue
        found = message.get("msg_id")
        needs_one = message["type"] in (*_INSIDE, "stream_start", "stream_end")
        # `info` outside of a turn is written with an empty id by some agents.
        if needs_one or (message["type"] in ("error", "info") and found not in (None, "")):
            is_known = isinstance(found, str) and found in sent
            problems.append(None if is_known else f"`{message['type']}` has the `msg_id` {found!a}")
    return judged(problems)


@SUITE.judge("js.turn.same-msg-id", "MUST", "1.9")
def turns_keep_their_message(record: Record) -> Judgement:
    """Between `stream_start` and `stream_end` there are no events of other messages."""
    problems: list[Problem] = []
    open_turn: str | None = None
    for event in events(record):
        if event.type == "stream_start":
            open_turn = event.msg_id
        elif event.type in (*_INSIDE, "stream_end") and open_turn is not None and event.msg_id is not None:
            strange = event.msg_id != open_turn
            problems.append(f"`{event.type}` of `{event.msg_id}` in the turn of `{open_turn}`" if strange else None)
            open_turn = None if event.type == "stream_end" and not strange else open_turn
    return judged(problems)


@SUITE.judge("js.turn.nothing-after-end", "MUST", "1.9")
def ends_are_last(record: Record) -> Judgement:
    """No event of a message follows its `stream_end`."""
    problems: list[Problem] = []
    ended: set[str] = set()
    for event in events(record):
        if event.msg_id is None:
            continue
        if event.type == "stream_start":
            ended.discard(event.msg_id)
        elif event.type == "stream_end":
            ended.add(event.msg_id)
            problems.append(None)
        elif event.msg_id in ended and event.type in (*_INSIDE, "error"):
            problems.append(f"`{event.type}` after `stream_end`")
    return judged(problems)


@SUITE.judge("js.tool.order", "MUST", "3.3")
def calls_go_in_order(record: Record) -> Judgement:
    """A call runs after its request, and ends exactly once: with a result or as cancelled."""
    problems: list[Problem] = []
    last: dict[tuple[Any, str], str] = {}
    for event in events(record):
        if event.type not in _TOOL_EVENTS or event.call_id is None:
            continue
        call = (event.msg_id, event.call_id)
        before = last.get(call, "")
        fits = event.type in _NEXT[before] or (
            event.type == "tool_request" and before in ("tool_result", "tool_cancelled")
        )
        problems.append(None if fits else f"`{event.type}` after {f'`{before}`' if before else 'nothing'} of its call")
        last[call] = event.type
    return judged(problems)


@SUITE.judge("js.tool.call-id", "MUST", "1.5")
def call_ids_are_unique(record: Record) -> Judgement:
    """Each tool request of a process has its own `call_id`."""
    seen: Counter[str] = Counter()
    problems: list[Problem] = []
    for event in events(record):
        if event.type == "tool_request" and event.call_id is not None:
            seen[event.call_id] += 1
            problems.append(f"two requests have the `call_id` `{event.call_id}`" if seen[event.call_id] > 1 else None)
    return judged(problems)


@SUITE.judge("js.tool.name", "MUST", "1.6")
def names_stay_the_same(record: Record) -> Judgement:
    """`tool_running` and `tool_result` name the same tool as the request."""
    names: dict[tuple[str | None, str], Any] = {}
    problems: list[Problem] = []
    for event in events(record):
        if event.call_id is None:
            continue
        if event.type == "tool_request":
            names[event.msg_id, event.call_id] = event.member("tool", "name")
        elif event.type in ("tool_running", "tool_result") and (event.msg_id, event.call_id) in names:
            found, wanted = event.data.get("tool_name"), names[event.msg_id, event.call_id]
            problems.append(
                None if found == wanted else f"`{event.type}` names {found!a}, the request was for {wanted!a}"
            )
    return judged(problems)


@SUITE.judge("js.tool.settled", "MUST", "1.9")
def calls_end_before_their_turn(record: Record) -> Judgement:
    """A turn that is not stopped ends only after the last of its tool calls."""
    problems: list[Problem] = []
    open_calls: dict[str, str | None] = {}
    stopped = False
    for who, message in _both(record):
        if who == "host":
            stopped = stopped or message.get("type") == "stop"
            continue
        event = SeenEvent(0.0, message)
        if event.type == "stream_start":
            stopped = False
        elif event.type in ("tool_request", "tool_running") and event.call_id is not None:
            open_calls[event.call_id] = event.msg_id
        elif event.type in ("tool_result", "tool_cancelled") and event.call_id is not None:
            open_calls.pop(event.call_id, None)
            problems.append(None)
        elif event.type == "stream_end":
            left = [call for call, msg_id in open_calls.items() if msg_id == event.msg_id]
            problems.append(f"`stream_end` while the call `{left[0]}` is open" if left and not stopped else None)
            open_calls = {call: msg_id for call, msg_id in open_calls.items() if call not in left}
    # A conversation without tools shows nothing.
    return judged(problems) if any(event.type in _TOOL_EVENTS for event in events(record)) else Judgement(0)


def _counted(record: Record, type: str) -> Judgement:
    problems: list[Problem] = []
    sent: Counter[Any] = Counter()
    found: Counter[Any] = Counter()
    for who, message in _both(record):
        if who == "host":
            sent[_hashable(message.get("msg_id"))] += message.get("type") == "message"
        elif message["type"] == type and isinstance(message.get("msg_id"), str):
            msg_id = message["msg_id"]
            found[msg_id] += 1
            # A strange id is another judge's matter.
            too_many = 0 < sent[msg_id] < found[msg_id]
            problems.append(f"{found[msg_id]} times `{type}` for `{msg_id}`" if too_many else None)
    return judged(problems)


def _both(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """The commands and events of a record, in their order."""
    for entry in record.entries:
        is_command = entry.who == "host" and isinstance(entry.data, dict)
        is_event = entry.who == "agent" and isinstance(entry.data, dict) and isinstance(entry.data.get("type"), str)
        if is_command or is_event:
            yield entry.who, entry.data


def _hashable(value: Any) -> str | None:
    return value if isinstance(value, str) else None
