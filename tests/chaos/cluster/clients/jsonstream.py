"""A host behind `trunkline agent --json-stream --attach`. Its program stays, and comes back when its node has gone.

It says a message again, under the same id, until it has heard its end: whoever comes back is told what was missed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.chaos.cluster.clients.attached import BROKEN, Attached, AttachRefused
from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, TRY_SECONDS, Choose
from tests.chaos.cluster.hearing import Heard, Hearing
from trunkline.base.attach import AttachHeader


class JsonStreamClient:
    """One host."""

    def __init__(self, session: str, choose: Choose) -> None:
        self._session = session
        self._choose = choose
        self._link: Attached | None = None
        self._node = ""
        self._said: dict[str, Heard] = {}
        """What was said on this connection, also earlier: an end that comes once more is about one of them."""

    async def converse(self, hearing: Hearing) -> None:
        while not hearing.is_ended:
            with suppress(*BROKEN):
                await self._try(hearing)
            if not hearing.is_ended:
                self.close()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _try(self, hearing: Hearing) -> None:
        if self._link is None:
            node = self._choose()
            self._node = node.name
            self._link = await Attached.to(node, AttachHeader("jsonstream", resume=self._session))
        heard = self._said[hearing.id] = hearing.connected(self._node)
        self._link.send({"type": "message", "msg_id": hearing.id, "input": hearing.text})
        # A node that says nothing may be stopped: the message is said elsewhere, as long as nobody has taken it in.
        async with asyncio.timeout(TRY_SECONDS) as patience:
            while not heard.ends and (said := await self._link.line()) is not None:
                about = self._said.get(said.get("msg_id") or "")
                match said["type"]:
                    case "stream_start" | "info" if about is heard:
                        hearing.taken()
                        patience.reschedule(None)
                    case "text_delta" if about is not None:
                        about.text += said["text"]
                    case "stream_end" if about is not None:
                        about.ends.append("stream_end")
                    case "error" if said.get("msg_id") is None and not hearing.is_taken:
                        raise AttachRefused(str(said))
        # Whoever comes into the middle of a turn is told the rest of it.
        heard.is_whole = bool(heard.ends) and len(hearing.heard) == 1

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None
        self._said = {}
