"""A program of ours that speaks JSON-RPC on its standard streams, as whoever started it meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.patience import PATIENCE_SECONDS

#: By the contract, from the end of input or SIGTERM to the exit; more where the machine is busy.
ENDING_SECONDS = 3.0 + PATIENCE_SECONDS / 4


class PipedProgram:
    """The other end of its pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._number = 0

    @classmethod
    @contextmanager
    def started(cls, command: Sequence[str], **variables: str) -> Iterator[Self]:
        """Start it. It is gone after the block, and does not outlive the patience."""
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | variables,
        ) as process:
            patience = threading.Timer(PATIENCE_SECONDS, process.kill)
            patience.start()
            try:
                yield cls(process)
            finally:
                patience.cancel()
                process.kill()

    def send(self, **members: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next line, which is a message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the program has ended"
        message: dict[str, Any] = json.loads(line)
        self.lines.append(message)
        return message

    def request(self, method: str, **params: Any) -> int:
        """Send a request; gives its id."""
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        return self._number

    def until(self, number: int) -> dict[str, Any]:
        """The answer to a request."""
        while (message := self.read()).get("id") != number or "method" in message:
            self.meanwhile(message)
        return message

    def meanwhile(self, message: dict[str, Any]) -> None:
        """Something else was heard than the answer that is waited for."""

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.until(self.request(method, **params))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def ends(self, ending: str) -> None:
        """It ends in time, and says how: by the end of its input, `eof`, or by `sigterm`."""
        began = time.monotonic()
        if ending == "eof":
            self.close()
        else:
            self.process.send_signal(signal.SIGTERM)
        assert self.exit_code() == (0 if ending == "eof" else 143)
        assert time.monotonic() - began < ENDING_SECONDS

    def children(self) -> list[int]:
        """The processes that it has started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        if not children.exists():
            pytest.skip("this system does not list children")
        return [int(each) for each in children.read_text().split()]


def finished(command: Sequence[str], *, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """What came of a run that was given this, and nobody else to talk to."""
    stdin = subprocess.DEVNULL if input is None else None
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_SECONDS, stdin=stdin, input=input)
