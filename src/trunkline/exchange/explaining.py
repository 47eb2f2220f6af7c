"""A session explained: one timeline of what everybody did, with the cause of every end.

It combines the session's log, its approvals, and what people and processes did with it. Texts are shortened, and only
the newest part of a long session is included: it is meant to be read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from trunkline.base import jsontext, shapes
from trunkline.base.values import Value
from trunkline.core import events
from trunkline.core.events import Envelope, Event, Gap
from trunkline.core.grants import Grant
from trunkline.exchange.acts import Act
from trunkline.exchange.approvals import Approval
from trunkline.exchange.turn_causes import OUTCOME_WORDS, TurnCauses

#: More than anybody reads.
MOST_ENTRIES = 10_000
#: The longest text.
LONGEST_TEXT = 2000

Kind = Literal[
    "message", "answer", "thinking", "tool_asked", "tool_judged", "tool_answered", "tool_started", "tool_finished",
    "tool_cancelled", "notice", "plan", "failed", "stopped", "end", "mode", "grant", "history", "damage", "act",
]  # fmt: skip


class TimelineEntry(Value):
    """One thing that happened. `at`: milliseconds since 1970; `seq`: the number of its first event; `who` did it."""

    at: int
    seq: int
    turn: int
    kind: Kind
    who: str
    text: str


class TurnStory(Value):
    """The outcome of one message."""

    turn: int
    by: str
    message: str
    began_at: int
    ended_at: int | None
    outcome: str
    """`running` until it has ended."""
    cause: str
    usage: dict[str, Any] | None = None


class Explanation(Value):
    """The whole explanation, for people and programs."""

    session: dict[str, Any]
    turns: tuple[TurnStory, ...]
    timeline: tuple[TimelineEntry, ...]
    left_out: int
    """How many entries at the beginning of the timeline were left out."""
    people: tuple[str, ...]
    """Everyone who said, decided or did something."""


def explained(
    session: dict[str, Any],
    records: Iterable[Envelope | Gap],
    approvals: Sequence[Approval],
    acts: Sequence[Act],
) -> Explanation:
    """Build the explanation. `session` is what is known about it: at least `id` and `agent`."""
    story = _Story(str(session["agent"]), approvals, acts)
    for record in records:
        story.take(record)
    story.close()
    people = dict.fromkeys(filter(None, (str(session.get("by") or ""), *story.people, *(act.person for act in acts))))
    return Explanation(
        session=session,
        turns=tuple(story.turns),
        timeline=tuple(story.entries),
        left_out=story.left_out,
        people=tuple(people),
    )


class _Story:
    def __init__(self, agent: str, approvals: Sequence[Approval], acts: Sequence[Act]) -> None:
        self.entries: deque[TimelineEntry] = deque()
        self.turns: deque[TurnStory] = deque()
        self.people: dict[str, None] = {}
        self.left_out = 0
        self._agent = agent
        self._reasons = {(each.turn, each.call_id): each.reason for each in approvals if each.reason}
        self._acts = deque(acts)
        self._causes = TurnCauses(next((act for act in acts if act.what == "forked_from"), None))
        self._run: list[str] = []
        self._size = 0
        self._first: Envelope | None = None
        self._names: dict[str, str] = {}
        self._open: dict[int, TurnStory] = {}

    def take(self, record: Envelope | Gap) -> None:
        """One more record."""
        if isinstance(record, Gap):
            self._end_of_speech()
            at = self.entries[-1].at if self.entries else 0
            text = f"Records {record.first} to {record.last} are damaged or missing."
            self._add(TimelineEntry(at, record.first, 0, "damage", "", text))
            return
        if isinstance(record.event, events.TextDelta | events.ThinkingDelta):
            if self._first is not None and type(self._first.event) is not type(record.event):
                self._end_of_speech()
            self._first = self._first or record
            if self._size <= LONGEST_TEXT:
                self._run.append(record.event.text)
            self._size += len(record.event.text)
            return
        if record.event.private and not isinstance(record.event, events.ToolJudged | events.StopAsked):
            return
        self._end_of_speech()
        self._tell_acts(record.seq)
        self._causes.take(record)
        for kind, who, text in self._told(record, record.event):
            self._add(TimelineEntry(_ms(record), record.seq, record.turn, kind, who, _cut(text)))

    def close(self) -> None:
        """The log is complete."""
        self._end_of_speech()
        self._tell_acts(None)
        for number, turn in self._open.items():
            self.turns.append(turn.replace(cause=f"Turn {number} is in progress."))

    def _told(self, record: Envelope, event: Event) -> Iterator[tuple[Kind, str, str]]:  # noqa: C901  (one per event)
        agent = self._agent
        match event:
            case events.TurnStarted(message=message):
                self._begin(record, message)
                files = f" (attached: {', '.join(message.files)})" if message.files else ""
                yield "message", self._person(message.sender), message.text + files
            case events.Steered(message=message):
                yield "message", self._person(message.sender), f"{message.text} (put into the turn in progress)"
            case events.ToolRequested(call_id=call_id, name=name):
                self._names[call_id] = name
                yield "tool_asked", agent, f"{event.description or name} ({event.category}) {_args(event.args)}"
            case events.ToolJudged(call_id=call_id, name=name, verdict=verdict):
                self._names[call_id] = name
                text = f"{event.description or name} ({event.category}): the policy says {verdict} {_args(event.args)}"
                yield "tool_judged", "policy", text
            case events.ToolAnswered(call_id=call_id, approved=approved, by=by):
                reason = self._reasons.get((record.turn, call_id))
                text = f"{'approved' if approved else 'denied'} {self._call(call_id)}{f': {reason}' if reason else ''}"
                yield "tool_answered", self._person(by), text
            case events.ToolStarted(name=name):
                yield "tool_started", agent, f"{name} runs"
            case events.ToolFinished(name=name, status=status):
                output = "(an image)" if event.output_type == "image" else event.output
                yield "tool_finished", agent, f"{name}: {status}. {output}"
            case events.ToolCancelled(call_id=call_id, reason=reason):
                yield "tool_cancelled", agent, f"{self._call(call_id)} was cancelled: {reason}"
            case events.Failed(kind=kind, message=text):
                yield "failed", agent, f"{text} ({kind})"
            case events.Notice(message=text):
                yield "notice", agent, text
            case events.Plan():
                yield "plan", agent, event.words
            case events.TurnEnded():
                yield "end", agent, self._ended(record, event)
            case events.StopAsked(by=by, dropped=dropped):
                # In turn 0, somebody withdrew messages, and the turn in progress went on.
                what = "stopped the turn" if record.turn else f"withdrew {len(dropped) or 1} of the waiting messages"
                yield "stopped", self._person(by), what
            case events.ModeChanged(mode=mode):
                yield "mode", "", f"The approval mode is `{mode}`."
            case events.Granted() | events.GrantRevoked():
                how = "granted" if isinstance(event, events.Granted) else "taken back"
                yield "grant", "", f"{how}: {Grant.of(event)}"
            case events.HistoryInjected(text=text):
                yield "history", "", f"The agent was given the earlier conversation: {text}"

    def _begin(self, record: Envelope, message: events.UserMessage) -> None:
        self._open[record.turn] = TurnStory(
            record.turn, message.sender or "", _cut(message.text), _ms(record), None, "running", ""
        )

    def _ended(self, record: Envelope, event: events.TurnEnded) -> str:
        cause = self._causes.of(record, event.outcome)
        began = self._open.pop(record.turn, None)
        if began is not None:
            usage = None if event.usage is None else shapes.encode(event.usage)
            self.turns.append(began.replace(ended_at=_ms(record), outcome=event.outcome, cause=cause, usage=usage))
            if len(self.turns) > MOST_ENTRIES:
                self.turns.popleft()
        return f"{OUTCOME_WORDS[event.outcome]}: {cause}"

    def _tell_acts(self, before: int | None) -> None:
        """The acts before the event with that number; all remaining ones with None."""
        while self._acts and (before is None or self._acts[0].seq < before):
            act = self._acts.popleft()
            self._add(TimelineEntry(act.at, act.seq, 0, "act", act.person, _ACTS[act.what].format(act.detail)))

    def _end_of_speech(self) -> None:
        first = self._first
        if first is None:
            return
        text, is_cut = "".join(self._run), self._size > LONGEST_TEXT
        kind: Kind = "answer" if isinstance(first.event, events.TextDelta) else "thinking"
        self._first = None
        self._run.clear()
        shown = f"{text[:LONGEST_TEXT]} ... ({self._size} characters)" if is_cut else text
        self._size = 0
        self._tell_acts(first.seq)
        self._add(TimelineEntry(_ms(first), first.seq, first.turn, kind, self._agent, shown))

    def _add(self, entry: TimelineEntry) -> None:
        self.entries.append(entry)
        if len(self.entries) > MOST_ENTRIES:
            self.entries.popleft()
            self.left_out += 1

    def _person(self, name: str | None) -> str:
        if name:
            self.people[name] = None
        return name or ""

    def _call(self, call_id: str) -> str:
        return self._names.get(call_id, call_id)


_ACTS: dict[str, str] = {
    "woken": "The session was woken: {}.",
    "let_go": "Nobody used the session: its agent was stopped.",
    "joined": "joined: {}",
    "left": "left: {}",
    "forked": "forked it: {}",
    "forked_from": "forked it from {}",
    "handed_over": "handed it over: {}",
    "handed_over_from": "handed it over, from session {}",
}


def _ms(envelope: Envelope) -> int:
    return round(envelope.at * 1000)


def _args(args: Mapping[str, Any]) -> str:
    return jsontext.dumps(dict(args)).decode()


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ... ({len(text)} characters)"
