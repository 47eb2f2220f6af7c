"""A client of the official Python SDK: has one message answered over HTTP or a WebSocket, and prints what it was told.

    python acp_client.py http|ws CWD TEXT URL TOKEN

It runs in an environment of the SDK's own. A second connection loads the session, as an editor does that was started
again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp  # type: ignore[import-not-found, unused-ignore]  # in the environment that this is run in
from acp import schema
from acp.http.client import create_http_stream  # type: ignore[import-not-found, unused-ignore]
from acp.ws.client import create_websocket_stream  # type: ignore[import-not-found, unused-ignore]

PATIENCE_SECONDS = 60.0


class Editor:
    """Says yes, and keeps what it is told."""

    def __init__(self) -> None:
        self.text = ""
        self.kinds: list[str] = []
        self.asked: list[list[str]] = []

    def on_connect(self, conn: Any) -> None:
        """Nothing is asked here."""

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **more: Any) -> Any:
        self.asked.append([option.kind for option in options])
        chosen = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)


async def heard(client: Any, text: str) -> None:
    """Wait until a client has been told all of that: over HTTP it comes in a stream of its own, beside the answers."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while client.text != text:  # noqa: ASYNC110  (the SDK tells nobody)
            await asyncio.sleep(0.01)


async def main(how: str, cwd: str, text: str, url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}

    async def stream() -> Any:
        if how == "http":
            return create_http_stream(url, headers=headers)
        return await create_websocket_stream(url.replace("http", "ws", 1), headers=headers)

    first, second = Editor(), Editor()
    transport = await stream()
    agent = acp.connect_to_agent(first, transport)
    hello = await agent.initialize(protocol_version=1)
    session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
    prompt = [schema.TextContentBlock(type="text", text=text)]
    ended = await agent.prompt(session_id=session, prompt=prompt)
    said, kinds, asked = first.text, list(first.kinds), list(first.asked)
    listed = await agent.list_sessions()
    unknown = None
    try:
        await agent.load_session(session_id="none", cwd=cwd, mcp_servers=[])
    except acp.RequestError as error:
        unknown = error.code
    again = await stream()
    other = acp.connect_to_agent(second, again)
    await other.initialize(protocol_version=1)
    await other.load_session(session_id=session, cwd=cwd, mcp_servers=[])
    await heard(second, said)
    replayed = list(second.kinds)
    await other.prompt(session_id=session, prompt=prompt)
    await heard(first, said * 2)
    for each, connection in ((transport, agent), (again, other)):
        await connection.close()
        await each.close()
    told = {
        "agent": hello.agent_info.name,
        "session": session,
        "text": said,
        "kinds": kinds,
        "asked": asked,
        "stop_reason": ended.stop_reason,
        "listed": session in [each.session_id for each in listed.sessions],
        "unknown": unknown,
        "replayed": replayed,
        "again": second.text,
        "seen": first.text.removeprefix(said),
    }
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
