"""`trunkline schema`: the messages of a wire, for programs that check or generate them."""

from __future__ import annotations

import json

import click

from trunkline.wires.jsonstream import schema as jsonstream
from trunkline.wires.jsonstream.schema import Direction


@click.command("schema")
@click.argument("wire", type=click.Choice(["jsonstream"]))
@click.option(
    "--direction",
    type=click.Choice(["events", "commands", "both"]),
    default="both",
    show_default=True,
    help="What the agent says, what the host says, or either.",
)
def command(wire: str, direction: Direction) -> None:
    """Print the JSON Schema (2020-12) of a WIRE's messages.

    One line of the wire is one instance of it. Each message is in `$defs` under its `type`; those that are not in the
    protocol document but are understood carry `x-dialect`.

    \b
    Examples:
      trunkline schema jsonstream > jsonstream.schema.json
      trunkline schema jsonstream --direction commands
    """
    click.echo(json.dumps(jsonstream.document(direction), indent=2, ensure_ascii=False))
