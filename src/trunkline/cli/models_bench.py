"""`trunkline models bench`: how fast the models of this machine are.

Exit codes: 0, or 1 when a model could not be measured, or 130 when Ctrl-C ended it. What was measured until then is
printed in any case.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.base.sizes import size_text
from trunkline.cli import table
from trunkline.cli.explained import explained, explanation
from trunkline.core.faults import ConfigError, Fault
from trunkline.models import catalog
from trunkline.models.catalog_entry import LLAMA, LLM, OPENAI, CatalogEntry
from trunkline.models.figures import FIGURES, Figure, MeasuredModel, MeasurePlan
from trunkline.models.here import is_here

EXIT_FAILED, EXIT_STOPPED = 1, 130
#: More than any window.
MOST_TOKENS = 1 << 20
#: The fewest tokens that say something of a speed.
FEWEST_TOKENS = 8
MOST_REPEATS = 1000

_USUAL = MeasurePlan()


@click.command("bench")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--prompt-tokens",
    type=click.IntRange(1, MOST_TOKENS),
    default=_USUAL.prompt_tokens,
    show_default=True,
    help="About as many tokens a language model reads.",
)
@click.option(
    "--tokens",
    type=click.IntRange(FEWEST_TOKENS, MOST_TOKENS),
    default=_USUAL.tokens,
    show_default=True,
    help="As many it writes.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, MOST_REPEATS),
    default=_USUAL.repeat,
    show_default=True,
    help="How often each is measured.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@explained
def command(names: tuple[str, ...], prompt_tokens: int, tokens: int, repeat: int, as_json: bool) -> None:
    """Measure how fast the models NAME are on this machine, or all that are here.

    Of all: how long they take to load, and by how much the memory grows. Of language models: tokens of the prompt and
    of the answer per second, and the time until the first; of embedding models texts per second; of models that hear
    and speak the real-time factor, which is the time that they take for a second of sound. Each is measured several
    times, after one time that does not count: told are the median, the least and the most. Meanwhile let the machine do
    nothing else. The console shows the speed of language models, too.

    \b
    Examples:
      trunkline models bench
      trunkline models bench smollm2-135m --prompt-tokens 512 --tokens 128 --repeat 5
      trunkline models bench whisper-base piper-joe --json
    """
    bench = _Bench(_chosen(names), MeasurePlan(prompt_tokens, tokens, repeat))
    stopped = False
    try:
        asyncio.run(bench.run())
    except KeyboardInterrupt:
        stopped = True
        told = "Stopped. What was measured until now:" if bench.found else "Stopped before anything was measured."
        click.echo(told, err=True)
    if as_json:
        click.echo(jsontext.dumps(bench.members()))
    else:
        bench.show()
    if stopped:
        sys.exit(EXIT_STOPPED)
    if bench.failed:
        sys.exit(EXIT_FAILED)


def _chosen(names: Sequence[str]) -> list[CatalogEntry]:
    """The models that are meant.

    Raises:
        ConfigError: there is no such model, or none at all is here.
    """
    if names:
        return [catalog.find(name) for name in dict.fromkeys(names)]
    here = [entry for entry in catalog.entries() if entry.engine != OPENAI and is_here(entry)]
    if not here:
        raise ConfigError("No model is here.", hint="Get one with `trunkline models pull smollm2-135m`.")
    return here


class _Bench:
    """All of it, and what came of it until now."""

    def __init__(self, entries: Sequence[CatalogEntry], plan: MeasurePlan) -> None:
        self._entries = entries
        self._plan = plan
        self.found: dict[str, MeasuredModel] = {}
        self.failed: dict[str, str] = {}

    async def run(self) -> None:
        for entry in self._entries:
            click.echo(f"{entry.name}: loading", err=True)
            try:
                await self._measure(entry)
            except (Fault, OSError) as error:
                self.failed[entry.name] = printable_line(explanation(error))
                click.echo(f"{entry.name}: {self.failed[entry.name]}", err=True)

    async def _measure(self, entry: CatalogEntry) -> None:
        from trunkline.models import measuring, measuring_others

        if entry.kind == LLM and entry.engine == LLAMA:
            await measuring.measure(entry.name, self._plan, self._took)
        else:
            await measuring_others.measure(entry, self._plan, self._took)

    def _took(self, measured: MeasuredModel) -> None:
        self.found[measured.name] = measured
        click.echo(f"{measured.name}: {measured.runs} of {self._plan.repeat}", err=True)

    def members(self) -> dict[str, Any]:
        """For programs."""
        plan = {field: getattr(self._plan, field) for field in self._plan.__fields__}
        return {
            "cores": os.cpu_count(),
            "plan": plan,
            "models": [_members(each) for each in self.found.values()],
            "failed": [{"name": name, "error": error} for name, error in self.failed.items()],
        }

    def show(self) -> None:
        """For people: a line for each figure."""
        rows = [row for each in self.found.values() for row in _rows(each)]
        if rows:
            table.show(["MODEL", "LOADED IN", "MEMORY", "DEVICE", "MEASURED", "MEDIAN", "FROM - TO"], rows, wide=True)


def _members(measured: MeasuredModel) -> dict[str, Any]:
    used = measured.used
    return {
        "name": measured.name,
        "kind": measured.kind,
        "runs": measured.runs,
        "load_seconds": measured.load_seconds,
        "memory_bytes": measured.memory_bytes,
        "prompt_tokens": measured.prompt_tokens or None,
        "used": {field: getattr(used, field) for field in used.__fields__},
        "figures": {
            name: {"median": each.median, "least": each.least, "most": each.most}
            for name, each in measured.figures.items()
        },
    }


def _rows(measured: MeasuredModel) -> list[list[str]]:
    memory = size_text(measured.memory_bytes) if measured.memory_bytes else ""
    first = [measured.name, f"{measured.load_seconds:g} s", memory, measured.used.device]
    return [
        [*(first if place == 0 else [""] * len(first)), FIGURES[name], f"{each.median:g}", _span(each)]
        for place, (name, each) in enumerate(measured.figures.items())
    ]


def _span(figure: Figure) -> str:
    return f"{figure.least:g} - {figure.most:g}"
