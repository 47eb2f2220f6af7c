"""Sessions as spans: one for each turn, and below it one for each tool that runs and each question to a model.

Only names, numbers and outcomes: no message, no argument, no result and no error text is ever part of a span.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import context as otel
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from trunkline.base import jsontext, log_context, trace_context
from trunkline.base.trace_context import TraceContext
from trunkline.core.events import (
    Envelope,
    Failed,
    Outcome,
    ToolCancelled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from trunkline.core.faults import Fault
from trunkline.core.tracing import SessionTrace
from trunkline.core.usage import Usage
from trunkline.telemetry import names

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer as OtelTracer

Attributes = dict[str, str | int]

_NANOSECONDS = 1_000_000_000
#: The most characters of a name. Programs of others name their tools and their calls.
MAX_NAME = 256
#: The events that a span is made of. The others are skipped: most are words, and there are thousands.
_NOTED = frozenset({Failed, ToolCancelled, ToolFinished, ToolStarted, TurnEnded, TurnStarted})
#: What is said of an error whose kind nobody knows.
_OTHER = "_OTHER"
_CANCELLED = "cancelled"
#: How a turn ended that is let go of while somebody is asked: another process may go on with it.
_SUSPENDED = "suspended"


class SpanTracer:
    """A `core.tracing.Tracer` that makes spans."""

    def __init__(self, tracer: OtelTracer) -> None:
        self._tracer = tracer

    def session(self, session: str, agent: str) -> SessionSpans:
        """A session is opened."""
        return SessionSpans(self._tracer, session, agent)

    def turn(self, conversation: str, agent: str) -> TurnSpan:
        """A turn begins that belongs to no session."""
        return TurnSpan(self._tracer, conversation, agent, {}, None, time.time_ns())

    def chat(self, provider: str, model: str) -> ChatSpan:
        """A model is asked."""
        return ChatSpan(self._tracer, provider, model)


class TurnSpan:
    """One turn. A `core.tracing.TurnTrace`."""

    def __init__(
        self,
        tracer: OtelTracer,
        conversation: str,
        agent: str,
        more: Mapping[str, str | int],
        parent: TraceContext | None,
        start: int,
    ) -> None:
        self._tracer = tracer
        agent = _clean(agent)
        attributes: Attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent}
        attributes |= {names.CONVERSATION: _clean(conversation), **_whereabouts(), **more}
        self._span = tracer.start_span(
            f"{names.INVOKE_AGENT} {agent}", _remote(parent), SpanKind.INTERNAL, attributes, start_time=start
        )
        self._context = set_span_in_context(self._span)
        self._tools: dict[str, Span] = {}
        self.fault = ""
        """The kind of what failed last."""

    def entered(self) -> None:
        """Called in the task in which it is answered."""
        otel.attach(self._context)
        trace_context.enter(_place(self._span))

    def tool_started(self, call_id: str, name: str, at: int) -> None:
        """A tool runs."""
        name = _clean(name)
        attributes: Attributes = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: name}
        attributes[names.TOOL_CALL] = _clean(call_id)
        title = f"{names.EXECUTE_TOOL} {name}"
        self._tools[call_id] = self._tracer.start_span(title, self._context, attributes=attributes, start_time=at)

    def tool_ended(self, call_id: str, at: int, error: str = "") -> None:
        """A tool runs no more; one that never began has no span."""
        if (span := self._tools.pop(call_id, None)) is not None:
            _end(span, error, at)

    def ended(self, outcome: Outcome, usage: Usage | None, fault: str = "") -> None:
        """How it went."""
        self.finish(outcome, usage, fault or self.fault, time.time_ns())

    def finish(self, outcome: str, usage: Usage | None, fault: str, at: int) -> None:
        """The same, at a time."""
        for call_id in tuple(self._tools):
            self.tool_ended(call_id, at, _CANCELLED)
        self._span.set_attribute(names.OUTCOME, outcome)
        self._span.set_attributes(_used(usage))
        failed = outcome in ("error", "unknown")
        _end(self._span, (fault or outcome) if failed else "", at)


class SessionSpans(SessionTrace):
    """The turns of one session."""

    def __init__(self, tracer: OtelTracer, session: str, agent: str) -> None:
        self._tracer = tracer
        self._session = session
        self._agent = agent
        self._expected: dict[int, tuple[TraceContext | None, Attributes]] = {}
        """Where the turns of messages that were taken in belong, and how those came."""
        self._turns: dict[int, TurnSpan] = {}

    def expected(self, turn: int) -> None:
        """A message was taken in."""
        self._expected[turn] = trace_context.current(), _whereabouts()

    def entered(self, turn: int) -> None:
        """Called in the task in which the agent answers."""
        # Its beginning may still be on its way to the disk, behind the end of another turn.
        self._turn(turn, time.time_ns()).entered()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events."""
        for envelope in envelopes:
            if type(envelope.event) in _NOTED and envelope.turn:
                self._note(envelope, int(envelope.at * _NANOSECONDS))

    def close(self) -> None:
        """There will be no more."""
        now = time.time_ns()
        for turn in self._turns.values():
            turn.finish(_SUSPENDED, None, "", now)
        self._turns.clear()
        self._expected.clear()

    def _turn(self, number: int, at: int) -> TurnSpan:
        found = self._turns.get(number)
        if found is None:
            parent, whereabouts = self._expected.pop(number, (None, {}))
            more: Attributes = {names.TURN: number, **whereabouts}
            found = self._turns[number] = TurnSpan(self._tracer, self._session, self._agent, more, parent, at)
        return found

    def _note(self, envelope: Envelope, at: int) -> None:
        turn = self._turn(envelope.turn, at)
        match envelope.event:
            case ToolStarted(call_id=call_id, name=name):
                turn.tool_started(call_id, name, at)
            case ToolFinished(call_id=call_id, status=status):
                turn.tool_ended(call_id, at, _OTHER if status == "error" else "")
            case ToolCancelled(call_id=call_id):
                turn.tool_ended(call_id, at, _CANCELLED)
            case Failed(kind=kind):
                turn.fault = kind
            case TurnEnded(outcome=outcome, usage=usage):
                turn.finish(outcome, usage, turn.fault, at)
                del self._turns[envelope.turn]
                # Those that were withdrawn never begin.
                self._expected = {number: each for number, each in self._expected.items() if number > envelope.turn}


class ChatSpan:
    """One question to a model. A `core.tracing.ModelTrace`."""

    def __init__(self, tracer: OtelTracer, provider: str, model: str) -> None:
        model = _clean(model)
        attributes: Attributes = {names.OPERATION: names.CHAT, names.PROVIDER: _clean(names.provider(provider))}
        attributes[names.REQUEST_MODEL] = model
        self._span = tracer.start_span(f"{names.CHAT} {model}", kind=SpanKind.CLIENT, attributes=attributes)
        self._context = set_span_in_context(self._span)
        self._place = _place(self._span)
        self._begun: float | None = time.monotonic()
        """When it was asked, until the first piece is there."""
        self._used: Usage | None = None
        self._is_whole = False

    @contextmanager
    def here(self) -> Iterator[None]:
        """A block in which what is sent is part of the question."""
        token = otel.attach(self._context)
        try:
            with trace_context.within(self._place):
                yield
        finally:
            otel.detach(token)

    def heard(self) -> None:
        """A piece of the answer is there."""
        if self._begun is not None:
            self._span.set_attribute(names.FIRST_CHUNK_SECONDS, time.monotonic() - self._begun)
            self._begun = None

    def answered(self, usage: Usage | None, stop: str) -> None:
        """It is answered, as far as this."""
        self._used = usage
        if stop:
            self._is_whole = True
            self._span.set_attribute(names.FINISH_REASONS, [stop])

    def ended(self, error: BaseException | None) -> None:
        """Nothing more will come."""
        self._span.set_attributes(_used(self._used))
        # Whoever has the answer may leave at once.
        if error is None or self._is_whole:
            _end(self._span)
        elif isinstance(error, Exception):
            _end(self._span, error.kind if isinstance(error, Fault) else type(error).__qualname__)
        else:
            self._span.set_attribute(names.OUTCOME, _CANCELLED)
            _end(self._span)


def _clean(name: str) -> str:
    """A name that others have given, as it can be sent: with one that cannot, all spans of a message would be lost."""
    return jsontext.whole(name[:MAX_NAME])


def _whereabouts() -> Attributes:
    """By which wire we are asked, and on which node we are, as far as that is known."""
    known = log_context.known("")
    return {name: known[key] for key, name in (("wire", names.WIRE), ("node", names.NODE)) if key in known}


def _used(usage: Usage | None) -> Mapping[str, int]:
    """What is known of it: a number that nobody reported is no zero."""
    found = {name: getattr(usage, field) for field, name in names.USAGE.items()} if usage is not None else {}
    return {name: value for name, value in found.items() if value is not None}


def _end(span: Span, error: str = "", at: int | None = None) -> None:
    if error:
        span.set_attribute(names.ERROR_TYPE, error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(at)


def _place(span: Span) -> TraceContext:
    here = span.get_span_context()
    return TraceContext(
        f"{here.trace_id:032x}", f"{here.span_id:016x}", f"{here.trace_flags:02x}", here.trace_state.to_header()
    )


def _remote(parent: TraceContext | None) -> Context:
    """Where a turn belongs: below what asked for it, or by itself."""
    if parent is None:
        return otel.Context()
    above = SpanContext(
        int(parent.trace_id, 16),
        int(parent.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(parent.flags, 16)),
        trace_state=TraceState.from_header([parent.state]) if parent.state else TraceState(),
    )
    return set_span_in_context(NonRecordingSpan(above), otel.Context())
