"""Where requests come from: the trace that they are part of, and their wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from tests.exchange.api_world import token, world
from tests.support.loop import until
from tests.support.spans import MadeSpans, attributes, following

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=1"}


@pytest.fixture
def made() -> Iterator[MadeSpans]:
    with following() as made:
        yield made


async def turn(made: MadeSpans, count: int = 1) -> ReadableSpan:
    """The latest of so many turns."""
    await until(lambda: len(made.all) == count)
    return made.all[-1]


async def test_a_turn_is_part_of_the_trace_that_the_request_names(tmp_path: Path, made: MadeSpans) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        path = f"/api/sessions/{id}/messages"
        assert (await net.post(path, {"text": "Hello"}, headers=HEADERS)).status_code == 202
        first = await turn(made)
        await net.say(id, "Hello again")
        second = await turn(made, 2)
    assert first.name == "invoke_agent echo"
    assert first.parent is not None
    assert first.parent.is_remote
    assert (f"{first.parent.trace_id:032x}", f"{first.parent.span_id:016x}") == (TRACE, SPAN)
    assert first.parent.trace_state.to_header() == "a=1"
    # Another request on the same connection names none.
    assert second.parent is None


async def test_a_turn_says_by_which_wire_it_was_asked_for(tmp_path: Path, made: MadeSpans) -> None:
    async with world(tmp_path) as net:
        await net.say(await net.session("echo"))
        first = await turn(made)
        body = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
        answer = await net.post("/v1/chat/completions", body, headers=HEADERS)
        assert answer.status_code == 200, answer.text
        second = await turn(made, 2)
    assert [attributes(each)["trunkline.wire"] for each in (first, second)] == ["http", "openai"]
    assert second.parent is not None
    assert f"{second.parent.trace_id:032x}" == TRACE


async def test_a_header_that_is_none_harms_nobody(tmp_path: Path, made: MadeSpans) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        own = (b"authorization", f"Bearer {token('admin')}".encode())
        sent = [own, (b"traceparent", b"00-nothing"), (b"tracestate", b"\xff")]
        answer = await net.post(f"/api/sessions/{id}/messages", {"text": "Hello"}, headers=sent)
        assert answer.status_code == 202
        assert (await turn(made)).parent is None
