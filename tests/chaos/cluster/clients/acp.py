"""An editor behind `trunkline acp AGENT --attach`, which stays, and comes back when the node has gone.

The wire has no id for a prompt: an editor that does not know whether one was taken in does not say it again. What it
has heard a word of was taken in, and goes on without it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.chaos.cluster.clients.attached import BROKEN, Attached, AttachRefused
from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, TRY_SECONDS, Choose
from tests.chaos.cluster.hearing import Heard, Hearing, words
from trunkline.base.attach import AttachHeader


class AcpClient:
    """One editor."""

    def __init__(self, session: str, choose: Choose) -> None:
        self._session = session
        self._choose = choose
        self._link: Attached | None = None
        self._node = ""
        self._number = 0
        self._asked: dict[int, Heard] = {}
        """The prompts of this connection, by their numbers: also earlier ones, whose end may come once more."""

    async def converse(self, hearing: Hearing) -> None:
        while self._link is None:
            try:
                self._link = await self._connected()
            except BROKEN:
                await asyncio.sleep(PAUSE_SECONDS)
        heard = hearing.connected(self._node)
        prompt = [{"type": "text", "text": hearing.text}]
        self._asked[self._send(self._link, "session/prompt", sessionId=self._session, prompt=prompt)] = heard
        try:
            while not heard.ends and (said := await self._link.line()) is not None:
                self._told(said, hearing, heard)
        except BROKEN:
            await asyncio.sleep(PAUSE_SECONDS)
        if heard.ends != ["end_turn"]:
            # It may have been sent away from the session.
            self.close()

    def _told(self, said: dict[str, Any], hearing: Hearing, heard: Heard) -> None:
        if said.get("method") == "session/update":
            update = said["params"]["update"]
            text = update["content"]["text"] if update["sessionUpdate"] == "agent_message_chunk" else ""
            # It is told the answers to others as well, and not whose they are.
            if any(mark == hearing.mark for mark, _ in words(text)):
                hearing.taken()
                heard.text += text
            return
        # A question about a tool has a method, and is for others to answer.
        about = self._asked.get(said.get("id", 0)) if "method" not in said else None
        if about is None:
            return
        if "error" in said:
            about.ends.append(f"error: {said['error'].get('message')}")
        else:
            about.ends.append(said["result"]["stopReason"])
            about.is_whole = about.ends == ["end_turn"]

    async def _connected(self) -> Attached:
        """A connection to a node, in the session.

        Raises:
            AttachRefused, OSError, EOFError, TimeoutError: there is none now.
        """
        node = self._choose()
        self._node = node.name
        async with asyncio.timeout(TRY_SECONDS):
            link = await Attached.to(node, AttachHeader("acp", agent="worker"))
            try:
                await self._answered(link, "initialize", protocolVersion=1, clientCapabilities={})
                await self._answered(link, "session/resume", sessionId=self._session, cwd="/", mcpServers=[])
            except BaseException:
                link.close()
                raise
        return link

    async def _answered(self, link: Attached, method: str, **params: Any) -> None:
        number = self._send(link, method, **params)
        while (said := await link.line()) is not None:
            if said.get("id") == number and "method" not in said:
                if "error" in said:
                    raise AttachRefused(str(said["error"]))
                return
        raise EOFError

    def _send(self, link: Attached, method: str, **params: Any) -> int:
        self._number += 1
        link.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None
        self._asked = {}
