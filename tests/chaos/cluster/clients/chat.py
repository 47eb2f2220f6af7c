"""A person at a terminal behind `trunkline chat --attach`, who stays, and comes back when the node has gone.

The reply to a message says that it was taken in. Whoever comes back later is told where the session is, and not what
was missed: then the end is for the session's watcher to see.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from tests.chaos.cluster.clients.attached import BROKEN, Attached, AttachRefused
from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, TRY_SECONDS, Choose, Saw
from tests.chaos.cluster.hearing import Heard, Hearing
from trunkline.base import shapes
from trunkline.base.attach import AttachHeader
from trunkline.base.attach_chat import AttachedCommand
from trunkline.core.events import UserMessage


class ChatClient:
    """One person."""

    def __init__(self, session: str, choose: Choose, saw: Saw) -> None:
        self._session = session
        self._choose = choose
        self._saw = saw
        self._link: Attached | None = None
        self._node = ""
        self._turns: dict[int, Heard] = {}
        """The turns of this person's messages, as far as they are told on this connection."""
        self._unanswered: deque[Hearing] = deque()
        """The messages whose replies are still to come, in the order of both: a reply may come after the turn's end."""
        self._begun = self._in_progress = 0
        """How many turns had begun when this person came, and which one had not ended."""

    async def converse(self, hearing: Hearing) -> None:
        while not (hearing.is_taken or hearing.is_ended):
            with suppress(*BROKEN):
                await self._try(hearing)
            if not hearing.is_ended:
                self.close()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _try(self, hearing: Hearing) -> None:
        if self._link is None:
            node = self._choose()
            self._node = node.name
            self._link = await Attached.to(node, AttachHeader("chat", resume=self._session))
        heard = hearing.connected(self._node)
        message = shapes.encode(UserMessage(hearing.text, id=hearing.id))
        self._link.send(shapes.encode(AttachedCommand("submit", message=message)))
        self._unanswered.append(hearing)
        async with asyncio.timeout(TRY_SECONDS) as patience:
            while not heard.ends and (said := await self._link.line()) is not None:
                if "event" in said:
                    self._happened(said, hearing, heard)
                elif "state" in said:
                    # Where the session is: at the beginning, and after events that were not read in time.
                    self._begun, self._in_progress = said["state"].get("turns", 0), said.get("turn", 0)
                elif self._unanswered.popleft() is not hearing:
                    # About an earlier message, whose end was told before.
                    continue
                elif said.get("error"):
                    raise AttachRefused(said["error"])
                elif self._is_over(said.get("turn") or 0, hearing, heard):
                    return
                if hearing.is_taken:
                    patience.reschedule(None)
        # Whoever comes into the middle of a turn is told the rest of it.
        heard.is_whole = "success" in heard.ends and len(hearing.heard) == 1

    def _is_over(self, turn: int, hearing: Hearing, heard: Heard) -> bool:
        """The message was taken in, as that turn: whether it was over when this person came, who said it before."""
        hearing.taken()
        if turn in self._turns:
            return False
        self._turns[turn] = heard
        return not turn or (turn <= self._begun and turn != self._in_progress)

    def _happened(self, said: dict[str, Any], hearing: Hearing, heard: Heard) -> None:
        kind, data, turn = said["event"], said["data"], said["turn"]
        self._saw(said["seq"], kind, _key(kind, data))
        if kind == "TurnStarted" and data["message"].get("id") == hearing.id:
            hearing.taken()
            self._turns[turn] = heard
        elif kind == "TextDelta" and turn in self._turns:
            self._turns[turn].text += data["text"]
        elif kind == "TurnEnded" and turn in self._turns:
            self._turns[turn].ends.append(data["outcome"])
        elif kind == "TurnEnded" and turn == self._in_progress:
            # Perhaps that of a message that was said before: the reply comes later.
            self._in_progress = 0

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None
        self._turns = {}
        self._unanswered.clear()


def _key(kind: str, data: dict[str, Any]) -> Any:
    return data["message"].get("id") if kind == "TurnStarted" else data.get("text") or data.get("call_id")
