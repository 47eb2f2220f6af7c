"""`trunkline tryll serve` as a process, with what can be seen of it from outside."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.support.tryll_served import Peer
from trunkline.wires.tryll import messages as m

#: What is promised, from the start to `SessionReady`, and from SIGTERM to the end.
START_SECONDS = 60.0
STOP_SECONDS = 10.0
SERVE = ("-m", "trunkline", "tryll", "serve")

_READY = re.compile(r"The Tryll server is ready: 127\.0\.0\.1:(\d+) (?:and (ws://\S+) )?")


class TryllProcess:
    """A server that is ready. `said` is all that it wrote to standard error since then. `websocket` is the address, if
    there is one."""

    host = "127.0.0.1"

    def __init__(self, child: subprocess.Popen[str], port: int, websocket: str = "") -> None:
        self.child = child
        self.port = port
        self.websocket = websocket
        self.said: list[str] = []
        self._listening = threading.Thread(target=self._hear, daemon=True)
        self._listening.start()

    def rss(self) -> int:
        """Bytes of memory that it has; 0 where nobody tells."""
        try:
            pages = Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]
        except OSError:
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @asynccontextmanager
    async def peer(self, **options: Any) -> AsyncIterator[Peer]:
        """A connection that is configured with these options."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        peer = Peer(reader, writer)
        try:
            await peer.get(m.SessionReady)
            await peer.configure(**options)
            yield peer
        finally:
            writer.transport.abort()

    def stop(self) -> tuple[int, float]:
        """End it as a person does; gives its exit code, and the seconds that it took."""
        begun = time.monotonic()
        self.child.terminate()
        code = self.child.wait(STOP_SECONDS + 5)
        taken = time.monotonic() - begun
        self._listening.join(STOP_SECONDS)
        return code, taken

    def kill(self) -> None:
        """End it as `kill -9` does, and hear its last words: nobody may read from a pipe that is being closed."""
        self.child.kill()
        self._listening.join(STOP_SECONDS)

    def _hear(self) -> None:
        assert self.child.stderr is not None
        self.said.extend(self.child.stderr)


@contextmanager
def tryll_process(
    *arguments: str, environ: Mapping[str, str] | None = None, program: Sequence[str] = SERVE
) -> Iterator[TryllProcess]:
    """A server on a port of its own, which is gone after the block. `program` is what Python runs."""
    command = [sys.executable, *program, "--listen", "127.0.0.1:0", *arguments]
    env = {**os.environ, **(environ or {})}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as child:
        patience = threading.Timer(START_SECONDS, child.kill)
        patience.start()
        try:
            assert child.stderr is not None
            line = child.stderr.readline()
            found = _READY.match(line)
            assert found, line
            patience.cancel()
            server = TryllProcess(child, int(found[1]), found[2] or "")
            try:
                yield server
            finally:
                server.kill()
        finally:
            patience.cancel()
            child.kill()
