"""A bridge that starts `trunkline agentproc serve AGENT --attach` for each message, protocol 0.4.

The wire has no id for a message: a bridge that does not know whether one was taken in does not say it again. What it
has heard a word of was taken in, and goes on without it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.chaos.cluster.clients.attached import BROKEN, Attached, AttachRefused
from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, Choose
from tests.chaos.cluster.hearing import Heard, Hearing, words
from trunkline.base import shapes
from trunkline.base.attach import AttachHeader
from trunkline.wires.agentproc.messages import TurnRequest


class AgentProcClient:
    """One bridge."""

    def __init__(self, session: str, choose: Choose) -> None:
        self._session = session
        self._choose = choose
        self._link: Attached | None = None

    async def converse(self, hearing: Hearing) -> None:
        turn = shapes.encode(TurnRequest(hearing.text))
        header = AttachHeader("agentproc", resume=self._session, dialect="0.4", turn=turn)
        try:
            while self._link is None:
                node = self._choose()
                # Only of a message that a node has refused it is sure that nobody has it.
                with suppress(AttachRefused):
                    self._link = await Attached.to(node, header)
                    await self._listen(self._link, hearing, hearing.connected(node.name))
                    return
                await asyncio.sleep(PAUSE_SECONDS)
        except BROKEN:
            await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self.close()

    async def _listen(self, link: Attached, hearing: Hearing, heard: Heard) -> None:
        while (said := await link.line()) is not None:
            match said["type"]:
                case "partial" if text := said.get("text"):
                    hearing.taken()
                    heard.text += text
                case "result":
                    hearing.taken()
                    heard.ends.append("result")
                    heard.is_whole = True
                    if words(said["text"]) != words(heard.text):
                        heard.wrong.append(f"the result is `{said['text']}`, and the pieces were `{heard.text}`")
                case "error":
                    heard.ends.append(f"error: {said.get('message')}")
        if link.ending is not None and not heard.ends:
            # The program ends with a code, and says why on its standard error.
            heard.ends.append(f"exit {link.ending.exit}: {link.ending.error}")

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None
