"""A `trunkline agent --json-stream` process and the host's hands on its pipes, for tests of its life and death."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.patience import PATIENCE_SECONDS

COMMAND = (sys.executable, "-m", "trunkline", "agent", "--json-stream")


class AgentProcess:
    """The process; killed at the end of the block if it is still there."""

    command: tuple[str, ...] = COMMAND

    def __init__(self, *arguments: str, **popen: Any) -> None:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        pipes |= popen
        self.process: subprocess.Popen[bytes] = subprocess.Popen([*self.command, *arguments], **pipes)
        self.lines: list[dict[str, Any]] = []
        self._buffer = b""
        self._others_worked = _children_worked()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    # Talking

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **command: Any) -> None:
        self.write(json.dumps(command).encode() + b"\n")

    def message(self, text: str, msg_id: str = "m1") -> None:
        self.send(type="message", msg_id=msg_id, input=text)

    def line(self) -> dict[str, Any] | None:
        """The next line; None at the end of the stream."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"nothing came; so far: {self.lines}"
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                assert not self._buffer, f"the stream ends in the middle of a line: {self._buffer!r}"
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def until(self, *kinds: str) -> list[dict[str, Any]]:
        """The lines up to the next one of these types, which is the last of them."""
        seen = []
        while (line := self.line()) is not None:
            seen.append(line)
            if line["type"] in kinds:
                return seen
        raise AssertionError(f"the stream ended before `{'`, `'.join(kinds)}`: {self.lines}, {self.stderr()!r}")

    def rest(self) -> list[dict[str, Any]]:
        """All lines to the end of the stream."""
        seen = []
        while (line := self.line()) is not None:
            seen.append(line)
        return seen

    def stderr(self) -> str:
        """What it logged. Only after it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def worked(self) -> float:
        """The seconds of processor's time that it has taken. No other child of ours may end before it."""
        if self.process.returncode is not None:
            return _children_worked() - self._others_worked
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    # Ending

    def end(self) -> int:
        """Close its input and wait."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def kill(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)


def _children_worked() -> float:
    """The processor's time that children took which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def gone(pid: int) -> bool:
    """Whether a process is gone, or soon is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        select.select([], [], [], 0.01)
    return True
