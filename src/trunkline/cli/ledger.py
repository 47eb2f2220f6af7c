"""`trunkline ledger`: what each wire carries, degrades or refuses of a conversation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import click

from trunkline.base import jsontext, shapes
from trunkline.wires.ledger import CONCEPTS, WIRES, Cell, Concept, Fate

FATES: dict[Fate, str] = {"carried": "green", "degraded": "yellow", "refused": "red"}


@click.command("ledger")
@click.option("--wire", type=click.Choice(sorted(WIRES)), help="Only this wire (default: all of them).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(wire: str | None, as_json: bool) -> None:
    """Show what each wire carries, degrades or refuses.

    A conversation has more to it than any one protocol can say. The ledger tells for every concept what becomes of it
    on a wire: it is carried whole, it is degraded (then the ledger says what is lost), or it is refused.

    \b
    Examples:
      trunkline ledger
      trunkline ledger --wire jsonstream --json
    """
    wires = [wire] if wire else sorted(WIRES)
    if as_json:
        click.echo(jsontext.dumps({"wires": {name: list(_records(name)) for name in wires}}).decode())
    elif sys.stdout.isatty():
        _print_tables(wires)
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


def _print_tables(wires: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for wire in wires:
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
        console.print(table)
