"""A game that talks to an agent by a graph of its own, over TCP. It speaks in frames: what comes twice is seen.

Its conversation is a session that it does not name, and that dies with its socket for the game: nothing is said again,
and nothing is told again. A message is not kept before its turn begins. So each one has one end: `TurnComplete`, an
error, or that of the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, TRY_SECONDS, Choose
from tests.chaos.cluster.hearing import Heard, Hearing
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import Framer, decode, encode, frame
from trunkline.wires.tryll.codec.errors import FrameError
from trunkline.wires.tryll.messages import TurnStatus

_PIECE = 65536
_GRAPH = m.GraphDescription((m.NodeDescription("say", m.GenerateParams(stream=True)),), "say")
#: The last: after a node has died, its port may be somebody else's for a while, who speaks something else.
_GONE = (OSError, EOFError, TimeoutError, FrameError)


class _Frames:
    """One connection, and the agent that was made there."""

    def __init__(self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self.agent = 0
        self.said: dict[int, Heard] = {}
        """What was said here, by its number: also earlier, since an end may come once more."""
        self._reader = reader
        self._writer = writer
        self._framer = Framer()
        self._frames: list[bytes] = []

    def say(self, message: m.Message) -> None:
        self._writer.write(frame(encode(message)))

    async def hear(self) -> m.Message:
        """The next message.

        Raises:
            OSError, EOFError: the connection has ended.
        """
        while not self._frames:
            data = await self._reader.read(_PIECE)
            if not data:
                raise EOFError
            self._frames += self._framer.feed(data)
        return decode(self._frames.pop(0))

    async def answer(self, request: m.Message, kind: type[m.Message]) -> m.Message:
        """What a request is answered with.

        Raises:
            ConnectionError: it is refused.
        """
        self.say(request)
        while not isinstance(found := await self.hear(), kind):
            if isinstance(found, m.ErrorResponse):
                raise ConnectionError(found.message)
        return found

    def close(self) -> None:
        self._writer.close()


class TryllClient:
    """One game. `ports`: where the nodes serve it, by their names."""

    def __init__(self, choose: Choose, ports: Mapping[str, int]) -> None:
        self._choose = choose
        self._ports = ports
        self._link: _Frames | None = None
        self._number = 10

    async def converse(self, hearing: Hearing) -> None:
        while self._link is None:
            with suppress(*_GONE):
                self._link = await self._connected()
            if self._link is None:
                await asyncio.sleep(PAUSE_SECONDS)
        link = self._link
        self._number += 1
        heard = link.said[self._number] = hearing.connected(link.node)
        link.say(m.SendMessageRequest(self._number, link.agent, hearing.text))
        try:
            while not heard.ends:
                self._told(link, await link.hear(), hearing)
        except _GONE:
            heard.ends.append("the connection's end")
        if heard.ends != ["success"]:
            # Its conversation may be gone: the next one begins on another node.
            self.close()

    def _told(self, link: _Frames, said: m.Message, hearing: Hearing) -> None:
        about = link.said.get(getattr(said, "request_id", 0))
        if about is None:
            return
        match said:
            case m.AnswerText(text=text, is_delta=is_delta):
                about.text = about.text + text if is_delta else text
                if about is hearing.heard[-1]:
                    hearing.taken()
            case m.TurnComplete(status=status):
                about.is_whole = status == TurnStatus.SUCCESS
                about.ends.append("success" if about.is_whole else f"status {status}")
            case m.ErrorResponse(message=message):
                about.ends.append(f"error: {message}")

    async def _connected(self) -> _Frames:
        """A connection with an agent.

        Raises:
            OSError, EOFError, TimeoutError: there is none on that node now.
        """
        node = self._choose()
        async with asyncio.timeout(TRY_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._ports[node.name])
            link = _Frames(node.name, reader, writer)
            try:
                await link.answer(m.ConfigureSessionRequest(1), m.ConfigureSessionResponse)
                made = await link.answer(m.CreateAgentRequest(2, _GRAPH, "agent:worker"), m.CreateAgentResponse)
            except BaseException:
                link.close()
                raise
        assert isinstance(made, m.CreateAgentResponse)
        link.agent = made.agent_id
        return link

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None
