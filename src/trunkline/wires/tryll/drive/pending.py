"""The turns of a connection: which reply a frame belongs to.

One turn of an agent runs at a time. Most are asked for. Some the server begins by itself, because somebody has spoken:
those are expected, perhaps several, and come in that order.
"""

from __future__ import annotations

from collections import deque

from trunkline.wires.tryll.drive.turn import Reply, TurnFrame
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import NodeEvent, TtsAudioFormatFrame, TtsAudioFrame, TtsTimingFrame

#: Frames of a turn that do not say which.
_WITHOUT_ID = (NodeEvent, TtsAudioFormatFrame, TtsAudioFrame, TtsTimingFrame)


class PendingReplies:
    """Replies that wait for frames, by the agent."""

    def __init__(self) -> None:
        self._asked: dict[int, Reply] = {}
        self._unasked: dict[int, deque[Reply]] = {}

    def begin(self, agent_id: int, reply: Reply) -> None:
        """A turn is asked for."""
        self._asked[agent_id] = reply

    def expect(self, agent_id: int, reply: Reply) -> None:
        """The server will begin a turn, after those that it has begun before."""
        self._unasked.setdefault(agent_id, deque()).append(reply)

    def forget(self, agent_id: int, reply: Reply) -> None:
        """The turn is over. Idempotent."""
        if self._asked.get(agent_id) is reply:
            del self._asked[agent_id]
        waiting = self._unasked.get(agent_id)
        if waiting is not None and reply in waiting:
            waiting.remove(reply)
            if not waiting:
                del self._unasked[agent_id]

    def of(self, message: TurnFrame) -> Reply | None:
        """Whose frame it is; None if nobody waits for it."""
        asked = self._asked.get(message.agent_id)
        if isinstance(message, _WITHOUT_ID):
            # A turn that the server begins waits for the end of the one that was asked for.
            return asked or self._unasked_of(message.agent_id)
        if message.request_id:
            return asked if asked is not None and asked.request_id == message.request_id else None
        return self._unasked_of(message.agent_id) or asked

    def _unasked_of(self, agent_id: int) -> Reply | None:
        waiting = self._unasked.get(agent_id)
        return waiting[0] if waiting else None

    def asked(self, request_id: int) -> Reply | None:
        """The turn that was asked for like that."""
        for reply in self._asked.values():
            if request_id and reply.request_id == request_id:
                return reply
        return None

    def expected(self, agent_id: int) -> Reply | None:
        """The last turn that the server was to begin with an agent."""
        waiting = self._unasked.get(agent_id)
        return waiting[-1] if waiting else None

    def lose(self, error: TryllError) -> None:
        """No more frames come, of any."""
        unasked = [reply for waiting in self._unasked.values() for reply in waiting]
        for reply in (*self._asked.values(), *unasked):
            reply.lose(error)
        self._asked.clear()
        self._unasked.clear()
