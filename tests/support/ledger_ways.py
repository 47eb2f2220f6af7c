"""The ways into an exchange, each as its own client sees it: for the cells of the ledger's matrix.

A client says something and hears how that ended; asked for a tool, it says yes. It can stop an answer in the middle, if
its protocol can, and come back to its conversation after a restart of the exchange.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.exchange.api_world import BASE, Reader
from tests.support.attached import Client, client
from tests.support.chat_platform import CHAT, ME, MemoryPlatform
from tests.support.ledger_agents import BEGUN, DONE, FAIL, HELLO, NOT_DONE, RECALL, SAY, USE, WAIT
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import echo
from trunkline.base import attach, shapes
from trunkline.base.attach import AttachHeader
from trunkline.core.events import Envelope, Event, TextDelta
from trunkline.core.faults import Fault
from trunkline.exchange.api.app import application
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines import bridge, tryll
from trunkline.exchange.lines.brain import ExchangeBrain
from trunkline.exchange.service import Service
from trunkline.exchange.settings import WireSettings
from trunkline.runner.prompting import DecisionPrompt
from trunkline.wires.agentproc.messages import TurnRequest
from trunkline.wires.tryll.drive import RemoteAgent, Tryll
from trunkline.wires.tryll.messages import HistoryEntry

#: The agent's name in the exchange.
AGENT = "a"

#: What is shown last in a chat, by what was said; each may also end in other ways.
_LAST_WORDS = {SAY: HELLO, USE: f"{DONE}|{NOT_DONE}", WAIT: r"\(stopped", FAIL: r"\*\*Error", RECALL: RECALL}
_OTHER_ENDS = r"\*\*Error|unclear|no answer"


class Heard:
    """One turn, as a client heard it."""

    def __init__(self) -> None:
        self.text = ""
        self.asked = False
        """Whether it was asked about a tool."""
        self.fault = ""
        """What went wrong, in words."""
        self.kind = ""
        """What kind of a fault it was, of all there are."""
        self.code = ""
        """The same, where several kinds share a code."""
        self.stopped = False
        """Whether it was told that the turn was stopped."""
        self.over = False
        """Whether it was told, one way or another, that the turn has ended."""


class Way(ABC):
    """A client, and its way into the exchange that runs now."""

    can_be_asked = True

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.monkeypatch = monkeypatch
        self.exchange: Exchange

    @asynccontextmanager
    async def inside(self, exchange: Exchange) -> AsyncIterator[None]:
        """Be there as long as the block lasts. The second time, it comes back to its conversation."""
        self.exchange = exchange
        async with AsyncExitStack() as stack:
            await self.enter(stack)
            yield

    async def session(self) -> str:
        """The id of the session that it is in."""
        rows = await self.exchange.switchboard.rows()
        return rows[0].id

    async def events(self) -> list[Event]:
        """What the log has of the last turn of its session."""
        found = [
            each for each in self.exchange.switchboard.peek(await self.session()).records if isinstance(each, Envelope)
        ]
        last = max((each.turn for each in found), default=0)
        return [each.event for each in found if each.turn == last]

    @abstractmethod
    async def enter(self, stack: AsyncExitStack) -> None: ...

    @abstractmethod
    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        """Say something, and hear the turn out. With `stop`, it is stopped as soon as something is heard."""


class JsonStreamWay(Way):
    """A host that speaks the JSON stream with an attached program."""

    _id: str | None = None
    _count = 0

    async def enter(self, stack: AsyncExitStack) -> None:
        header = AttachHeader("jsonstream", AGENT, resume=self._id)
        self._client = await stack.enter_async_context(client(self.exchange, header))
        (ready,) = await self._client.until("ready")
        self._id = str(ready["session_id"])

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard, host = Heard(), self._client
        self._count += 1
        host.send(type="message", msg_id=f"m{self._count}", input=text)
        while not heard.over:
            line = await next_line(host)
            assert line is not None
            match line["type"]:
                case "text_delta":
                    heard.text += line["text"]
                    if stop:
                        host.send(type="stop")
                        stop = False
                case "tool_request":
                    heard.asked = True
                    host.send(type="tool_approve", call_id=line["call_id"])
                case "error":
                    heard.fault, heard.code = line["error"]["message"], line["error"]["code"]
                case "stream_end":
                    heard.over = True
        return heard


class AgentProcWay(Way):
    """A bridge of AgentProc, protocol 0.4, whose process is attached: one for each message."""

    _id = ""

    async def enter(self, stack: AsyncExitStack) -> None:
        """Nothing is there between two messages."""

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard = Heard()
        turn = TurnRequest(text, session_id=self._id, permission=True)
        header = AttachHeader("agentproc", AGENT, resume=self._id or None, dialect="0.4", turn=shapes.encode(turn))
        async with client(self.exchange, header) as host:
            while (line := await next_line(host)) is not None:
                self._id = line.get("session_id") or self._id
                match line["type"]:
                    case "partial":
                        heard.text += line["text"]
                        if stop and line["text"]:
                            # What the program does that gets SIGTERM: see `tests/cli/test_attaching.py`.
                            host.writer.write(b"\n" + attach.STOP + b"\n")
                            stop = False
                    case "permission_request":
                        heard.asked = True
                        host.send(type="permission_response", request_id=line["request_id"], behavior="allow")
                    case "error":
                        heard.fault = line["message"]
            heard.over = host.ending is not None
        return heard


class TryllWay(Way):
    """A game whose graph has the agent in the place of a model."""

    can_be_asked = False
    _history: tuple[HistoryEntry, ...] = ()

    async def enter(self, stack: AsyncExitStack) -> None:
        service = tryll.service(self.exchange, WireSettings("tryll", None, {"listen": "127.0.0.1:0"}))
        await stack.enter_async_context(_running(service))
        port = int(service.where.rpartition(":")[2])
        game = await stack.enter_async_context(Tryll("127.0.0.1", port))
        self._agent: RemoteAgent = await game.create_agent(echo(), default_model=f"agent:{AGENT}", diagnostics=True)
        if self._history:
            await self._agent.restore(self._history)

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard = Heard()
        async with self._agent.stream(text, check=False, timeout=PATIENCE_SECONDS) as reply:
            async for piece in reply:
                heard.text += piece
                if stop:
                    await self._agent.cancel()
                    stop = False
            turn = await reply.result()
        heard.over, heard.stopped = True, turn.cancelled
        heard.fault = str(turn.debug.get("error", ""))
        self._history = await self._agent.history()
        return heard


class ChatWay(Way):
    """Somebody in a chat."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(home, monkeypatch)
        self.platform = MemoryPlatform()
        self.platform.name = "telegram"

    async def enter(self, stack: AsyncExitStack) -> None:
        self.monkeypatch.setattr(bridge, "made", lambda *_: self.platform)
        keys = {"allow": [f"telegram:{ME}"], "token_env": "T", "verbosity": "quiet"}
        await stack.enter_async_context(_running(bridge.service(self.exchange, WireSettings("telegram", None, keys))))

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard, platform = Heard(), self.platform
        before = len(platform.chats[CHAT])
        platform.says(text, at=None)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not re.search(f"{_LAST_WORDS[text]}|{_OTHER_ENDS}", heard.text):
                # Not any text: the last of the turn before may come late.
                if stop and re.search(BEGUN, heard.text):
                    platform.says("/stop", at=None)
                    stop = False
                if not heard.asked and any(each.buttons for each in platform.chats[CHAT][before:]):
                    heard.asked = True
                    platform.presses("Approve")
                await asyncio.sleep(0.001)
                heard.text = "\n".join(each.text for each in platform.chats[CHAT][before:])
            await (await self.exchange.switchboard.find(await self.session())).session.at_rest()
        heard.over, heard.stopped = True, "(stopped)" in heard.text
        heard.fault = heard.text.partition("**Error**: ")[2]
        return heard


class RunnerWay(Way):
    """A runner that asks for a decision. To stop, it can only wait no longer."""

    can_be_asked = False

    async def enter(self, stack: AsyncExitStack) -> None:
        self._brain = ExchangeBrain(
            self.exchange.switchboard,
            AGENT,
            session_id="runner-of-ada",
            person="runner:ada",
            wire="runner",
            seconds=PATIENCE_SECONDS,
        )
        stack.push_async_callback(self._brain.close)

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard = Heard()
        asking = asyncio.create_task(self._brain.answer(DecisionPrompt("Decide.", text)))
        try:
            if stop:
                await self._speaks()
                asking.cancel()
            heard.text = (await asking).text
        except asyncio.CancelledError:
            heard.stopped = True
        except Fault as fault:
            # The report of a cycle has no more of it.
            heard.fault = str(fault)
        heard.over = True
        return heard

    async def _speaks(self) -> None:
        """Wait until the agent has said something in a turn that is not over."""
        live = await self.exchange.switchboard.find(await self.session())
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for item in live.session.subscribe():
                if isinstance(item, Envelope) and isinstance(item.event, TextDelta):
                    return


class HttpWay(Way):
    """A client of the HTTP API, which reads the events as they come."""

    _id: str | None = None

    async def enter(self, stack: AsyncExitStack) -> None:
        app = application(self.exchange, local=True)
        transport = httpx.ASGITransport(app)
        self._http = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=BASE))
        body = {"agent": AGENT} | ({"session_id": self._id} if self._id else {})
        self._id = (await self._post("/api/sessions", body))["id"]
        self._path = f"/api/sessions/{self._id}"
        self._reader = Reader(app, f"{self._path}/events", {})
        stack.push_async_callback(self._reader.leave)

    async def _post(self, path: str, body: Any = None) -> Any:
        found = await self._http.post(path, json=body)
        assert found.is_success, found.text
        return found.json()

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard, seen = Heard(), 0
        turn = (await self._post(f"{self._path}/messages", {"text": text}))["turn"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not heard.over:
                events = [(kind, data) for kind, data in self._reader.events if data["turn"] == turn]
                for kind, data in events[seen:]:
                    await self._hear(heard, kind, data)
                if stop and heard.text:
                    await self._post(f"{self._path}/stop")
                    stop = False
                seen = len(events)
                await asyncio.sleep(0.001)
        return heard

    async def _hear(self, heard: Heard, kind: str, event: Mapping[str, Any]) -> None:
        match kind:
            case "text_delta":
                heard.text += event["text"]
            case "tool_requested":
                heard.asked = True
                found = (await self._http.get("/api/approvals?state=pending")).json()["approvals"]
                (row,) = (row["id"] for row in found if row["call_id"] == event["call_id"])
                await self._post(f"/api/approvals/{row}", {"decision": "approve"})
            case "failed":
                heard.fault, heard.kind = event["message"], event["kind"]
            case "turn_ended":
                heard.over, heard.stopped = True, event["outcome"] == "cancelled"


@asynccontextmanager
async def _running(service: Service) -> AsyncIterator[None]:
    """A wire that is served as long as the block lasts."""
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(service.run(stop, reachable.set))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reachable.wait()
        yield
    finally:
        stop.set()
        await task


async def next_line(host: Client) -> dict[str, Any] | None:
    """The next line of an attached program; None at its end."""
    while b"\n" not in host.raw:
        if not await host.more():
            return None
    line, _, host.raw = host.raw.partition(b"\n")
    found: dict[str, Any] = json.loads(line)
    return found
