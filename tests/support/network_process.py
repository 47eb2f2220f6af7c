"""`trunkline network serve` as a process that can be stopped, killed and started again on the same port."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port

ADMIN_KEY = "the-administrators-key"

_READY = re.compile(r"The network is ready: (http://127\.0\.0\.1:\d+)/")


class NetworkProcess:
    """A network. `said` is what it wrote to standard error; empty as long as nothing is wrong."""

    def __init__(self, database: str, home: Path, environ: Mapping[str, str]) -> None:
        self._database = database
        self._environ = {**os.environ, "TRUNKLINE_HOME": str(home), "ADMIN_API_KEY": ADMIN_KEY, **environ}
        self._port = free_port()
        self._child: subprocess.Popen[str] | None = None
        self.said: list[str] = []
        self.url = ""

    def start(self) -> None:
        """Start it, always on the same port, and wait until it is ready."""
        listen = f"127.0.0.1:{self._port}"
        command = [sys.executable, "-m", "trunkline", "network", "serve", "--db", self._database, "--listen", listen]
        child = subprocess.Popen(command, env=self._environ, stderr=subprocess.PIPE, text=True)
        self._child = child
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._hear, args=(child, lines), daemon=True).start()
        found = _READY.match(lines.get(timeout=PATIENCE_SECONDS))
        assert found, self.said
        self.url = found[1]

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self._child is not None
        self._child.kill()
        self._child.wait(PATIENCE_SECONDS)

    def stop(self) -> None:
        """End it as a person does."""
        assert self._child is not None
        self._child.terminate()
        try:
            self._child.wait(PATIENCE_SECONDS)
        finally:
            self._child.kill()

    def _hear(self, child: subprocess.Popen[str], first: queue.SimpleQueue[str]) -> None:
        assert child.stderr is not None
        with child.stderr:
            line = child.stderr.readline()
            if not _READY.match(line):
                self.said.append(line)
            first.put(line)
            self.said.extend(child.stderr)


@contextmanager
def network_process(database: str, home: Path, **environ: str) -> Iterator[NetworkProcess]:
    """A network that is ready, until the end of the block."""
    network = NetworkProcess(database, home, environ)
    try:
        network.start()
        yield network
    finally:
        network.stop()
