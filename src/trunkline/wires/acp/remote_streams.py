"""What a client over HTTP is told: messages in streams of server-sent events, one for the connection and one for each
session, in bounded memory.

Sans-IO but for waking whoever reads. Which stream a message goes to is as the protocol has it: what concerns a session
goes to the session's, once the client knows of it; the answer to `session/new` and everything else goes to the
connection's. What a session that is being loaded replays comes in one stream with the answer to that, so that it cannot
come behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.wires.acp import codec
from trunkline.wires.acp.codec import RpcAnswer, RpcId, RpcMessage, RpcRequest

#: How almost every line begins.
_UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'

#: Requests that bring a session to the connection which the client names.
BRINGING = frozenset({"session/load", "session/resume"})
#: Requests after which there is nothing more to tell of a session.
_ENDING = frozenset({"session/close", "session/delete"})

#: Session streams of one connection: more than anybody has open.
MAX_STREAMS = 1000


class MessageStream:
    """Messages for one reader at a time. Whoever comes later takes over: the earlier one has lost its connection."""

    def __init__(self) -> None:
        self.size = 0
        """The bytes that were not sent yet."""
        self.finished = False
        """Whether nothing follows what is there."""
        self._lines: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._reader: object = None

    @property
    def is_read(self) -> bool:
        """Whether somebody reads."""
        return self._reader is not None

    def put(self, line: bytes) -> None:
        """One more message."""
        if not self.finished:
            self._lines.append(line)
            self.size += len(line)
            self._news.set()

    def finish(self) -> None:
        """There are no more."""
        self.finished = True
        self._news.set()

    def begin(self, reader: object) -> None:
        """Read from now on."""
        self._reader = reader
        # The one before must notice.
        self._news.set()

    def leave(self, reader: object) -> None:
        """Read no more."""
        if self._reader is reader:
            self._reader = None

    async def read(self, reader: object, seconds: float) -> list[bytes] | None:
        """What there is, or nothing after so long; None at the end, or when somebody else has begun to read.

        What is given counts as unsent until `sent`.
        """
        if not self._lines and not self.finished and self._reader is reader:
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return []
        if self._reader is not reader:
            return None
        if not self._lines:
            return None if self.finished else []
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def sent(self, lines: list[bytes]) -> None:
        """These are on their way."""
        self.size -= sum(map(len, lines))


class MessageStreams:
    """The streams of one connection, and which message goes where."""

    def __init__(self) -> None:
        self.main = MessageStream()
        self._sessions: dict[str, MessageStream] = {}
        self._told: set[str] = set()
        """The sessions that the client knows to be its own."""
        self._bringing: dict[str, MessageStream] = {}
        """Where the replay of a session goes that is being loaded."""
        self._asked: dict[RpcId, tuple[str, str]] = {}
        """The client's open requests: method and session."""
        self._asking: dict[RpcId, MessageStream] = {}
        """The agent's open requests, and where they went: they are taken back there."""
        self._waiting: dict[RpcId, asyncio.Future[bytes]] = {}

    @property
    def size(self) -> int:
        """All bytes that were not sent yet."""
        return self.main.size + sum(stream.size for stream in self._sessions.values())

    @property
    def is_read(self) -> bool:
        """Whether the client reads anything."""
        return self.main.is_read or any(stream.is_read for stream in self._sessions.values())

    @property
    def is_full(self) -> bool:
        """Whether there are too many streams for one more."""
        return len(self._sessions) >= MAX_STREAMS

    def has(self, session: str) -> bool:
        """Whether the client has had to do with a session."""
        return session in self._told or session in self._bringing or session in self._sessions

    def of(self, session: str) -> MessageStream:
        """The stream of a session."""
        found = self._sessions.get(session)
        if found is None or found.finished:
            found = self._sessions[session] = MessageStream()
        return found

    def gone(self, session: str, stream: MessageStream) -> None:
        """A stream was read to its end."""
        if stream.finished and self._sessions.get(session) is stream:
            del self._sessions[session]

    def finish(self) -> None:
        """Nothing more is told."""
        for stream in (self.main, *self._sessions.values()):
            stream.finish()
        for waiting in self._waiting.values():
            waiting.cancel()

    def expect(self, id: RpcId) -> asyncio.Future[bytes]:
        """The answer to a request, which goes to no stream."""
        self._waiting[id] = asyncio.get_running_loop().create_future()
        return self._waiting[id]

    def heard(self, message: RpcMessage) -> None:
        """What the client sends."""
        if isinstance(message, RpcAnswer):
            self._asking.pop(message.id, None)
        if not isinstance(message, RpcRequest) or message.id in self._waiting:
            return
        session = session_in(message.params)
        if session and message.method in BRINGING:
            stream = self._sessions.get(session)
            self._bringing[session] = stream if stream is not None and stream.is_read else self.main
        self._asked[message.id] = message.method, session

    def tell(self, line: bytes) -> None:
        """What the agent sends: put it where it belongs."""
        if line.startswith(_UPDATE) and b"\\" not in (id := line[len(_UPDATE) : line.index(b'"', len(_UPDATE))]):
            self._route(id.decode()).put(line)
            return
        message = jsontext.loads(line)
        if "method" not in message:
            self._answer(message, line)
            return
        params = message.get("params")
        if message["method"] == codec.CANCEL_REQUEST:
            self._asking.pop(params["requestId"], self.main).put(line)
            return
        stream = self._route(session_in(params))
        if "id" in message:
            self._asking[message["id"]] = stream
        stream.put(line)

    def _answer(self, message: Mapping[str, Any], line: bytes) -> None:
        id, result = message["id"], message.get("result")
        if (waiting := self._waiting.pop(id, None)) is not None:
            if not waiting.done():
                waiting.set_result(line)
            return
        method, session = self._asked.pop(id, ("", ""))
        if method in BRINGING and session:
            stream = self._bringing.pop(session, self.main)
            if isinstance(result, dict):
                self._told.add(session)
                # Clients look for the id in the answer, and open the session's stream then.
                line = jsontext.dumps({**message, "result": {"sessionId": session, **result}}) + b"\n"
            stream.put(line)
            return
        if made := session_in(result):
            self._told.add(made)
            self.main.put(line)
            return
        stream = self._route(session)
        stream.put(line)
        if method in _ENDING and "error" not in message:
            self._told.discard(session)
            if stream is not self.main:
                stream.finish()

    def _route(self, session: str) -> MessageStream:
        if session in self._told:
            return self.of(session)
        return self._bringing.get(session, self.main)


def session_in(members: Any) -> str:
    """The session that parameters or a result name; empty if none."""
    found = members.get("sessionId") if isinstance(members, dict) else None
    return found if isinstance(found, str) else ""
