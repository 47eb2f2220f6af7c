"""`trunkline ledger`: what each wire carries, degrades or refuses of a conversation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from trunkline.base import jsontext, shapes
from trunkline.wires import ledger_matrix
from trunkline.wires.ledger import CONCEPTS, WIRES, Cell, Concept, Fate
from trunkline.wires.ledger_matrix import AGENTS, MATRIX, SCENARIOS, WAYS, WORDS, Found, Scenario

if TYPE_CHECKING:
    from rich.console import Console

#: What a table has left and right of its columns, and between two of them.
_EDGES, _GAP = 4, 1
_COLUMN = _GAP + 1

FATES: dict[Fate, str] = {"carried": "green", "degraded": "yellow", "refused": "red"}

#: Green: as good as it gets. Yellow: something is lost. Red: it does not happen.
COLOURS: dict[Found, str] = {
    "carried": "green",
    "asked": "green",
    "elsewhere": "yellow",
    "by code": "yellow",
    "in words": "yellow",
    "told again": "yellow",
    "denied": "red",
}


@click.command("ledger")
@click.option("--wire", type=click.Choice(sorted(WIRES)), help="Only this wire (default: all of them).")
@click.option("--matrix", is_flag=True, help="What every kind of agent does on every way into an exchange.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(wire: str | None, matrix: bool, as_json: bool) -> None:
    """Show what each wire carries, degrades or refuses.

    A conversation has more to it than any one protocol can say. The ledger tells for every concept what becomes of it
    on a wire: it is carried whole, it is degraded (then the ledger says what is lost), or it is refused. On a terminal
    all wires stand side by side, and --wire says how; elsewhere everything is printed.

    With --matrix it tells instead what becomes of a message, a tool that needs approval, a stop, a failure and a
    restart, for every kind of agent and every way into an exchange. Tests run all of these.

    \b
    Examples:
      trunkline ledger
      trunkline ledger --wire jsonstream --json
      trunkline ledger --matrix
    """
    if matrix:
        if wire:
            raise click.UsageError("`--matrix` is about all wires: leave `--wire` out.")
        _show_matrix(as_json)
        return
    wires = [wire] if wire else sorted(WIRES)
    if as_json:
        click.echo(jsontext.dumps({"wires": {name: list(_records(name)) for name in wires}}).decode())
    elif sys.stdout.isatty() and wire:
        _print_wire(wire)
    elif sys.stdout.isatty():
        _print_overview()
    else:
        click.echo("\n\n".join(_text(name) for name in wires))


def _rows(wire: str) -> Iterator[tuple[Concept, Cell]]:
    return ((concept, WIRES[wire][concept.name]) for concept in CONCEPTS)


def _records(wire: str) -> Iterator[dict[str, Any]]:
    for concept, cell in _rows(wire):
        yield {"concept": concept.name, "group": concept.group, "what": concept.what, **shapes.encode(cell)}


def _summary(wire: str) -> str:
    fates = [cell.fate for cell in WIRES[wire].values()]
    return f"{wire}: {', '.join(f'{fates.count(fate)} {fate}' for fate in FATES)}"


def _how(cell: Cell) -> str:
    return f"{', '.join(cell.lines)}: {cell.how}" if cell.lines else cell.how


def _text(wire: str) -> str:
    width = max(len(concept.name) for concept in CONCEPTS)
    lines = [_summary(wire)]
    for group, rows in groupby(_rows(wire), key=lambda row: row[0].group):
        lines += ["", group]
        for concept, cell in rows:
            lost = f". Lost: {cell.lost}" if cell.lost else ""
            lines.append(f"  {concept.name:{width}}  {cell.fate:8}  {_how(cell)}{lost}")
    return "\n".join(lines)


def _print_wire(wire: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=_summary(wire), title_justify="left", title_style="bold")
    for heading in ("concept", "fate", "how"):
        table.add_column(heading, no_wrap=heading == "fate")
    last = None
    for concept, cell in _rows(wire):
        if last not in (None, concept.group):
            table.add_section()
        last = concept.group
        name = Text.assemble(concept.name, "\n", (concept.what, "dim"))
        how = Text.assemble(_how(cell), *([("\nlost: " + cell.lost, "yellow")] if cell.lost else []))
        table.add_row(name, Text(cell.fate, FATES[cell.fate]), how)
    Console(highlight=False).print(table)


def _print_overview() -> None:
    """All wires side by side: how and what is lost would be a thousand lines."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for group, concepts in groupby(CONCEPTS, key=lambda concept: concept.group):
        rows = {concept.name: [WIRES[wire][concept.name].fate for wire in sorted(WIRES)] for concept in concepts}
        _print_words(console, group, sorted(WIRES), rows, FATES)
    console.print(Text("\n".join(map(_summary, sorted(WIRES)))))
    console.print(Text("\n`trunkline ledger --wire NAME` says how, and what is lost.", "dim"))


def _print_words(
    console: Console, first: str, headings: Sequence[str], rows: Mapping[str, Sequence[str]], colours: Mapping[Any, str]
) -> None:
    """A table of words. One that is too wide for the terminal becomes several, below each other."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    widths = [max(map(len, column)) for column in zip(headings, *rows.values(), strict=True)]
    names = max(map(len, (first, *rows)))
    for some in _parts(widths, console.width - _EDGES - names):
        # Without lines between the columns more of them fit.
        table = Table(box=SIMPLE_HEAD, padding=(0, _GAP, 0, 0))
        table.add_column(first, no_wrap=True, width=names)
        for heading, width in zip(headings[some], widths[some], strict=True):
            table.add_column(heading, no_wrap=True, width=width)
        for name, words in rows.items():
            table.add_row(name, *(Text(word, colours[word]) for word in words[some]))
        console.print(table)


def _parts(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Which columns go into each table, if that is all the room: as few tables as possible, about equally wide."""
    taken = [width + _COLUMN for width in widths]
    count = 1
    while True:
        size = -(-len(taken) // count)
        parts = [slice(start, start + size) for start in range(0, len(taken), size)]
        if size == 1 or all(sum(taken[part]) <= room for part in parts):
            return iter(parts)
        count += 1


# The matrix

_ROWS = "A row for each kind of agent, and a column for each way into an exchange."


def _show_matrix(as_json: bool) -> None:
    if as_json:
        cells = [
            {"agent": agent, "way": way, **{name: shapes.encode(outcome) for name, outcome in outcomes.items()}}
            for (agent, way), outcomes in MATRIX.items()
        ]
        told = {"agents": AGENTS, "ways": WAYS, "scenarios": SCENARIOS, "words": WORDS, "cells": cells}
        click.echo(jsontext.dumps(told).decode())
    elif sys.stdout.isatty():
        _print_matrix()
    else:
        click.echo("\n\n".join([_ROWS, *map(_matrix_text, SCENARIOS), _legend()]))


def _matrix_text(scenario: Scenario) -> str:
    width = max(map(len, (*AGENTS, *WAYS, *WORDS)))
    lines = [f"{scenario}: {SCENARIOS[scenario]}"]
    for first, words in (("agent", WAYS), *((agent, _words(agent, scenario)) for agent in AGENTS)):
        lines.append("  ".join(["", *(f"{word:{width}}" for word in (first, *words))]).rstrip())
    return "\n".join([*lines, *(f"  {told}" for told in _limits(scenario))])


def _words(agent: str, scenario: Scenario) -> list[Found]:
    return [MATRIX[agent, way][scenario].word for way in WAYS]


def _limits(scenario: Scenario) -> Iterator[str]:
    for limit in ledger_matrix.limits(scenario):
        place = f"the agent {limit.agent}" if limit.agent else f"the way {limit.way}"
        yield f"{place}, {limit.outcome.word}: {limit.outcome.why}"


def _legend() -> str:
    width = max(map(len, WORDS))
    return "\n".join(["words", *(f"  {word:{width}}  {meaning}" for word, meaning in WORDS.items())])


def _print_matrix() -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(_ROWS)
    for scenario, what in SCENARIOS.items():
        console.print(Text(f"\n{scenario}: {what}", "bold"))
        _print_words(console, "agent", list(WAYS), {agent: _words(agent, scenario) for agent in AGENTS}, COLOURS)
        for told in _limits(scenario):
            console.print(Text(told, "dim"))
    console.print(Text(f"\n{_legend()}"))
