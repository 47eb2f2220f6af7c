"""One turn as people in a chat see it: the answer as it comes, what was used for it, and how it ended.

A sink of the session. Text goes to the answer at once; failures are held until the end, since a turn that failed for
want of its old session is tried again and leaves no trace. Thinking is not shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence

from trunkline.chat.approval_prompts import ApprovalPrompts
from trunkline.chat.channel import Channel
from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.store import Note
from trunkline.chat.plain import inline
from trunkline.chat.settings import Verbosity
from trunkline.core import events
from trunkline.core.events import Envelope, ToolRequested
from trunkline.core.fault_table import told
from trunkline.core.faults import Fault
from trunkline.core.feed import SessionWatcher

logger = logging.getLogger(__name__)

NO_ANSWER = "(no answer)"
STOPPED = "(stopped)"
UNKNOWN_END = "(it is unclear how this ended)"

#: What keeps two paragraphs apart.
_APART = "\n\n"

#: What is kept of an answer to look for pictures in it: as much as is shown of it.
_MOST_CHARS = 200_000
#: Failures that the end of a turn tells, and how much of each: an agent may report thousands, or a file of megabytes.
MOST_FAILURES = 3
MOST_FAILURE_CHARS = 3000

#: Pictures that one answer may bring. What a tool looked at by the hundred is not meant for people.
MOST_PICTURES = 10


class TurnView(SessionWatcher):
    """What has been shown of one turn. `ended` is set when the session has ended it, and `closed` when the session was
    closed here before that: in a cluster, another node has it, or this one will."""

    def __init__(
        self,
        channel: Channel,
        prompts: ApprovalPrompts,
        note: Note,
        verbosity: Verbosity,
        answer: StreamedAnswer | None = None,
        seen: Callable[[int, int], None] = lambda seq, turn: None,
    ) -> None:
        """The answer to `note` goes to the channel, and questions to `prompts`. `answer` is one that was begun; `seen`
        is told when the chat has everything up to an event of a turn."""
        self.turn: int | None = None
        """Which one it shows: the session may have others, of others. None: all."""
        self.begun = False
        """Whether it has begun."""
        self.seq = 0
        """The number of the last event that it was given."""
        self.asks = True
        """Whether questions are asked in the chat. Those of the past are not."""
        self.ended = asyncio.Event()
        self.closed = asyncio.Event()
        self.outcome: events.Outcome = "unknown"
        self.failures: list[str] = []
        self._failed = 0
        self.pictures: list[str] = []
        """In base64."""
        self.answer = answer
        self._channel = channel
        self._seen = seen
        self._prompts = prompts
        self._note = note
        self._verbosity = verbosity
        self._text: list[str] = []
        self._chars = 0
        self._last = _APART
        """The last two characters that were shown in this message."""
        self._apart = False
        """Whether something else happened since the last text."""
        self._tools: Counter[str] = Counter()
        self._plan: list[str] = []
        self._acted = False

    # The sink.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            self.seq = envelope.seq
            if begins(envelope, self._note):
                self.turn, self.begun = envelope.turn, True
            if self.turn not in (None, envelope.turn):
                continue
            try:
                self._take(envelope.event)
            except Fault as fault:
                # The disk is full, say. The session must not suffer for it, and the turn still has to end.
                logger.error("part of an answer could not be kept: %s", fault)
                self._fail(f"a part of this answer is missing: {fault}")

    def close(self) -> None:
        self.closed.set()

    # What came of it.

    @property
    def text(self) -> str:
        """What the agent said."""
        return "".join(self._text)

    @property
    def acted(self) -> bool:
        """Whether a tool was used, or was about to be: what was done once must not be done again."""
        return self._acted

    @property
    def said(self) -> bool:
        """Whether anything of the turn has been shown."""
        return self.answer is not None

    def conclude(self, note: str = "", hint: str = "") -> str:
        """What comes last, behind the answer: how it ended, and what was used.

        `note` stands in the place of `STOPPED`, and `hint` behind the failures, if there are any. None of it is fed:
        however long an answer is, how it ended is told.
        """
        last = [f"**Error**: {failure}" for failure in self.failures]
        if self._failed > len(self.failures):
            last.append(f"({self._failed - len(self.failures)} more errors are not shown)")
        if last and hint:
            last.append(hint)
        if self.outcome == "cancelled":
            last.append(note or STOPPED)
        elif self.outcome == "unknown":
            last.append(UNKNOWN_END)
        elif not self.failures and not self.text.strip() and not self.pictures:
            last.append(NO_ANSWER)
        if last and self.answer is None:
            self.answer = self._channel.answer(self._note)
        return _APART.join([*last, *self._used()])

    def _used(self) -> list[str]:
        if self._verbosity == "quiet" or not self._tools or not self.said:
            return []
        used = (f"`{name}`" + (f" x{count}" if count > 1 else "") for name, count in self._tools.items())
        return [f"_Used: {', '.join(used)}_"]

    # What it makes of the events.

    def _take(self, event: events.Event) -> None:
        match event:
            case events.TextDelta(text=text):
                self._say(text)
            case events.ToolRequested():
                self._asked(event)
            case events.ToolAnswered(call_id=call_id, approved=approved, by=by):
                self._prompts.answered(call_id, approved, by)
            case events.ToolStarted(call_id=call_id, name=name):
                self._started(call_id, inline(name))
            case events.ToolFinished(call_id=call_id):
                self._finished(event)
                self._prompts.over(call_id, "it has been done")
            case events.ToolCancelled(call_id=call_id, reason=reason):
                self._apart = True
                self._prompts.over(call_id, reason)
            case events.Notice(message=message):
                if self._verbosity != "quiet":
                    self._aside(f"_{message}_")
            case events.Plan(entries=entries):
                self._planned(entries)
            case events.Failed(kind=kind, message=message):
                self._fail(told(kind, message))
            case events.TurnEnded(outcome=outcome):
                self.outcome = outcome
                self.ended.set()

    def _say(self, text: str) -> None:
        if self._apart:
            self._part()
        self._apart = False
        if self._chars < _MOST_CHARS:
            self._text.append(text)
            self._chars += len(text)
        self._feed(text)

    def _fail(self, message: str) -> None:
        self._failed += 1
        if len(self.failures) < MOST_FAILURES:
            left_out = len(message) - MOST_FAILURE_CHARS
            cut = f"{message[:MOST_FAILURE_CHARS]}... ({left_out} more characters)" if left_out > 0 else message
            self.failures.append(cut)

    def _asked(self, event: ToolRequested) -> None:
        """What was said so far stands above the question, and what follows below it."""
        self._acted = self._apart = True
        self._part_here()
        if self.asks:
            self._prompts.ask(event)

    def _part_here(self) -> None:
        try:
            with self._channel.together():
                if self.answer is not None:
                    self.answer.cut()
                self._seen(self.seq, self.turn or 0)
        except Fault as fault:
            # It stands in one message then; the question has to be asked all the same.
            logger.error("an answer could not be parted: %s", fault)
            return
        self._last = _APART

    def _started(self, call_id: str, name: str) -> None:
        self._acted = self._apart = True
        self._tools[name] += 1
        if self._verbosity == "verbose":
            self._aside(f"_uses `{name}`_")
        self._prompts.over(call_id, "it is being done")

    def _finished(self, event: events.ToolFinished) -> None:
        if event.output_type == "image" and event.status == "success" and len(self.pictures) < MOST_PICTURES:
            self.pictures.append(event.output)
        if event.status == "error" and self._verbosity == "verbose":
            self._aside(f"_`{inline(event.name)}` failed_")

    def _planned(self, entries: Sequence[events.PlanEntry]) -> None:
        """What the agent means to do, once for each plan: how far it has come is no news for a chat."""
        plan = [inline(entry.content) for entry in entries]
        if plan and plan != self._plan and self._verbosity != "quiet":
            self._aside("\n".join(f"- {content}" for content in plan))
        self._plan = plan

    def _aside(self, text: str) -> None:
        """Something that is no part of the answer, in a paragraph of its own."""
        self._part()
        self._feed(text)
        self._apart = True

    def _part(self) -> None:
        if self._last != _APART:
            self._feed("\n" if self._last.endswith("\n") else _APART)

    def _feed(self, text: str) -> None:
        if not text:
            return
        if self.answer is None:
            self.answer = self._channel.answer(self._note)
        self._last = (self._last + text)[-len(_APART) :]
        self.answer.feed(text)


def begins(envelope: Envelope, note: Note) -> bool:
    """Whether this is the beginning of the turn that answers a message."""
    return isinstance(envelope.event, events.TurnStarted) and envelope.event.message.id == note.inbound.id
