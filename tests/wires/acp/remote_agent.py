"""An agent for clients elsewhere, without a session behind it: what it says is what tests look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.base.lines import LineOutput
from trunkline.core.faults import UnknownAgent
from trunkline.wires.acp import messages
from trunkline.wires.acp.codec import JsonRpcError
from trunkline.wires.acp.messages import (
    CloseSessionRequest,
    LoadSessionRequest,
    NewSessionRequest,
    NewSessionResponse,
    OpenedSessionResponse,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
)
from trunkline.wires.acp.messages_base import AcpNotification, AcpRequest, AcpResult
from trunkline.wires.acp.messages_client import PermissionOption, RequestPermissionRequest
from trunkline.wires.acp.messages_content import TextBlock, ToolCallUpdate
from trunkline.wires.acp.messages_start import InitializeRequest, InitializeResponse
from trunkline.wires.acp.messages_updates import AgentMessageChunk, SessionNotification, UserMessageChunk
from trunkline.wires.acp.peer import AcpPeer
from trunkline.wires.acp.remote import AcpRemote, Scope, Visitor


class FarAgent:
    """The agent's end of one connection."""

    def __init__(self, visitor: Visitor, agent: str | None, output: LineOutput) -> None:
        if agent == "nobody":
            raise UnknownAgent("There is no agent `nobody`.")
        self.visitor = visitor
        self.agent = agent
        self.peer = AcpPeer(output, self, requests=messages.AGENT_REQUESTS, notifications=messages.AGENT_NOTIFICATIONS)
        self.heard: list[Any] = []
        self.closed = False
        self.take = self.peer.take

    async def knows(self, session_id: str) -> bool:
        return session_id == "old"

    async def close(self) -> None:
        self.closed = True
        await self.peer.close()

    def say(self, text: str, session: str = "s1") -> None:
        """Tell something in a session."""
        self.peer.tell(SessionNotification(session, AgentMessageChunk(TextBlock(text))))

    # What a peer asks of its handler.

    def asked(self, request: AcpRequest) -> Awaitable[AcpResult]:
        self.heard.append(request)
        return self._answer(request)

    def told(self, notification: AcpNotification) -> None:
        self.heard.append(notification)

    def broken(self, error: JsonRpcError) -> None:
        self.heard.append(error)

    async def _answer(self, request: AcpRequest) -> AcpResult:
        match request:
            case InitializeRequest():
                return InitializeResponse(1)
            case NewSessionRequest():
                return NewSessionResponse("s1")
            case LoadSessionRequest(session_id="old"):
                for word in ("one", "two"):
                    self.peer.tell(SessionNotification("old", UserMessageChunk(TextBlock(word))))
                    await asyncio.sleep(0)
                return OpenedSessionResponse()
            case ResumeSessionRequest(session_id="old"):
                return OpenedSessionResponse()
            case PromptRequest(session_id=session):
                self.say("hello", session)
                question = RequestPermissionRequest(
                    session, ToolCallUpdate("c1"), (PermissionOption("yes", "Yes", "allow_once"),)
                )
                answer = await self.peer.ask(question)
                self.say(f"you said {answer.outcome.option_id}", session)
                return PromptResponse("end_turn")
            case CloseSessionRequest():
                return AcpResult()
        raise JsonRpcError(-32002, "There is no such session.")


class Far:
    """The agent at its address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.agents: list[FarAgent] = []
        self.unwelcome: set[str] = set()
        self.end: Callable[[], object] = lambda: None
        """Has the server end."""

    def connect(self, visitor: Visitor, agent: str | None, output: LineOutput) -> FarAgent:
        self.agents.append(FarAgent(visitor, agent, output))
        return self.agents[-1]

    def visitor(self, scope: Scope) -> Visitor:
        """Whoever says so."""
        name = dict(scope["headers"]).get(b"x-visitor", b"ann").decode()
        return Visitor(name, lambda: name not in self.unwelcome)


@asynccontextmanager
async def far_agent(wrap: Callable[[AcpRemote], Any] = lambda app: app) -> AsyncIterator[Far]:
    """Serve such agents on loopback, as the exchange does."""
    far = Far("")
    remote = AcpRemote(far.connect, far.visitor)
    stop, begun = asyncio.Event(), asyncio.Event()

    def reachable(host: str, port: int) -> None:
        far.end = lambda: asyncio.ensure_future(remote.close())
        far.url = f"http://{host}:{port}/acp"
        begun.set()

    serving = asyncio.create_task(asgi.serve(wrap(remote), "127.0.0.1", 0, stop, reachable, websockets=1 << 25))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await begun.wait()
        yield far
    finally:
        await remote.close()
        stop.set()
        await serving
        assert all(agent.closed for agent in far.agents)
