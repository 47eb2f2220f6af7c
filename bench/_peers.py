"""The other processes of a benchmark, as their host sees them: two pipes, a clock, and the processor time they take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench._measure import Taken, clean_environment, cpu_seconds

PYTHON = sys.executable
PROGRAMS = str(Path(__file__).with_name("_programs.py"))
TRUNKLINE = str(Path(sys.executable).with_name("trunkline"))
ECHO_AGENT = (TRUNKLINE, "agent", "--json-stream", "--agent", "echo")

#: As much as a pipe can be made to hold: the reader is never what is measured.
READ_BYTES = 1024 * 1024
#: Longer than any single measurement, even on a busy machine: then a peer is stuck, and the benchmark fails.
PATIENCE_SECONDS = 120


class Peer:
    """A process that is talked to in lines. Ends with the `with` block: first its input, then, if need be, it."""

    def __init__(self, command: Sequence[str], home: str, **environ: str) -> None:
        self.started = time.perf_counter()
        # Binary and without buffers: what a buffer holds back would be counted as the peer's time.
        self._process = subprocess.Popen(
            command,
            env=clean_environment(TRUNKLINE_HOME=home, **environ),
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.close()
            process.stdout.close()
            process.wait(PATIENCE_SECONDS if kind is None else 1)
        finally:
            process.kill()
            process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cpu(self) -> float:
        """The processor time of the process so far."""
        return cpu_seconds(self.pid)

    def send(self, line: bytes) -> None:
        """Write a line, which is far shorter than what a pipe holds."""
        os.write(self._in, line + b"\n")

    def line(self) -> bytes:
        """The next line."""
        while b"\n" not in self._rest:
            self._rest += self._read()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def line_of(self, kind: str) -> bytes:
        """The next line of a type, and when those before it have passed."""
        wanted = b'"type":"%b"' % kind.encode()
        while wanted not in (line := self.line()):
            pass
        return line

    def skip(self, count: int) -> bytes:
        """Read exactly so many lines, as fast as they come; gives the last one's end."""
        seen, tail = self._rest.count(b"\n"), self._rest
        while seen < count:
            data = self._read()
            seen += data.count(b"\n")
            tail = data
        self._rest = b""
        if seen > count or not tail.endswith(b"\n"):
            raise AssertionError(f"more than the {count} lines that were asked for")
        return tail

    def idle(self) -> bool:
        """Whether nothing is left that was not read."""
        os.set_blocking(self._out, False)
        try:
            return not self._rest and os.read(self._out, READ_BYTES) is None
        except BlockingIOError:
            return True
        finally:
            os.set_blocking(self._out, True)

    def _read(self) -> bytes:
        data = os.read(self._out, READ_BYTES)
        if not data:
            raise AssertionError(f"{self._process.args!r} has ended in the middle of a measurement")
        return data


class Producer(Peer):
    """A program that writes as many lines as it is told to."""

    def __init__(self, mode: str, home: str) -> None:
        super().__init__([PYTHON, PROGRAMS, mode], home)

    def produce(self, count: int) -> Taken:
        """Let it, and read them all."""
        cpu, started = self.cpu, time.perf_counter()
        self.send(b"%d" % count)
        self.skip(count)
        return Taken(time.perf_counter() - started, self.cpu - cpu)


class Agent(Peer):
    """An agent that answers with as many deltas as the message says."""

    def __init__(self, home: str, *flags: str) -> None:
        super().__init__([PYTHON, PROGRAMS, "agent", *flags], home)
        self.line_of("ready")

    def produce(self, count: int) -> Taken:
        """Let it answer, and read all: the deltas between `stream_start` and `stream_end`."""
        cpu, started = self.cpu, time.perf_counter()
        self.send(b'{"type":"message","msg_id":"abc-123","input":"%d"}' % count)
        last = self.skip(count + 2)
        taken = Taken(time.perf_counter() - started, self.cpu - cpu)
        if b'"type":"stream_end"' not in last[-200:]:
            raise AssertionError(f"the answer does not end with `stream_end`: {last[-200:]!r}")
        return taken
