"""`trunkline chat` on a real pseudo-terminal, with somebody who types and looks."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.terminal.emulator import Emulator
from tests.support.patience import PATIENCE_SECONDS

LOOK_SECONDS = 0.02
TRUNKLINE = (sys.executable, "-m", "trunkline")
PROMPT = "\u276f"

CTRL_C, CTRL_D, ESCAPE, ENTER, SHIFT_TAB = "\x03", "\x04", "\x1b", "\r", "\x1b[Z"


class ChatTerminal:
    """The program and its terminal; both are gone after the block."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        command: tuple[str, ...] = ("chat",),
        **environment: str,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.terminal = Emulator(columns, rows, self.type)
        self.raw = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        environ = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            if name not in environment:
                environ.pop(name, None)
        self.process = subprocess.Popen(
            [*TRUNKLINE, *command, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environ,
            start_new_session=True,
            # So that Ctrl-C becomes a signal for it.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A terminal that goes away takes its program with it.
        os.close(self._master)
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            if error is None:
                raise

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def say(self, text: str) -> None:
        """Wait for the prompt, type a message and send it."""
        self.wait_for_prompt()
        self.type(text + ENTER)

    def wait_for_prompt(self) -> None:
        """Wait until it is our turn."""
        self.until(lambda: self.last_line.endswith(PROMPT))

    def sees(self, *texts: str) -> None:
        """Wait until all of the texts are on the screen at once."""
        self.until(lambda: all(text in self.terminal.screen for text in texts), f"never seen together: {texts}")

    def until(self, happened: Callable[[], bool], complaint: str = "it did not happen") -> None:
        """Look at the screen until something is true of it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            left = deadline - time.monotonic()
            assert left > 0, f"{complaint}\n{self.terminal.screen}"
            if select.select([self._master], [], [], left)[0] and not self._read():
                assert happened(), f"{complaint}, and it ended\n{self.terminal.screen}"

    def until_true(self, happened: Callable[[], bool]) -> None:
        """Wait for something that is not to be seen on the screen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, self.terminal.screen
            if select.select([self._master], [], [], LOOK_SECONDS)[0]:
                self._read()

    def is_stopped(self) -> bool:
        """Whether it was put into the background."""
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def leaves(self) -> int:
        """Wait for its end; gives the exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))[0] and self._read():
            pass
        return self.process.wait(PATIENCE_SECONDS)

    @property
    def last_line(self) -> str:
        """The lowest line on the screen."""
        return self.terminal.screen.rpartition("\n")[2]

    def _read(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError:
            # How a pseudo-terminal says that nobody has it open any more.
            return False
        text = self._decoder.decode(data)
        self.raw += text
        self.terminal.feed(text)
        return bool(data)
