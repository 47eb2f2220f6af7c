"""A whole bridge in memory: a platform, an agent on strings, sessions that outlive a restart of the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.chat_platform import CHAT, ME, MemoryPlatform
from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.limiter import TurnLimiter
from trunkline.chat.opening import Opener
from trunkline.chat.senders import Senders
from trunkline.chat.settings import BridgeSettings
from trunkline.core.agent import Agent, OpenRequest
from trunkline.core.events import Event, TextDelta, TurnEnded
from trunkline.core.faults import SessionHeld, SessionNotFound
from trunkline.core.log import EventLog, MemoryLog, SessionInfo
from trunkline.core.usage import NOTHING_USED

DONE = TurnEnded("success", NOTHING_USED)


T = TypeVar("T")


async def at_once(work: Callable[[], T], /) -> T:
    """In no thread: the tests' clock does not wait for threads."""
    return work()


class _HeldLog(MemoryLog):
    """A log that one session has at a time."""

    held = False

    def close(self) -> None:
        self.held = False

    def ending(self) -> None:
        pass

    def discard(self) -> None:
        super().discard()
        self.held = False


class MemorySessions:
    """A `SessionStore` that forgets nothing until it is forgotten itself."""

    def __init__(self) -> None:
        self.logs: dict[str, _HeldLog] = {}
        self.agents: dict[str, str | None] = {}

    def create(self, session: str, workspace: str, agent: str | None = None) -> EventLog:
        self.agents[session] = agent
        self.logs[session] = log = _HeldLog(session)
        log.held = True
        return log

    def open(self, session: str) -> EventLog:
        log = self.logs.get(session)
        if log is None:
            raise SessionNotFound(f"There is no session `{session}`.")
        if log.held:
            raise SessionHeld(f"The session `{session}` is open.")
        log.held = True
        return log

    def latest(self, workspace: str) -> str:
        raise SessionNotFound("Nobody asks.")

    def list(self) -> list[SessionInfo]:
        return []


class BridgeFake(FakeAgent):
    """A fake that remembers how it was opened."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.spec = name
        self.requests: list[OpenRequest] = []

    async def open(self, request: OpenRequest) -> FakeAgent:
        self.requests.append(request)
        return await super().open(request)


class Stage:
    """What survives a restart of the bridge: the platform, the disk, the sessions, and what agents were made."""

    def __init__(self, directory: Path, platform: MemoryPlatform | None = None, **settings: Any) -> None:
        self.directory = directory
        self.platform = platform or MemoryPlatform()
        settings = {"agent": "fake", "agents": {"fake": "fake"}, "workspace": str(directory), **settings}
        self.settings = BridgeSettings(**settings)
        self.allow: tuple[str, ...] = (f"memory:{ME}",)
        self.approvers: tuple[str, ...] = ()
        self.unlimited: tuple[str, ...] = ()
        self.environ: dict[str, str] = {}
        self.most_turns: int | None = None
        """How many turns may run at once, if not the usual number."""
        self.sessions = MemorySessions()
        self.fakes: list[BridgeFake] = []
        self.refuses: Exception | None = None
        """What making an agent raises."""
        self.store: ChatStore | None = None
        self.made: Bridge | None = None
        """The bridge that was made last, started or not."""

    @property
    def agent(self) -> BridgeFake:
        """The one that was made last."""
        return self.fakes[-1]

    def make(self, spec: str, options: Mapping[str, Any]) -> Agent:
        if self.refuses is not None:
            raise self.refuses
        self.fakes.append(BridgeFake(spec))
        return self.fakes[-1]

    @asynccontextmanager
    async def bridge(self) -> AsyncIterator[Bridge]:
        """Start a bridge and let it serve; it is closed in good order at the end."""
        bridge = await self.started()
        serving = asyncio.ensure_future(bridge.serve())
        try:
            yield bridge
        finally:
            await self.end(bridge, serving)

    async def started(self) -> Bridge:
        bridge = self.unstarted()
        await bridge.start()
        return bridge

    def unstarted(self) -> Bridge:
        """A bridge with a store that is open."""
        self.store = ChatStore(str(self.directory / "chat.db"))
        opener = Opener(self.settings, make=self.make, sessions=self.sessions, environ=self.environ)
        if self.most_turns is not None:
            opener.limiter = TurnLimiter(self.most_turns)
        senders = Senders(self.allow, self.approvers, rate=self.settings.rate, unlimited=self.unlimited)
        loop = asyncio.get_running_loop()
        files = str(self.directory / "files")
        bridge = Bridge(
            self.platform, self.store, opener, senders, files=files, clock=loop.time, wall=loop.time, aside=at_once
        )
        self.made = bridge
        return bridge

    async def end(self, bridge: Bridge, serving: asyncio.Task[None]) -> None:
        """As the command does it on a signal."""
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await bridge.close()
        assert self.store is not None
        self.store.close()

    async def vanishes(self, bridge: Bridge, serving: asyncio.Task[None]) -> None:
        """As after `kill -9`: nothing is ended, and nobody writes to the disk any more. Its locks are free."""
        assert self.store is not None
        serving.cancel()
        self.store.close()
        for log in self.sessions.logs.values():
            log.held = False
        await bridge.outbox.close()

    async def sees(self, text: str, chat: str = CHAT) -> None:
        """Wait until a message holds this. Time passes meanwhile."""
        await self.passes(lambda: self.platform.sees(text, chat), f"`{text}` in {self.platform.shown(chat)}")

    async def shows(self, number: int, text: str = "", chat: str = CHAT) -> None:
        """Wait until so many messages hold this."""
        await self.passes(
            lambda: sum(text in each for each in self.platform.shown(chat)) >= number, f"{number} `{text}`"
        )

    async def asked(self, number: int = 1) -> None:
        """Wait until the agent has got its message of that number, all agents together."""
        await self.passes(lambda: self.heard >= number, "a message for the agent")
        await until(lambda: self.agent.busy)

    @property
    def heard(self) -> int:
        """How many messages the agents have got, all together."""
        return sum(len(fake.heard) for fake in self.fakes)

    async def exchange(self, text: str, answer: str) -> None:
        """Somebody writes, and is answered. Nothing else is waiting."""
        number = self.heard + 1
        self.platform.says(text)
        await self.asked(number)
        await self.answers(answer)

    async def half_answered(self, first: str, *waiting: str) -> None:
        """Somebody writes several messages; the first is being answered with `half`, and the others wait."""
        for text in (first, *waiting):
            self.platform.says(text)
        await self.asked()
        self.agent.say(TextDelta("half"))
        await self.sees("half")
        await self.sees(f"{len(waiting)} messages are waiting")

    async def passes(self, condition: Callable[[], object], what: str = "it") -> None:
        """Wait, up to a minute of virtual time, in small steps."""
        for _ in range(600):
            if condition():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"it never came about: {what}; {self.platform.shown()}")

    async def answers(self, text: str, *events: Event) -> None:
        """Let the agent answer the message that it has got, and wait until that is shown."""
        self.agent.say(*events, TextDelta(text), DONE)
        await self.sees(text)
