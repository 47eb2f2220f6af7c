"""A Tryll server that a program starts for itself, and that ends with it.

    with ManagedServer.start() as server, SyncTryll(server.host, server.port) as tryll:
        ...

    with ManagedServer.start("server/tryll-server") as server:      # a bundle
        ...

It listens on a port of its own. One of this installation reads no configuration file: what its user has written into
`[tryll]` for servers of their own, such as fixed addresses, kept sessions or a token, is not the program's. A bundle
reads its own `tryll.toml`, and no other. The environment is inherited, `TRUNKLINE_TRYLL_TOKEN` included.

However the program ends, `kill -9` included, the server does, too: its input is closed then, and the watchdog of
`base.process` ends what does not heed that. Starting takes a second or two, and waits: from a coroutine,
`await asyncio.to_thread(ManagedServer.start)`.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from trunkline.base import jsontext
from trunkline.base.own_python import module_command
from trunkline.base.process import Child, StderrTail, spawn
from trunkline.base.process_errors import SpawnError
from trunkline.wires.tryll.errors import TryllError

#: From the start to the line that says that the server is ready. It takes a second; the disk may be slow and cold, and
#: the machine busy with a game that starts.
START_SECONDS = 60.0
#: From the end of its input to its own. The server promises nine seconds.
STOP_SECONDS = 10.0
#: The longest line that says that it is ready.
MAX_LINE = 4096
_READ = 4096
#: Between two looks for the end of a program whose output has ended.
_END_SECONDS = 1.0

#: An empty file takes the place of the user's own. Flags come before it, and so does a `--config` that follows it.
_OWN = ("tryll", "serve", "--config", os.devnull)


class ManagedServer:
    """The server. `start` makes one."""

    def __init__(self, child: Child, ready: Mapping[str, Any], tail: StderrTail) -> None:
        self._child = child
        self._tail = tail
        self.host: str = ready["host"]
        self.port: int = ready["port"]
        self.ws_port: int | None = ready.get("ws_port")
        """Where it takes WebSockets, if it does."""
        self.metrics_port: int | None = ready.get("metrics_port")
        """Where it tells its figures, if it does."""
        self.pid: int = ready["pid"]
        self.version: str = ready.get("version", "")

    @classmethod
    def start(
        cls,
        program: str | Sequence[str] | None = None,
        *arguments: str,
        host: str = "127.0.0.1",
        port: int = 0,
        ws: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
    ) -> Self:
        """Start a server, and wait until it is ready.

        Args:
            program: the `tryll-server` of a bundle, or a command; by default this installation.
            arguments: more flags of `trunkline tryll serve`; a `--config FILE` among them is read.
            port: 0 is any that is free.
            ws: whether it listens for WebSockets, too, at a port that is free.

        Raises:
            TryllError: 1001, it did not start; the message has its last words. 1003, it was not ready in time.
        """
        command = [program] if isinstance(program, str) else list(program or module_command("trunkline", _OWN))
        command += ["--listen", f"[{host}]:{port}" if ":" in host else f"{host}:{port}", "--exit-with-stdin", "--json"]
        if ws:
            command += ["--ws", f"[{host}]:0" if ":" in host else f"{host}:0"]
        try:
            child = spawn([*command, *arguments], cwd=cwd, env=env, stdin="pipe", stdout="pipe", stderr="pipe")
        except SpawnError as error:
            raise TryllError(1001, f"The server could not be started: {error}") from None
        tail = StderrTail()
        try:
            listening = _listen(child, tail)
            return cls(child, _ready(child, start_seconds, listening, tail), tail)
        except BaseException:
            child.kill_tree()
            child.close()
            raise

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None while it runs."""
        return self._child.poll()

    def last_words(self) -> str:
        """The end of its log."""
        return self._tail.text()

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """End it in an orderly way, and by force after this time; gives its exit code. Idempotent."""
        self._child.close_pipe("stdin")
        try:
            code = self._child.wait(timeout)
        except TimeoutError:
            code = self._child.kill_tree()
        self._child.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _listen(child: Child, tail: StderrTail) -> threading.Thread:
    """Keep the end of what it says: a pipe that nobody reads would make it wait one day."""
    fd = child.detach("stderr")

    def listen() -> None:
        if fd is None:
            return
        with open(fd, "rb", buffering=0) as file:
            while data := file.read(_READ):
                tail.feed(data)

    thread = threading.Thread(target=listen, name="tryll server's log", daemon=True)
    thread.start()
    return thread


def _ready(child: Child, seconds: float, listening: threading.Thread, tail: StderrTail) -> dict[str, Any]:
    """The line that says that it is ready.

    Raises:
        TryllError: there is none.
    """
    line = _line(child, time.monotonic() + seconds)
    if line is None:
        raise TryllError(1003, f"The server was not ready within {seconds:g} seconds.{_told(tail)}")
    try:
        ready = jsontext.loads(line)
    except ValueError:
        ready = None
    if isinstance(ready, dict) and ready.get("type") == "ready":
        return ready
    # Its last words come after its end.
    listening.join(_END_SECONDS)
    try:
        code: int | None = child.wait(_END_SECONDS)
    except TimeoutError:
        code = None
    how = f"ended with exit code {code}" if code is not None else "said something else than that it is ready"
    raise TryllError(1001, f"The server {how}.{_told(tail)}")


def _line(child: Child, deadline: float) -> bytes | None:
    """Its first line; what there is of it where its output ends. None: it did not come in time."""
    found = b""
    if child.stdout is None:
        return found
    # `select.select` refuses descriptors from 1,024 on, which a large program has.
    poller = select.poll()
    poller.register(child.stdout, select.POLLIN)
    while b"\n" not in found and len(found) < MAX_LINE:
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        if not (data := os.read(child.stdout, _READ)):
            break
        found += data
    return found.partition(b"\n")[0]


def _told(tail: StderrTail) -> str:
    words = tail.text()
    return f" Its last words: {words}" if words else ""
