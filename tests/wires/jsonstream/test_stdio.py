"""The agent end on a pair of pipes: how it ends."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.approvals import Policy
from trunkline.core.events import TurnEnded
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.jsonstream import stdio
from trunkline.wires.jsonstream.stdio import StdioServer


class WatchedLog(MemoryLog):
    """Knows whether somebody who waits for the session was told that it ends."""

    def __init__(self) -> None:
        super().__init__("s1")
        self.is_ending = asyncio.Event()

    def ending(self) -> None:
        self.is_ending.set()


async def test_who_waits_for_the_session_is_told_so_before_the_last_answer_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "LAST_ANSWER_SECONDS", PATIENCE_SECONDS)
    log, fake = WatchedLog(), FakeAgent()
    session = await Session.open(fake, log, Policy("default"))
    commands, host_writes = os.pipe()
    host_reads, events = os.pipe()
    try:
        serving = asyncio.create_task(StdioServer(session, (commands, events)).run())
        os.write(host_writes, b'{"type":"message","msg_id":"m1","input":"hello"}\n')
        os.close(host_writes)
        async with asyncio.timeout(PATIENCE_SECONDS / 2):
            await log.is_ending.wait()
            # Only now does the agent come to an end.
            fake.say(TurnEnded("success"))
            assert await serving == 0
        assert b'"type":"stream_end","msg_id":"m1"' in os.read(host_reads, 65536)
    finally:
        os.close(host_reads)
