"""The tools at work: a line each, and below a command the last lines that it has printed."""

from __future__ import annotations

import re
from collections import deque

from rich.text import Text

from trunkline.cli.terminal import words
from trunkline.cli.terminal.calls import LONGEST_LINE, Caption, clean, one_line
from trunkline.cli.terminal.marks import RUNNING, captioned, joined

#: The end of a running command's output that is visible.
OUTPUT_LINES = 5

#: How a command that prints nothing shows that it is alive. The line above tells how long it has been.
_STILL_RUNNING = re.compile(r"still running after \d+ s")


class RunningTool:
    """A tool at work. `is_command`: what it reports is what it prints."""

    def __init__(self, about: Caption, since: float, *, is_command: bool) -> None:
        self.about = about
        self.since = since
        self.says = ""
        self.output: deque[str] = deque(maxlen=OUTPUT_LINES)
        self._is_command = is_command

    def report(self, message: str, now: float) -> None:
        """It is at work on this, or has printed it."""
        if not self._is_command:
            self.says = one_line(message)
        elif not _STILL_RUNNING.fullmatch(message):
            lines = clean(message[: OUTPUT_LINES * LONGEST_LINE]).split("\n")
            self.output.extend(line.rstrip()[:LONGEST_LINE] for line in lines if line.strip())

    def lines(self, now: float, width: int, rows: int) -> list[Text]:
        """How it is going, with at most `rows` lines of its output."""
        head = captioned(self.about, RUNNING, joined(words.seconds(now - self.since), self.says), width)
        return [head, *self.printed(rows)]

    def printed(self, rows: int = OUTPUT_LINES) -> list[Text]:
        """The last of what it has printed."""
        shown = list(self.output)[len(self.output) - min(rows, len(self.output)) :]
        return [Text(f"  │ {line}", "dim") for line in shown]
