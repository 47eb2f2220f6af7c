"""What commands have in common that talk to a graph in the terminal: lines in, events and progress out."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

import click

from trunkline import __version__
from trunkline.base.printable import printable, printable_line
from trunkline.cli.agent_options import EnvironmentFilter

_PROMPT = "> "
_HELP, _LEAVING = "/help", ("/exit", "/quit")
_COMMANDS = {
    _HELP: "lists these commands",
    **dict.fromkeys(_LEAVING, "leaves"),
    "Ctrl-C": "stops the answer; without one, leaves",
    "Ctrl-D": "leaves",
}
_COMMAND_WIDTH = 2 + max(map(len, _COMMANDS))
#: Lines about a download: one for each so many hundredths.
_STEP = 10
#: What takes less needs no line.
MOMENT_SECONDS = 1.0


class Screen:
    """Standard output with an answer that grows, and standard error with all else there is to say meanwhile.

    On a terminal both are the same, and what comes in the middle of an answer's line gets a line of its own. It may
    come from another thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._within = self._broken = False

    def write(self, piece: str) -> None:
        """The answer goes on."""
        if piece:
            with self._lock:
                click.echo(printable(piece), nl=False)
                self._within, self._broken = not piece.endswith("\n"), False

    def end(self) -> None:
        """The answer is over, and so is its line."""
        with self._lock:
            if not self._broken:
                click.echo()
            self._within = self._broken = False

    def aside(self, text: str) -> None:
        """Something else, on standard error."""
        with self._lock:
            if self._within and _is_one_terminal():
                click.echo(err=True)
                self._within, self._broken = False, True
            click.echo(printable(text), err=True)

    @contextmanager
    def log(self) -> Iterator[None]:
        """Show here, too, what is logged in the block."""
        handler = _Aside(self)
        logger = logging.getLogger("trunkline")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)


class _Aside(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(EnvironmentFilter())
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.aside(self.format(record))


def _is_one_terminal() -> bool:
    return sys.stdout.isatty() and sys.stderr.isatty()


#: There is one.
screen = Screen()


def messages(*about: str, note: str = "") -> Iterator[str]:
    """What is typed, or piped in: a message for each line.

    Whoever types is greeted with what it is `about` and a `note`, and has some commands. Any other word behind a slash
    is for the agent, and so is all that is piped in.
    """
    if not sys.stdin.isatty():
        yield from (line.rstrip("\n") for line in sys.stdin)
        return
    screen.aside(" · ".join((f"trunkline {__version__}", *about)))
    if note:
        screen.aside(note)
    screen.aside("/help lists commands · Ctrl-C stops an answer · Ctrl-D leaves")
    while True:
        try:
            line = input(_PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            # Else the shell's next prompt would stand behind ours.
            click.echo()
            raise
        word = line.strip().partition(" ")[0]
        if word in _LEAVING:
            return
        if word == _HELP:
            for name, meaning in _COMMANDS.items():
                screen.aside(f"{name:{_COMMAND_WIDTH}}{meaning}")
        else:
            yield line


def show_event(node: str, kind: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Tell on standard error what a node wants to be known."""
    told = ", ".join(f"{key}={value}" for key, value in pairs)
    screen.aside(printable_line(f"[{node}: {kind}] {told}"))


class ProgressLines:
    """Progress on standard error: a line for each tenth of the way, of what takes longer than a moment."""

    def __init__(self, knowledge: Iterable[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._knowledge = frozenset(knowledge)
        self._clock = clock
        self._last: tuple[str, int] | None = None
        self._began: dict[str, float] = {}

    def show(self, name: str, percent: float) -> None:
        """So far it is."""
        now = self._clock()
        if now - self._began.setdefault(name, now) < MOMENT_SECONDS:
            return
        share = int(max(0.0, min(percent, 100.0)))
        step = (name, share // _STEP)
        if step != self._last:
            self._last = step
            what = f"reading the knowledge `{name}`" if name in self._knowledge else f"fetching {name}"
            screen.aside(printable_line(f"{what}: {share} %"))
