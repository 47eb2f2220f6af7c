"""What the load's clients take for a promise, is one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.chaos.cluster.clients.attached import Attached
from tests.chaos.cluster.clients.chat import ChatClient
from tests.chaos.cluster.hearing import Hearing
from tests.support.cluster_process import NodeProcess
from tests.support.loop import until


class Link:
    """A connection to a node that says what the test has it say."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.says: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def send(self, said: Mapping[str, Any]) -> None:
        self.sent.append(said)

    async def line(self) -> dict[str, Any]:
        return await self.says.get()

    def close(self) -> None: ...


def happened(seq: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "seq": seq, "turn": 1, "data": data}


async def test_a_reply_that_comes_after_the_end_is_not_taken_for_that_to_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Link()

    async def to(*_: object) -> Link:
        return link

    monkeypatch.setattr(Attached, "to", to)
    client = ChatClient("s", lambda: NodeProcess(tmp_path, "a", 1, ""), lambda *_: None)
    first, second = (Hearing("chat", "s", uuid4().hex, "say hello") for _ in range(2))
    for said in (
        {"state": {"turns": 0}, "turn": 0},
        happened(1, "TurnStarted", message={"id": first.id}),
        happened(2, "TurnEnded", outcome="success"),
    ):
        link.says.put_nowait(said)
    await client.converse(first)
    assert first.is_ended
    conversing = asyncio.create_task(client.converse(second))
    await until(lambda: len(link.sent) == 2)
    link.says.put_nowait({"turn": 1})
    await until(link.says.empty)
    link.says.put_nowait({"error": "The session is moving to another node."})
    # It says it again.
    await until(lambda: len(link.sent) == 3)
    assert not second.is_taken
    conversing.cancel()
    await asyncio.wait({conversing})
