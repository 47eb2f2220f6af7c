"""Which trace work belongs to, by the W3C's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from trunkline.base import trace_context
from trunkline.base.trace_context import TraceContext

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_headers_are_read_and_handed_on_as_they_came() -> None:
    headers = {"traceparent": PARENT, "tracestate": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"}
    found = trace_context.read(headers)
    assert found == TraceContext(TRACE, SPAN, "01", headers["tracestate"])
    with trace_context.within(found):
        assert trace_context.headers() == headers
        assert trace_context.variables() == {"TRACEPARENT": PARENT, "TRACESTATE": headers["tracestate"]}
        assert trace_context.ids() == {"trace_id": TRACE, "span_id": SPAN}
    assert trace_context.headers() == trace_context.ids() == {}


@pytest.mark.parametrize(
    "header",
    [
        "", "00", PARENT.upper(), PARENT[:-1], f"{PARENT}0", f"{PARENT}-more", f"ff{PARENT[2:]}", f"{PARENT},{PARENT}",
        f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", PARENT.replace("-", "_"), f"00-{TRACE}-{SPAN}-0g",
    ],
)  # fmt: skip
def test_what_is_no_traceparent_is_not_taken(header: str) -> None:
    assert trace_context.read({"traceparent": header}) is None


def test_a_version_of_the_future_is_read_as_far_as_it_is_known() -> None:
    assert trace_context.read({"traceparent": f"cc-{TRACE}-{SPAN}-01-what the future brings"}) == TraceContext(
        TRACE, SPAN
    )


@pytest.mark.parametrize("state", ["x" * 513, "a=\x01", "a=ü"])
def test_a_state_that_cannot_be_handed_on_is_left_out(state: str) -> None:
    assert trace_context.read({"traceparent": PARENT, "tracestate": state}) == TraceContext(TRACE, SPAN)


def test_a_program_that_is_started_for_one_thing_finds_it_in_its_environment() -> None:
    assert trace_context.from_environ({"TRACEPARENT": PARENT}) == TraceContext(TRACE, SPAN)
    assert trace_context.from_environ({}) is None


@given(
    st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{2}(-x)?", fullmatch=True)
    | st.from_regex(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", fullmatch=True)
    | st.text(max_size=60)
)
def test_we_take_what_the_standards_own_reader_takes(header: str) -> None:
    theirs = get_current_span(TraceContextTextMapPropagator().extract({"traceparent": header})).get_span_context()
    ours = trace_context.read({"traceparent": header})
    # Theirs ignores white space in the middle of nowhere, and is looser about what is behind a version of the future.
    if ours is not None:
        assert theirs.is_valid
        assert (f"{theirs.trace_id:032x}", f"{theirs.span_id:016x}") == (ours.trace_id, ours.span_id)
    elif header.startswith("00-") and header == header.strip():
        assert not theirs.is_valid
