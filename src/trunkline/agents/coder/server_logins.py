"""`/mcp login`: somebody logs in to an MCP server in the middle of a conversation.

They are told the address to open; a terminal opens it for them. A browser on another machine cannot come back to this
one: for that there is `trunkline mcp login --no-browser`.
"""

from __future__ import annotations

import asyncio

from trunkline.agents.coder.compaction import Say
from trunkline.base.programs import own_command
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.core.events import MCP_LOGIN, Extension, Notice, Progress

#: Between two signs of life. Hosts give up after 15 seconds of silence.
PROGRESS_SECONDS = 5.0


class ConversationUser:
    """See `tools.mcp.oauth.flow.LoginUser`."""

    def __init__(self, server: str, say: Say) -> None:
        self._server = server
        self._say = say

    async def show(self, url: str, redirect_uri: str) -> None:
        await self._say(
            Notice(
                f"To log in to `{self._server}`, open this address in a browser on the machine of the agent:\n{url}\n"
                f"If your browser is on another one, stop this, and use `{own_command()} mcp login {self._server} "
                "--no-browser` on the agent's."
            )
        )
        await self._say(Extension(MCP_LOGIN, {"name": self._server, "url": url}))

    async def pasted(self) -> str:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    def told(self, problem: str) -> None:
        """Nothing is pasted here."""


async def log_in(spec: AddMcpServer, say: Say, redactor: Redactor) -> None:
    """Let whoever talks to the agent log in to a server; what comes of it is kept.

    Raises:
        Fault: it did not work; the text names the server.
    """
    from trunkline.tools.mcp.oauth.accounts import log_in_and_keep
    from trunkline.tools.mcp.oauth.store import LoginStore

    person = ConversationUser(spec.name, say)
    work = asyncio.create_task(log_in_and_keep(spec, person, LoginStore(), redactor), name=f"login to {spec.name}")
    try:
        while not (await asyncio.wait({work}, timeout=PROGRESS_SECONDS))[0]:
            await say(Progress(f"still waiting for the login to `{spec.name}`"))
    finally:
        work.cancel()
        await asyncio.wait({work})
    work.result()
