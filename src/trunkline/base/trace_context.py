"""Which trace work belongs to, by the W3C's Trace Context (https://www.w3.org/TR/trace-context/), across programs.

    with trace_context.within(trace_context.read(headers)):
        ...                                     # what is done for whoever sent them
    headers |= trace_context.headers()          # for whoever is asked on the way

It is carried and handed on, and nothing more: spans are made by `trunkline.telemetry`, where that is switched on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from trunkline.base.values import Value

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
#: The names of the same in the environment of a program that is started for one piece of work:
#: https://opentelemetry.io/docs/specs/otel/context/env-carriers/.
VARIABLES = {TRACEPARENT: "TRACEPARENT", TRACESTATE: "TRACESTATE"}
#: What everybody must be able to hand on of a `tracestate`; a longer one is left out, as the standard allows.
MAX_STATE = 512

#: A version of the future may have more behind a hyphen.
_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_FIRST_VERSION, _NO_VERSION = "00", "ff"


class TraceContext(Value):
    """A place in a trace: what is done next is done below it."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 of them."""
    flags: str = "01"
    """Two; the lowest bit says that the trace is recorded."""
    state: str = ""
    """What tracing systems tell each other, as it came."""

    @property
    def traceparent(self) -> str:
        """As a header has it."""
        return f"{_FIRST_VERSION}-{self.trace_id}-{self.span_id}-{self.flags}"


_current: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)


def current() -> TraceContext | None:
    """Where we are; None: in no trace that anybody told us of."""
    return _current.get()


def enter(context: TraceContext | None) -> None:
    """Be there for the rest of this task, and in what it begins."""
    _current.set(context)


@contextmanager
def within(context: TraceContext | None) -> Iterator[None]:
    """Be there in the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def read(headers: Mapping[str, str]) -> TraceContext | None:
    """What headers say, by their names in lower case; None if they say nothing, or nothing that can be understood."""
    found = _PARENT.fullmatch(headers.get(TRACEPARENT, "").strip())
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _NO_VERSION or (version == _FIRST_VERSION and more) or not (int(trace_id, 16) and int(span_id, 16)):
        return None
    state = headers.get(TRACESTATE, "").strip()
    fits = len(state) <= MAX_STATE and state.isascii() and state.isprintable()
    return TraceContext(trace_id, span_id, flags, state if fits else "")


def from_environ(environ: Mapping[str, str]) -> TraceContext | None:
    """The same from the environment of a program that was started for one piece of work."""
    return read({name: environ.get(variable, "") for name, variable in VARIABLES.items()})


def headers() -> dict[str, str]:
    """What to send along to whoever is asked from here; nothing outside of a trace."""
    here = _current.get()
    if here is None:
        return {}
    state = {TRACESTATE: here.state} if here.state else {}
    return {TRACEPARENT: here.traceparent, **state}


def variables() -> dict[str, str]:
    """The same for the environment of a program that is started from here."""
    return {VARIABLES[name]: value for name, value in headers().items()}


def ids() -> dict[str, str]:
    """What a line of a log has, to be found from the trace."""
    here = _current.get()
    return {} if here is None else {"trace_id": here.trace_id, "span_id": here.span_id}
