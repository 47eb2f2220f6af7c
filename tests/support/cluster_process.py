"""A cluster of processes on this machine: exchanges, three NATS servers and one PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.support import nats, postgres
from tests.support.cuttable import Cuttable
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]

NODES = ("a", "b", "c")
#: How long a node may take until it answers, on a busy machine.
READY_SECONDS = 60
STOP_SECONDS = 20
TOKEN = "cluster-demo"


class NodeProcess:
    """One exchange."""

    def __init__(
        self,
        directory: Path,
        name: str,
        port: int,
        settings: str,
        *,
        servers: str = "",
        broken: str = "",
        way: Cuttable | None = None,
    ) -> None:
        """`broken`: what is missing in it, for a test that must find that out. `way`: to the servers, if it can be
        cut."""
        self.way = way
        self.servers = servers
        self._broken = broken
        self.name = name
        self.port = port
        self.directory = directory / name
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "trunkline.toml").write_text(settings, encoding="utf-8")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, environ: Mapping[str, str] = os.environ) -> None:
        """Start it, without waiting."""
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.chaos.cluster.broken",
                    self._broken or "-",
                    "up",
                    "--config",
                    "trunkline.toml",
                ],
                cwd=self.directory,
                env={
                    **environ,
                    "PYTHONPATH": _path(),
                    "TRUNKLINE_HOME": str(self.directory / "home"),
                    "DEMO_TOKEN": TOKEN,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until it serves."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process is not None and self.process.poll() is not None:
                break
            if self._is_ready():
                return
            time.sleep(0.05)
        raise SystemExit(f"Node {self.name} did not start:\n{(self.directory / 'log').read_text(errors='replace')}")

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it. May be called again."""
        process, self.process = self.process, None
        if process is None:
            return
        for sent in (signal.SIGCONT, number):
            process.send_signal(sent)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class ClusterProcesses(dict[str, NodeProcess]):
    """The nodes by their names, and the servers under them."""

    def __init__(self, nodes: Mapping[str, NodeProcess], servers: Sequence[nats.NatsServer]) -> None:
        super().__init__(nodes)
        self.servers = servers


def _path() -> str:
    """Where nodes find the agents of tests."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))


def settings(node: str, port: int, servers: str, database: str, agents: str = "") -> str:
    """The file of a node."""
    return f"""[exchange]
listen = "127.0.0.1:{port}"
home = "home/exchange"

[cluster]
nats = "{servers}"
postgres = "{database}"
node = "{node}"

[people.demo]
token_env = "DEMO_TOKEN"
role = "admin"

{agents or "[agents.echo]" + chr(10) + 'agent = "echo"'}
"""


@contextmanager
def cluster(
    directory: Path,
    agents: str = "",
    names: tuple[str, ...] = NODES,
    *,
    broken: str = "",
    cuttable: bool = False,
    prepare: Callable[[NodeProcess], None] = lambda node: None,
) -> Iterator[ClusterProcesses]:
    """All of it, for the duration of the block. `prepare` is called for each node before it starts; `cuttable`: the
    ways of nodes to the servers can be cut."""
    with ExitStack() as stack:
        servers = stack.enter_context(nats.servers(3))
        ways = {
            name: stack.enter_context(Cuttable.to([server.port for server in servers])) if cuttable else None
            for name in names
        }
        database = stack.enter_context(stack.enter_context(postgres.server()).database())
        urls = ",".join(server.url for server in servers)

        def urls_of(way: Cuttable | None) -> str:
            return urls if way is None else ",".join(f"nats://127.0.0.1:{port}" for port in way.ports)

        made = {
            name: NodeProcess(
                directory,
                name,
                port,
                settings(name, port, urls_of(ways[name]), database, agents),
                servers=urls,
                broken=broken,
                way=ways[name],
            )
            for name, port in ((name, free_port()) for name in names)
        }
        nodes = ClusterProcesses(made, servers)
        for node in nodes.values():
            stack.callback(node.stop)
            prepare(node)
            node.start()
        for node in nodes.values():
            node.wait()
        yield nodes
