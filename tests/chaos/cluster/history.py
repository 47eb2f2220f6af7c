"""Reads what happened in a cluster, and says which promise broke.

Three witnesses: the stream, with every record and event in the one order that all nodes agree on; the clients of all
wires, with what they were told; and the agents, with what they have really done.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.cluster.hearing import MARK_CHARS, Hearing, is_part, name_of, words
from trunkline.base import jsontext
from trunkline.core.events import Envelope, Event, StopAsked, TextDelta, ToolAnswered, TurnEnded, TurnStarted
from trunkline.store.jetstream.batches import BATCH, BatchReader
from trunkline.store.jetstream.stream import SessionStream

#: How long a client may wait for an end after a fault.
END_SECONDS = 15.0
#: What it needs to see an end that is there: only beyond both is an end late.
SEEING_SECONDS = 4.0
#: How much of what came last in a session is told with a turn that has no end.
SHOWN_EVENTS = 12


@dataclass
class StreamMessage:
    """One message about a session, in the order of the stream."""

    number: int
    session: str
    owner: Mapping[str, Any] | None
    batch: str
    events: Sequence[Envelope]


@dataclass
class ClientView:
    """What the clients of one session were told, and what its watchers saw."""

    accepted: set[str] = field(default_factory=set)
    """The messages that were taken in, by what they are known by (`name_of`)."""
    seen: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """Events by their numbers: the name, and what tells it from another."""
    twice: list[str] = field(default_factory=list)
    """Numbers that came with something else than before."""
    answered: list[str] = field(default_factory=list)
    """The calls that somebody was told to have answered."""
    late: list[str] = field(default_factory=list)
    """Messages without an end in time."""
    turns: dict[str, int] = field(default_factory=dict)
    """The turns of messages, by what those are known by."""
    ends: dict[int, float] = field(default_factory=dict)
    """When a watcher saw the ends of turns."""

    def saw(self, seq: int, kind: str, told: Any) -> None:
        """A client was shown an event: its number, its kind, and what tells it from another."""
        if self.seen.setdefault(seq, (kind, told)) != (kind, told):
            self.twice.append(f"{seq} was {self.seen[seq]}, and then {(kind, told)}")

    def ended_at(self, name: str) -> float | None:
        """When a watcher saw the end of a message's turn; None: it has not, yet."""
        return self.ends.get(self.turns.get(name, 0))


@dataclass
class History:
    """All of it."""

    messages: list[StreamMessage] = field(default_factory=list)
    clients: dict[str, ClientView] = field(default_factory=lambda: defaultdict(ClientView))
    hearings: list[Hearing] = field(default_factory=list)
    """Each message that a client has said, and what it was told of it."""
    done: list[tuple[str, ...]] = field(default_factory=list)
    is_quiet: bool = False
    """Whether nothing was done to any node."""


async def read_stream(stream: SessionStream, sessions: Iterable[str]) -> list[StreamMessage]:
    """Every message about any session, in the order of the stream. Those that are not among these, which clients have
    not named, are called as in the stream."""
    from nats.js.api import ConsumerConfig, DeliverPolicy

    by_token = {stream.log_subject(session).removesuffix(".log"): session for session in sessions}
    readers: dict[str, BatchReader] = {}
    last = (await stream.last(f"{stream.prefix}.>"))[0]
    found: list[StreamMessage] = []
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
    subscription = await stream.context.subscribe(
        f"{stream.prefix}.>", stream=stream.name, config=config, ordered_consumer=True
    )
    number = 0
    while number < last:
        message = await subscription.next_msg(timeout=30)
        number = message.metadata.sequence.stream
        token, _, kind = message.subject.rpartition(".")
        session = by_token.get(token, token.removeprefix(f"{stream.prefix}."))
        if kind == "owner":
            found.append(StreamMessage(number, session, jsontext.loads(message.data), "", ()))
        else:
            batch = (message.headers or {}).get(BATCH, "")
            reader = readers.setdefault(session, BatchReader(session))
            events = reader.take(message.headers, message.data)
            found.append(StreamMessage(number, session, None, batch, events))
    await subscription.unsubscribe()
    return found


def read_done(path: Path) -> list[tuple[str, ...]]:
    """What the agents have done."""
    if not path.exists():
        return []
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def broken_promises(history: History) -> list[str]:
    """Everything that is not as promised, in words; nothing if all is well."""
    found = (_owners, _numbers, _turns, _views, _heard, _deeds)
    return [told for promise in found for told in promise(history)]


def _owners(history: History) -> Iterator[str]:
    """What is in the stream was written by who owned the session right then."""
    owner: dict[str, int] = {}
    for message in history.messages:
        if message.owner is not None:
            if history.is_quiet and message.session in owner:
                yield f"moved: session {message.session} has another owner, and nothing was done to the one before"
            owner[message.session] = message.number
        else:
            fence = int(message.batch.partition("-")[0] or 0)
            if fence != owner.get(message.session, 0):
                yield (
                    f"two owners: message {message.number} of session {message.session} was written under the record "
                    f"{fence}, when {owner.get(message.session, 0)} was in force"
                )


def _numbers(history: History) -> Iterator[str]:
    """Numbers of events count from 1, without a hole, and none comes twice."""
    last: Counter[str] = Counter()
    for session, event in _events(history):
        if event.seq != last[session] + 1:
            kind = "doubled" if event.seq <= last[session] else "lost"
            yield f"{kind} event: session {session} has {event.seq} after {last[session]}"
        last[session] = max(last[session], event.seq)


def _last(history: History, session: str) -> Iterable[str]:
    """What came last in a session: events with their turns, and owners."""
    found: deque[str] = deque(maxlen=SHOWN_EVENTS)
    for message in history.messages:
        if message.session == session:
            if message.owner is not None:
                found.append(f"owner {message.owner['node'] or 'nobody'}")
            found.extend(f"{each.turn} {type(each.event).__name__}" for each in message.events)
    return found


def _turns(history: History) -> Iterator[str]:  # noqa: C901  (one case per promise)
    """Each message that was taken in has one beginning and one end."""
    begun: Counter[tuple[str, str]] = Counter()
    open_turns: dict[tuple[str, int], int] = Counter()
    answered: Counter[tuple[str, int, str]] = Counter()
    withdrawn: set[tuple[str, str]] = set()
    for session, envelope in _events(history):
        match envelope.event:
            case TurnStarted(message=message):
                begun[session, name_of(message.id, message.text)] += 1
                open_turns[session, envelope.turn] += 1
            case TurnEnded():
                open_turns[session, envelope.turn] -= 1
            case StopAsked(dropped=ids):
                withdrawn |= {(session, id[:MARK_CHARS]) for id in ids}
            case ToolAnswered(call_id=call_id):
                answered[session, envelope.turn, call_id] += 1
    for (session, id), count in begun.items():
        if count > 1:
            yield f"turn run twice: message {id} of session {session} has begun {count} times"
    for (session, turn), left in open_turns.items():
        if left:
            last = ", ".join(_last(history, session))
            yield f"no end: turn {turn} of session {session} has {left} beginnings more than ends; last came {last}"
    for (session, turn, call), count in answered.items():
        if count > 1:
            yield f"answered twice: call {call} in turn {turn} of session {session}, {count} times"
    for session, view in history.clients.items():
        for id in view.accepted:
            if not begun[session, id] and (session, id) not in withdrawn:
                told = ", ".join(_told(hearing) for hearing in history.hearings if hearing.mark == id)
                yield f"lost message: {id} of session {session} was taken in, and has no turn; {told}"


def _told(hearing: Hearing) -> str:
    """On which wire a message was said, and to which nodes."""
    nodes = ", ".join(f"{heard.node} ({'; '.join(heard.ends) or 'no end'})" for heard in hearing.heard)
    return f"its {hearing.wire} client said it to {nodes or 'some node'}"


def _views(history: History) -> Iterator[str]:
    """What clients have seen is in the stream, and they had their ends in time."""
    kept: dict[str, dict[int, tuple[str, Any]]] = defaultdict(dict)
    for session, envelope in _events(history):
        kept[session][envelope.seq] = _kept(envelope.event)
    for session, view in history.clients.items():
        for seq, (name, told) in view.seen.items():
            found = kept[session].get(seq, ("nothing", None))
            if found[0] != name or (found[1] is not None and found[1] != told):
                yield f"lost event: a client of session {session} saw {seq} {name} {told}, the stream has {found}"
        yield from (f"shown twice: session {session}: {told}" for told in view.twice)
        yield from (f"late: session {session}: {told}" for told in view.late)
        for call, count in Counter(view.answered).items():
            if count > 1:
                yield f"answered twice: {count} people were told that they answered {call} of session {session}"


def _kept(event: Event) -> tuple[str, Any]:
    """The kind of an event, and what tells it from another, where all clients are told that."""
    match event:
        case TurnStarted(message=message):
            return "TurnStarted", message.id
        case TextDelta(text=text):
            return "TextDelta", text
    return type(event).__name__, None


def _heard(history: History) -> Iterator[str]:
    """What clients heard on their own wires are the words of the stream, and each had one end."""
    spoken: dict[str, list[int]] = defaultdict(list)
    for _, envelope in _events(history):
        if isinstance(envelope.event, TextDelta):
            for mark, number in words(envelope.event.text):
                spoken[mark].append(number)
    for hearing in history.hearings:
        who = f"the {hearing.wire} client of message {hearing.mark} in session {hearing.session or '(its own)'}"
        whole = spoken[hearing.mark]
        for heard in hearing.heard:
            found = words(heard.text)
            numbers = [number for _, number in found]
            if any(mark != hearing.mark for mark, _ in found):
                yield f"wrong words: {who} heard `{heard.text}`"
            elif numbers != whole if heard.is_whole else not is_part(numbers, whole):
                yield f"lost words: {who} heard {numbers} on node {heard.node}, {heard.ends}; the stream has {whole}"
            if len(heard.ends) > 1:
                yield f"ended twice: {who} was told on node {heard.node}: {', '.join(heard.ends)}"
            yield from (f"wrong words: {who}: {told}" for told in heard.wrong)
        if hearing.hanging:
            yield f"no end: {who} {hearing.hanging}"
        elif hearing.slowest > END_SECONDS + SEEING_SECONDS:
            yield f"late: {who} had its end {hearing.slowest:.1f} s after it was due"


def _deeds(history: History) -> Iterator[str]:
    """What agents did, they did once."""
    for deed, count in Counter(history.done).items():
        if count > 1:
            yield f"{deed[0]} run twice: {' '.join(deed[1:])}, {count} times, by the agents' own account"


def _events(history: History) -> Iterator[tuple[str, Envelope]]:
    for message in history.messages:
        for event in message.events:
            yield message.session, event
