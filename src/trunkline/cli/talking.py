"""What commands have in common that talk to a graph in the terminal: lines in, events and progress out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from trunkline.base.printable import printable

_PROMPT = "> "
#: Lines about a download: one for each so many hundredths.
_STEP = 10


def messages() -> Iterator[str]:
    """What is typed, or piped in: a message for each line."""
    if not sys.stdin.isatty():
        yield from (line.rstrip("\n") for line in sys.stdin)
        return
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            click.echo()
            return


def show_event(node: str, kind: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Tell on standard error what a node wants to be known."""
    told = ", ".join(f"{key}={value}" for key, value in pairs)
    click.echo(printable(f"[{node}: {kind}] {told}"), err=True)


class ProgressLines:
    """Progress on standard error: a line for each tenth of the way."""

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None

    def show(self, name: str, percent: float) -> None:
        """So far it is."""
        share = int(max(0.0, min(percent, 100.0)))
        step = (name, share // _STEP)
        if step != self._last:
            self._last = step
            click.echo(printable(f"{name}: {share} %"), err=True)
