"""`trunkline usage`: what the agents of the exchange that runs here have used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.cli import local_exchange, table
from trunkline.cli.explained import explained


@click.command("usage")
@click.option(
    "--by",
    type=click.Choice(["agent", "day", "person", "model"]),
    default="agent",
    show_default=True,
    help="A line for each of these.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@explained
def command(by: str, as_json: bool) -> None:
    """Show what the agents of the exchange that runs here have used: turns, tokens, dollars, and budgets.

    A cost of `-` is not known: the model has no price.

    \b
    Examples:
      trunkline usage
      trunkline usage --by day --json
    """
    said = local_exchange.request("GET", f"/api/usage?by={by}")
    if as_json:
        click.echo(jsontext.dumps(said))
        return
    rows = [
        [
            printable_line(str(row[by] or "-")),
            f"{row['turns']:,}",
            f"{row['input_tokens']:,}",
            f"{row['output_tokens']:,}",
            _dollars(row),
            *([_of_budget(row.get("budget") or {})] if by == "agent" else []),
        ]
        for row in said["usage"]
    ]
    if rows:
        table.show([by.upper(), "TURNS", "INPUT", "OUTPUT", "USD", *(["OF ITS BUDGET"] if by == "agent" else [])], rows)
    else:
        click.echo("Nothing was used yet.", err=True)


#: The limits of a budget, as people say them.
_LIMITS = {"tokens_per_day": "tokens today", "usd_per_day": "USD today", "turns_per_hour": "turns this hour"}


def _dollars(row: Mapping[str, Any]) -> str:
    """Tokens that cost nothing are those of a model without a known price."""
    usd = row.get("usd", 0.0)
    return "-" if not usd and (row["input_tokens"] or row["output_tokens"]) else f"{usd:.4f}"


def _of_budget(budget: Mapping[str, Mapping[str, float]]) -> str:
    known = {name: limit for name, limit in budget.items() if name in _LIMITS}
    told = [f"{_number(limit['used'])} of {_number(limit['limit'])} {_LIMITS[name]}" for name, limit in known.items()]
    return ", ".join(told) or "-"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
