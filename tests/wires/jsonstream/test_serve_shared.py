"""A host that comes back to a session that it shares, and says a message again: it hears each answer once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.host import Host
from tests.support.loop import until
from trunkline.core.approvals import Policy
from trunkline.core.events import TextDelta, TurnEnded, UserMessage
from trunkline.core.keeper import When
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.jsonstream.serve_shared import KnownMessage, SharedJsonStreamServer

pytestmark = pytest.mark.virtual_time

DONE = TurnEnded("success")


class Keeper:
    """Remembers where the log was when it took messages in, and is slow to say so until it is `quick`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken: dict[str | None, int] = {}
        self.quick = asyncio.Event()
        self.quick.set()

    async def known(self, message: UserMessage) -> KnownMessage | None:
        await self.quick.wait()
        since = self._taken.get(message.id)
        return None if since is None else KnownMessage(since, same=True)

    async def submit(self, message: UserMessage, when: When = "queue") -> None:
        self._taken[message.id] = self._session.shown
        if when != "steer" or not self._session.steer(message):
            self._session.submit(message)


class Shared:
    """A session, and hosts that come and go."""

    def __init__(self, fake: FakeAgent, session: Session) -> None:
        self.fake = fake
        self.session = session
        self.keeper = Keeper(session)

    def comes(self) -> tuple[Host, SharedJsonStreamServer]:
        """A host, after it was greeted."""
        host = Host()
        server = SharedJsonStreamServer(self.session, host, "ana", self.keeper)
        self.session.attach(server)
        server.greet()
        return host, server

    def goes(self, server: SharedJsonStreamServer) -> None:
        self.session.detach(server)

    async def over(self) -> None:
        """Wait for the end of the answer."""
        await self.session.at_rest()
        self.session.flush()


class FarLog(MemoryLog):
    """One whose records are kept, and so shown, only when it is `reached`."""

    shows_kept = True

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.reached = asyncio.Event()
        self.reached.set()

    async def sync(self) -> None:
        await self.reached.wait()

    async def __aenter__(self) -> None:
        """It is reached at the end of the block at the latest."""

    async def __aexit__(self, *failed: object) -> None:
        self.reached.set()


@asynccontextmanager
async def shared(log: MemoryLog | None = None) -> AsyncIterator[Shared]:
    fake, log = FakeAgent(), log or MemoryLog("s1")
    fake.steer = lambda message: True  # type: ignore[attr-defined]  # what conversations have that can be steered
    session = await Session.open(fake, log, Policy())
    try:
        yield Shared(fake, session)
    finally:
        await session.close()


async def say(server: SharedJsonStreamServer, msg_id: str, when: When = "queue") -> None:
    said = {"type": "message", "msg_id": msg_id, "input": "hello", "when": when}
    await server.hear(json.dumps(said).encode() + b"\n")


def heard(host: Host, msg_id: str) -> list[str]:
    """What the host was told of a message: its words, and the kinds of the other lines."""
    return [line.get("text") or line["type"] for line in host.take() if line.get("msg_id") == msg_id]


async def test_one_that_comes_into_the_middle_hears_the_rest_once_however_late_it_is_known_again() -> None:
    async with shared() as it:
        host, first = it.comes()
        await say(first, "m1")
        await until(lambda: it.fake.busy)
        it.fake.say(TextDelta("One "))
        await until(lambda: "One " in heard(host, "m1"))
        it.goes(first)
        host, again = it.comes()
        it.keeper.quick.clear()
        saying = asyncio.create_task(say(again, "m1"))
        it.fake.say(TextDelta("two."), DONE)
        await it.over()
        it.keeper.quick.set()
        await saying
        assert heard(host, "m1") == ["stream_start", "info", "two.", "stream_end", "info"]


async def test_one_that_comes_after_the_end_hears_all_of_it() -> None:
    async with shared() as it:
        _, first = it.comes()
        await say(first, "m1")
        await until(lambda: it.fake.busy)
        it.goes(first)
        it.fake.say(TextDelta("One "), TextDelta("two."), DONE)
        await it.over()
        host, again = it.comes()
        await say(again, "m1")
        assert heard(host, "m1") == ["info", "stream_start", "One ", "two.", "stream_end"]


@pytest.mark.parametrize("kept_first", [False, True])
async def test_one_that_comes_after_an_end_that_is_not_kept_yet_hears_all_of_it_once(kept_first: bool) -> None:
    log = FarLog("s1")
    async with shared(log) as it, log:
        _, first = it.comes()
        await say(first, "m1")
        await until(lambda: it.fake.busy)
        it.goes(first)
        log.reached.clear()
        it.fake.say(TextDelta("One."), DONE)
        await until(lambda: not it.session.state.open_turns)
        host, again = it.comes()
        if kept_first:
            log.reached.set()
            await it.session.settled()
        await say(again, "m1")
        log.reached.set()
        await it.session.settled()
        lines = [line for line in host.take() if line["type"] != "info"]
        assert [line.get("text") or line["type"] for line in lines] == [
            "ready",
            "stream_start",
            "One.",
            "stream_end",
        ]


@pytest.mark.parametrize("kept_first", [False, True])
async def test_so_does_one_that_comes_before_any_of_it_is_kept(kept_first: bool) -> None:
    log = FarLog("s1")
    async with shared(log) as it, log:
        _, first = it.comes()
        log.reached.clear()
        await say(first, "m1")
        it.goes(first)
        it.session.stop()
        await until(lambda: not it.session.state.open_turns)
        host, again = it.comes()
        if kept_first:
            log.reached.set()
            await it.session.settled()
        await say(again, "m1")
        log.reached.set()
        await it.session.settled()
        assert [each for each in heard(host, "m1") if each != "info"] == ["stream_start", "stream_end"]


async def test_one_whose_message_still_waits_hears_nothing_of_the_answer_before_it() -> None:
    async with shared() as it:
        _, first = it.comes()
        await say(first, "m1")
        await say(first, "m2")
        await until(lambda: it.fake.busy)
        it.goes(first)
        host, again = it.comes()
        await say(again, "m2")
        assert heard(host, "m2") == ["info"]
        it.fake.say(TextDelta("One."), DONE)
        await until(lambda: len(it.fake.heard) == 2)
        it.fake.say(TextDelta("Two."), DONE)
        await it.over()
        assert heard(host, "m2") == ["stream_start", "info", "Two.", "stream_end"]


@pytest.mark.parametrize("times", [1, 2])
async def test_one_whose_message_joined_the_answer_under_way_hears_it_begin_and_end(times: int) -> None:
    async with shared() as it:
        _, first = it.comes()
        await say(first, "m1")
        await until(lambda: it.fake.busy)
        await say(first, "m2", "steer")
        it.goes(first)
        host, again = it.comes()
        for _ in range(times):
            await say(again, "m2", "steer")
        it.fake.say(DONE)
        await it.over()
        assert heard(host, "m2") == [*["info"] * times, "stream_start", "stream_end"]


async def test_so_does_one_that_comes_after_that() -> None:
    async with shared() as it:
        _, first = it.comes()
        await say(first, "m1")
        await until(lambda: it.fake.busy)
        await say(first, "m2", "steer")
        it.goes(first)
        it.fake.say(TextDelta("One."), DONE)
        await it.over()
        host, again = it.comes()
        await say(again, "m2", "steer")
        assert heard(host, "m2") == ["info", "stream_start", "stream_end"]
