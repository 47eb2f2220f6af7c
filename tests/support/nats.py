"""Real NATS servers with JetStream on loopback, one or a cluster, each in a directory of its own."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.ports import free_port

#: How long a server may take to listen, on a busy machine.
START_SECONDS = 30
STOP_SECONDS = 10
_LOOK_SECONDS = 0.02


class NatsServer:
    """One server."""

    def __init__(self, directory: Path, name: str, port: int, route: int, routes: Sequence[int]) -> None:
        self.directory = directory
        self.name = name
        self.port = port
        self._child: subprocess.Popen[bytes] | None = None
        others = ", ".join(f'"nats://127.0.0.1:{each}"' for each in routes)
        cluster = (
            f'cluster {{ name: trunkline, listen: "127.0.0.1:{route}", no_advertise: true, routes: [{others}] }}\n'
        )
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "nats.conf").write_text(
            f'server_name: {name}\nlisten: "127.0.0.1:{port}"\n'
            f'jetstream {{ store_dir: "{directory}/data", sync_interval: always }}\nmax_payload: 8MB\n'
            f"{cluster if len(routes) > 1 else ''}",
            encoding="utf-8",
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        program = str(Path(sys.executable).with_name("nats-server"))
        with (self.directory / "log").open("ab") as log:
            self._child = subprocess.Popen(
                [program, "-c", str(self.directory / "nats.conf")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._child.poll() is None, (self.directory / "log").read_text(errors="replace")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(_LOOK_SECONDS)
        raise AssertionError(f"{self.name} did not start within {START_SECONDS} s")

    def send(self, number: int) -> None:
        """A signal."""
        if self._child is not None:
            self._child.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it. May be called again."""
        child, self._child = self._child, None
        if child is None:
            return
        for sent in (signal.SIGCONT, number):
            child.send_signal(sent)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def servers(count: int = 1) -> Iterator[list[NatsServer]]:
    """So many servers that are one cluster, until the end of the block."""
    ports = [free_port() for _ in range(2 * count)]
    directory = Path(tempfile.mkdtemp(prefix="trunkline-nats-"))
    routes = ports[count:]
    found = [
        NatsServer(directory / f"n{number}", f"n{number}", ports[number], routes[number], routes)
        for number in range(count)
    ]
    try:
        for server in found:
            server.start()
        yield found
    finally:
        for server in found:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)
