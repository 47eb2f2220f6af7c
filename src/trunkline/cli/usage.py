"""`trunkline usage`: what the agents of the exchange that runs here have used."""

from __future__ import annotations

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
    """Show what the agents of the exchange that runs here have used: turns, tokens, dollars.

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
            f"{row.get('usd', 0.0):.4f}",
        ]
        for row in said["usage"]
    ]
    if rows:
        table.show([by.upper(), "TURNS", "INPUT", "OUTPUT", "USD"], rows)
    else:
        click.echo("Nothing was used yet.", err=True)
