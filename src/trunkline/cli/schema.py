"""`trunkline schema`: the messages of a wire, for programs that check or generate them."""

from __future__ import annotations

import json
from importlib import import_module

import click

#: Wire -> module with `document(direction)`, which gives the JSON Schema as a dict.
_SCHEMAS = {"jsonstream": "trunkline.wires.jsonstream.schema", "agentproc": "trunkline.wires.agentproc.schema"}


@click.command("schema")
@click.argument("wire", type=click.Choice(list(_SCHEMAS)))
@click.option(
    "--direction",
    type=click.Choice(["events", "commands", "both"]),
    default="both",
    show_default=True,
    help="What the agent says, what the host or bridge says, or either.",
)
def command(wire: str, direction: str) -> None:
    """Print the JSON Schema (2020-12) of a WIRE's messages: the JSON stream, or AgentProc 0.4.

    One line of the wire is one instance of it. Each message is in `$defs` under its `type`; those of the JSON stream
    that are not in the protocol document but are understood carry `x-dialect`.

    \b
    Examples:
      trunkline schema jsonstream > jsonstream.schema.json
      trunkline schema agentproc --direction commands
    """
    click.echo(json.dumps(import_module(_SCHEMAS[wire]).document(direction), indent=2, ensure_ascii=False))
