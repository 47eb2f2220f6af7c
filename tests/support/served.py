"""A session with a fake behind it and a host in front of it, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.fake_agent import FakeAgent
from tests.support.host import Host
from trunkline.base.vocabulary import DEFAULT_ALLOW, Mode
from trunkline.core.approvals import Policy
from trunkline.core.log import EventLog, MemoryLog
from trunkline.core.session import Session
from trunkline.wires.jsonstream.serve import JsonStreamServer


class Served:
    """What a test of the server end holds in its hands."""

    def __init__(self, session: Session, server: JsonStreamServer, host: Host, fake: FakeAgent) -> None:
        self.session = session
        self.server = server
        self.host = host
        self.fake = fake

    async def settle(self) -> None:
        """Let everything happen that happens at once; no timer fires."""
        for _ in range(50):
            await asyncio.sleep(0)


@asynccontextmanager
async def served(
    *,
    log: EventLog | None = None,
    mode: Mode = "default",
    allow: tuple[str, ...] = DEFAULT_ALLOW,
    resume: bool = False,
    max_line: int = 1000,
) -> AsyncIterator[Served]:
    """A greeted server; closed afterwards."""
    fake, host = FakeAgent(), Host()
    policy = Policy(mode, allow=allow)
    session = await Session.open(fake, log or MemoryLog("s1"), policy, resume=resume)
    server = JsonStreamServer(session, host, max_line=max_line)
    host.server = server
    server.greet()
    try:
        yield Served(session, server, host, fake)
    finally:
        await server.close()
        await session.close()
        assert fake.closed
        assert host.open_messages == []
