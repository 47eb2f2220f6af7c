"""Whatever an agent prints, every reader gives sayings and never raises, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fake_cli import FAKES, run_lines
from trunkline.wires.agentproc import streams
from trunkline.wires.agentproc.codec import LineReader, Reader
from trunkline.wires.agentproc.codec_auto import AutoReader
from trunkline.wires.agentproc.codec_ndjson import NdjsonReader
from trunkline.wires.agentproc.messages import Said
from trunkline.wires.agentproc.reply import GrowingReply

READERS: dict[str, Callable[[], Reader]] = {
    "0.1": LineReader,
    "0.4": NdjsonReader,
    "auto": AutoReader,
    **{name: partial(streams.make, name) for name in streams.names()},
}

#: Real lines of the programs that people have, and what is made to confuse a reader.
MESSAGES = ("hello", "tool", "fail")
LINES = [
    *sorted({line for name in FAKES for message in MESSAGES for line in run_lines(name, message).splitlines()}),
    b'AGENT_PARTIAL:"x"', b"AGENT_SESSION:s", b"AGENT_SESSION:a b", b'AGENT_ERROR:"e"', b"AGENT_ERROR:", b"plain", b"",
    b'{"type":"result","text":"x","session_id":"s"}', b'{"type":"error","message":7}', b"null",
    b'{"type":"partial","text":null}',
    b'{"type":"permission_request","request_id":"r","tool_name":"t","input":{}}', b"[" * 300, b"{" * 300, b"\xff",
    b'{"type":["result"]}', b'{"type":"result","result":{"text":[]}}', b"\x1b[31mred", b"\r", b"\0",
]  # fmt: skip

mutated = st.builds(
    lambda line, at, junk, cut: line[: at % (len(line) + 1)] + junk + line[at % (len(line) + 1) + cut :],
    st.sampled_from(LINES), st.integers(0, 4000), st.binary(max_size=4), st.integers(0, 3),
)  # fmt: skip
outputs = st.lists(st.one_of(st.sampled_from(LINES), mutated), max_size=12).map(b"\n".join)


def read(reader: Reader, data: bytes, size: int) -> list[Said]:
    said: list[Said] = []
    for start in range(0, len(data), size):
        said += reader.feed(data[start : start + size])
    return said + reader.finish()


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60)
@given(data=outputs, size=st.integers(1, 200))
def test_any_output_is_read_without_an_error_and_alike_in_any_pieces(name: str, data: bytes, size: int) -> None:
    said = read(READERS[name](), data, max(1, len(data)))
    assert all(isinstance(each, Said) for each in said)
    reply = GrowingReply(streaming=True, max_chars=100, suffix="...")
    assert all(isinstance(each, Said) for each in reply.take(said))
    assert len(reply.text()) <= 103
    pieces = GrowingReply(streaming=True, max_chars=10**6, suffix="")
    whole = GrowingReply(streaming=True, max_chars=10**6, suffix="")
    pieces.take(read(READERS[name](), data, size))
    whole.take(said)
    assert "".join(pieces.partials) == "".join(whole.partials)
    assert (pieces.text(), pieces.session_id, pieces.error) == (whole.text(), whole.session_id, whole.error)
