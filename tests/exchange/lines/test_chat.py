"""What the exchange makes of what a terminal sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.attached import Client, client, echo, exchange
from trunkline.base import jsontext
from trunkline.base.attach import AttachEnding, AttachHeader

HERE = AttachHeader("chat", "a", "s")


async def line(program: Client) -> dict[str, object]:
    while b"\n" not in program.raw:
        assert await program.more()
    found, _, program.raw = program.raw.partition(b"\n")
    said: dict[str, object] = jsontext.loads(found)
    return said


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense",
        b"[" * 10_000,
        b'{"do": "dance"}',
        b'{"do": "submit"}',
        b'{"do": "submit", "message": {"text": 3}}',
        b'{"do": "answer", "call_id": "none"}',
        b'{"do": "mode", "mode": "mad"}',
        b'{"do": "revoke", "grant": {"category": "all"}}',
    ],
)
async def test_what_cannot_be_done_is_refused_and_the_next_command_obeyed(tmp_path: Path, sent: bytes) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running, client(running, HERE) as program:
        assert (await line(program))["session"] == "s"
        program.writer.write(sent + b"\n" + b'{"do": "submit", "message": {"text": "Hello"}}\n')
        assert (await line(program))["error"]
        # The reply comes when the message is kept; its turn may have begun by then.
        said = [await line(program)]
        while len({"event" in each for each in said}) < 2:
            said.append(await line(program))
        assert [each["turn"] for each in said if "event" not in each] == [1]
        assert next(each["event"] for each in said if "event" in each) == "TurnStarted"
        assert await program.end() == AttachEnding(0)
