"""A server that is a program of ours: started as a tree of its own, spoken to through its standard input and output.

Its standard error goes to the log. What it prints on standard output and is no message is logged and skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.own_python import safe_python
from trunkline.base.process import SpawnError, StderrTail, child_env
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.messages import MAX_LINE_BYTES, UnreadableAnswer, decode, encode
from trunkline.tools.mcp.transport import OnBroken, in_short, leaf

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

logger = logging.getLogger(__name__)

#: The protocol's way to say goodbye is the end of input. How long a server may take to hear it ...
GOODBYE_SECONDS = 1.0
#: ... and then to obey SIGTERM.
GRACE_SECONDS = 0.5

#: Of one line of noise or of standard error, in the log; and what is looked through for secrets first.
_LOGGED_CHARS = 500
_CLEANED_BYTES = 1 << 14
#: A longer line of standard error is not logged.
_STDERR_LINE_BYTES = 1 << 16
#: The last words in a message to people.
_LAST_WORDS_CHARS = 500
#: Messages that wait to be written. A server that does not read must not keep a cancelled call from returning.
_OUTGOING = 1024


class StdioTransport:
    """A program as a server. Its environment is `env` (ours unless given) and `spec.env` on top, nothing else.

    Unless `cwd` is `trusted`, a Python takes no modules from there.
    """

    remote = False
    refused = False
    needs_login = False

    def __init__(
        self, spec: AddMcpServer, cwd: str, env: Mapping[str, str] | None, redactor: Redactor, *, trusted: bool = False
    ) -> None:
        self._name = spec.name
        self._redactor = redactor
        self.clean = redactor.text
        argv = (spec.command or "", *spec.args)
        self._argv = argv if trusted else safe_python(argv)
        self._cwd = cwd
        self._env = child_env(env, extra=spec.env)
        self._stderr = StderrTail()
        self._exit_code: int | None = None
        self._complaint = ""

    @asynccontextmanager
    async def connect(self, on_broken: OnBroken) -> AsyncIterator[TransportStreams]:
        from anyio import create_memory_object_stream
        from mcp.shared.message import SessionMessage

        child = await spawn_async(self._argv, cwd=self._cwd, env=self._env, stdin="pipe")
        to_session, incoming = create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = create_memory_object_stream[SessionMessage](_OUTGOING)
        pumps = [
            asyncio.create_task(pump, name=f"mcp-{self._name}-{what}")
            for what, pump in (
                ("out", self._read(child, to_session)),
                ("in", _write(child, from_session)),
                ("err", self._read_stderr(child)),
            )
        ]
        try:
            yield incoming, outgoing
        finally:
            # The readers go on meanwhile: a server that is stuck writing cannot hear its end of input.
            incoming.close()
            try:
                await self._end(child)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
                await child.close()
                for stream in (to_session, incoming, outgoing, from_session):
                    stream.close()

    def explain(self, error: BaseException | None) -> str:
        cause = leaf(error) if error is not None else None
        if isinstance(cause, SpawnError):
            return f"could not be started: {cause}"
        if self._complaint:
            return self._complaint
        if self._exit_code is not None:
            words = self.clean(self._stderr.text())[-_LAST_WORDS_CHARS:]
            return f"ended with exit code {self._exit_code}" + (f"; its last words: {words}" if words else "")
        return "closed its output" if cause is None else f"failed: {in_short(cause, self.clean)}"

    async def _end(self, child: AsyncChild) -> None:
        # Known only if it has ended by itself; how it ends now is our doing.
        self._exit_code = child.returncode
        child.close_stdin()
        if self._complaint:
            # Nobody reads any more: it may be stuck writing, so that it hears no goodbye, and a caller waits for why.
            await child.stop(GRACE_SECONDS)
            return
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await child.wait()
        except TimeoutError:
            await child.stop(GRACE_SECONDS)

    async def _read(self, child: AsyncChild, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp.shared.message import SessionMessage

        lines = LineSplitter(MAX_LINE_BYTES)
        with to_session:
            while data := await child.read_stdout():
                for line in lines.feed(data):
                    if isinstance(line, OverlongLine):
                        self._complaint = f"sent a message of more than {MAX_LINE_BYTES} bytes"
                        return
                    message = decode(line)
                    if isinstance(message, UnreadableAnswer):
                        # Whoever waits for it would wait for ever.
                        self._complaint = f"sent an answer that cannot be read: {message.reason}"
                        return
                    if message is None:
                        self._log_noise(line)
                        continue
                    try:
                        await to_session.send(SessionMessage(message))
                    except (BrokenResourceError, ClosedResourceError):
                        # Nobody listens any more; what is left is only read so that the server can end.
                        continue
            # Its end may have been what ended the output: then people should hear of that.
            await _settled(child)

    async def _read_stderr(self, child: AsyncChild) -> None:
        lines = LineSplitter(_STDERR_LINE_BYTES)
        while data := await child.read_stderr():
            self._stderr.feed(data)
            for line in lines.feed(data):
                if isinstance(line, bytes):
                    logger.info("MCP server `%s`: %s", self._name, self._excerpt(line))

    def _log_noise(self, line: bytes) -> None:
        if line.strip():
            logger.info("MCP server `%s` printed something that is not a message: %s", self._name, self._excerpt(line))

    def _excerpt(self, line: bytes) -> str:
        text = line[:_CLEANED_BYTES].decode("utf-8", "replace")
        clean = self._redactor.text if len(line) <= _CLEANED_BYTES else self._redactor.beginning
        return clean(text)[:_LOGGED_CHARS]


async def _write(child: AsyncChild, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with from_session:
        async for item in from_session:
            child.write(encode(item.message))
            await child.drain()


async def _settled(child: AsyncChild) -> None:
    """Wait a moment for the leader's end, which follows that of its output closely if at all."""
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await child.wait()
    except TimeoutError:
        return
