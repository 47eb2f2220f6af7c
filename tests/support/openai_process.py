"""`trunkline openai serve` as a process, with what can be seen of it from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.patience import PATIENCE_SECONDS

#: What is promised, from SIGTERM to the end, and what a busy machine adds. What must not hold it up takes 600 s.
STOP_SECONDS = 3.0 + PATIENCE_SECONDS / 4

_READY = re.compile(r"The OpenAI server is ready: (http://127\.0\.0\.1:\d+/v1) ")


class OpenAIProcess:
    """A server that is ready. `said` is all that it wrote to standard error since then."""

    def __init__(self, child: subprocess.Popen[str], url: str) -> None:
        self.child = child
        self.url = url
        self.said: list[str] = []
        self._listening = threading.Thread(target=self._hear, daemon=True)
        self._listening.start()

    def stop(self) -> tuple[int, float]:
        """End it as a supervisor does; gives its exit code, and the seconds that it took."""
        begun = time.monotonic()
        self.child.terminate()
        code = self.child.wait(PATIENCE_SECONDS)
        taken = time.monotonic() - begun
        self._listening.join(PATIENCE_SECONDS)
        return code, taken

    def kill(self) -> None:
        """End it as `kill -9` does, and hear its last words: nobody may read from a pipe that is being closed."""
        self.child.kill()
        self._listening.join(PATIENCE_SECONDS)

    def _hear(self) -> None:
        assert self.child.stderr is not None
        self.said.extend(self.child.stderr)


@contextmanager
def openai_process(*arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[OpenAIProcess]:
    """A server on a port of its own, which is gone after the block."""
    command = [sys.executable, "-m", "trunkline", "openai", "serve", "--listen", "127.0.0.1:0", *arguments]
    env = {**os.environ, **(environ or {})}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as child:
        patience = threading.Timer(PATIENCE_SECONDS, child.kill)
        patience.start()
        try:
            assert child.stderr is not None
            line = child.stderr.readline()
            found = _READY.match(line)
            assert found, line
            patience.cancel()
            server = OpenAIProcess(child, found[1])
            try:
                yield server
            finally:
                server.kill()
        finally:
            patience.cancel()
            child.kill()
