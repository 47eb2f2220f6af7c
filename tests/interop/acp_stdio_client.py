"""A client of the official Python SDK that starts an agent on standard streams, and prints what it was told.

    python acp_stdio_client.py CWD ANSWER COMMAND ...

`ANSWER` is the kind of the option that it chooses when it is asked, or `cancel`, which stops the turn instead. Every
line of the agent is held against the SDK's own models. It runs in an environment of the SDK's own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import acp  # type: ignore[import-not-found, unused-ignore]  # in the environment that this is run in
from acp import schema


class Editor:
    """Answers as it was told to, and keeps what it hears."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.agent: Any = None
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.order: list[str] = []

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))
        self.order.append(update.session_update)

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **more: Any) -> Any:
        self.order.append("asked")
        self.asked.append(tool_call.model_dump(by_alias=True, exclude_none=True, mode="json"))
        if self.answer == "cancel":
            await self.agent.cancel(session_id=session_id)
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = next(option for option in options if option.kind == self.answer)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    @property
    def text(self) -> str:
        chunks = [each for each in self.updates if each["sessionUpdate"] == "agent_message_chunk"]
        return "".join(each["content"]["text"] for each in chunks)


async def refused(request: Any) -> int | None:
    try:
        await request
    except acp.RequestError as error:
        code: int = error.code
        return code
    return None


async def main(cwd: str, answer: str, command: str, *arguments: str) -> None:
    editor = Editor(answer)
    wrong: list[str] = []

    def observe(event: Any) -> None:
        """Whether the agent's line is one by the SDK's own models."""
        message = event.message
        if event.direction != "incoming":
            return
        try:
            if message.get("method") == "session/update":
                schema.SessionNotification.model_validate(message["params"])
            elif message.get("method") == "session/request_permission":
                schema.RequestPermissionRequest.model_validate(message["params"])
        except ValueError as error:
            wrong.append(str(error))

    async with acp.spawn_agent_process(
        editor, command, *arguments, env=dict(os.environ), cwd=cwd, observers=[observe], use_unstable_protocol=True
    ) as (agent, process):
        hello = await agent.initialize(protocol_version=1)
        opened = await agent.new_session(cwd=cwd, mcp_servers=[])
        session = opened.session_id
        prompt = [schema.TextContentBlock(type="text", text="Go")]
        ended = await agent.prompt(session_id=session, prompt=prompt)
        told = {
            "agent": hello.agent_info.name,
            "modes": [mode.id for mode in opened.modes.available_modes],
            "text": editor.text,
            "order": list(editor.order),
            "asked": editor.asked,
            "calls": [each for each in editor.updates if "toolCallId" in each],
            "stop_reason": ended.stop_reason,
            "usage": ended.usage is not None,
        }
        await agent.set_session_mode(session_id=session, mode_id="yolo")
        listed = await agent.list_sessions(cwd=cwd)
        told["listed"] = session in [each.session_id for each in listed.sessions]
        forked = await agent.fork_session(session_id=session, cwd=cwd)
        told["forked"] = forked.session_id != session
        await agent.close_session(session_id=session)
        editor.updates.clear()
        await agent.load_session(session_id=session, cwd=cwd, mcp_servers=[])
        told["replayed"] = editor.text
        await agent.resume_session(session_id=forked.session_id, cwd=cwd)
        told["unknown"] = await refused(agent.load_session(session_id="none", cwd=cwd, mcp_servers=[]))
        told["relative"] = await refused(agent.new_session(cwd="here", mcp_servers=[]))
        told["extension"] = await refused(agent.ext_method("x", {}))
        told["wrong"] = wrong
        process.stdin.close()
        told["exit"] = await process.wait()
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
