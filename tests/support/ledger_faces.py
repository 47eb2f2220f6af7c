"""More ways into an exchange for the cells of the ledger's matrix: those of editors, OpenAI's clients and MCP hosts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from tests.support.attached import client
from tests.support.ledger_agents import BEGUN
from tests.support.ledger_ways import AGENT, Heard, Way, next_line
from tests.support.openai_world import Caller
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.base.attach import AttachHeader
from trunkline.exchange.api.app import application

ALLOW = "allow_once"


class AcpWay(Way):
    """An editor that speaks ACP with an attached program."""

    _session: str | None = None
    _count = 0

    async def enter(self, stack: AsyncExitStack) -> None:
        self._editor = await stack.enter_async_context(client(self.exchange, AttachHeader("acp", AGENT)))
        place = {"cwd": str(self.home), "mcpServers": []}
        await self._request("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, Heard())
        if self._session is None:
            self._session = (await self._request("session/new", place, Heard()))["result"]["sessionId"]
        else:
            # Tells all that was said before it answers.
            await self._request("session/load", {"sessionId": self._session, **place}, Heard())

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard = Heard()
        params = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        answer = await self._request("session/prompt", params, heard, stop=stop)
        heard.over = True
        if "error" in answer:
            heard.fault, heard.kind = answer["error"]["message"], answer["error"]["data"]["kind"]
        else:
            heard.stopped = answer["result"]["stopReason"] == "cancelled"
        return heard

    async def _request(self, method: str, params: Any, heard: Heard, *, stop: bool = False) -> Any:
        """Its answer. Until that comes the agent may say and ask something."""
        self._count += 1
        self._send(id=self._count, method=method, params=params)
        while True:
            line = await next_line(self._editor)
            assert line is not None
            match line.get("method"):
                case "session/update":
                    update = line["params"]["update"]
                    if update["sessionUpdate"] == "agent_message_chunk":
                        heard.text += update["content"]["text"]
                        if stop:
                            self._send(method="session/cancel", params={"sessionId": self._session})
                            stop = False
                case "session/request_permission":
                    heard.asked = True
                    (chosen,) = (each["optionId"] for each in line["params"]["options"] if each["kind"] == ALLOW)
                    self._send(id=line["id"], result={"outcome": {"outcome": "selected", "optionId": chosen}})
                case None if line["id"] == self._count:
                    return line

    def _send(self, **members: Any) -> None:
        self._editor.send(jsonrpc="2.0", **members)


class OpenAIWay(Way):
    """A client of OpenAI's that reads streams: of Chat Completions and of Responses by turns, in one session."""

    can_be_asked = False
    _id = "of-a-client"
    _count = 0

    async def enter(self, stack: AsyncExitStack) -> None:
        self._app = application(self.exchange, local=True)
        stack.push_async_callback(self._app.state.faces.ended)
        stack.callback(self._app.state.faces.end)

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard, seen = Heard(), 0
        self._count += 1
        body: dict[str, Any] = {"model": AGENT, "stream": True}
        if self._count % 2:
            path, tell = "/v1/chat/completions", _in_chat
            body["messages"] = [{"role": "user", "content": text}]
        else:
            path, tell = "/v1/responses", _in_responses
            body["input"] = text
        stream = Caller(self._app, path, body, {"x-trunkline-session": self._id})
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not heard.over:
                events = stream.events
                for event in events[seen:]:
                    tell(event, heard)
                seen = len(events)
                if stop and heard.text:
                    # All that it can do.
                    await stream.leave()
                    heard.over = True
                await asyncio.sleep(0.001)
        await stream.whole()
        return heard


def _in_chat(event: Any, heard: Heard) -> None:
    if event is None:
        heard.over = True
    elif "error" in event:
        heard.fault, heard.kind = event["error"]["message"], event["error"]["code"]
    else:
        heard.text += "".join(choice["delta"].get("content") or "" for choice in event["choices"])


def _in_responses(event: Any, heard: Heard) -> None:
    if event is None:
        heard.over = True
        return
    match event["type"]:
        case "response.output_text.delta":
            heard.text += event["delta"]
        case "response.failed":
            error = event["response"]["error"]
            heard.fault, heard.code = error["message"], error["code"]


class McpWay(Way):
    """A host that speaks MCP with the official SDK, by streamable HTTP, and shows its user what is asked."""

    _id: str | None = None

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(home, monkeypatch)
        self._asked = False

    async def enter(self, stack: AsyncExitStack) -> None:
        url = await stack.enter_async_context(_served(application(self.exchange, local=True)))
        web = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS))
        talking = streamable_http_client(f"{url}/mcp", http_client=web)
        self._host = await stack.enter_async_context(McpClient(talking, elicitation_callback=self._answer))

    async def _answer(self, context: Any, params: Any) -> ElicitResult:
        self._asked = True
        return ElicitResult(action="accept", content={"decision": "approve once"})

    async def ask(self, text: str, *, stop: bool = False) -> Heard:
        heard, self._asked = Heard(), False
        begun = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            if re.search(f"{BEGUN}|word", message or ""):
                begun.set()

        arguments = {"message": text} | ({"session": self._id} if self._id else {})
        call = asyncio.create_task(self._host.call_tool(f"ask_{AGENT}", arguments, progress_callback=hear))
        async with asyncio.timeout(PATIENCE_SECONDS):
            if stop:
                await begun.wait()
                call.cancel()
                await asyncio.wait({call})
                heard.over = True
                return heard
            result = await call
        said = "".join(getattr(each, "text", "") for each in result.content)
        heard.over, heard.asked = True, self._asked
        if result.is_error:
            heard.fault = said
        else:
            heard.text = said
            self._id = result.structured_content["session"]
        return heard


@asynccontextmanager
async def _served(app: Any) -> AsyncIterator[str]:
    """An application at an address."""
    stop = asyncio.Event()
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        asgi.serve(
            app, "127.0.0.1", 0, stop, lambda host, port: found.set_result(f"http://{host}:{port}"),
            stopping=app.state.faces.end,
        )
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            url = await found
        yield url
    finally:
        stop.set()
        await serving
        await app.state.faces.ended()
