"""`trunkline schema`: the messages of a wire, for programs that check or generate them.

Each wire has a module in this folder: `text(direction)` is what is printed, for one of its `DIRECTIONS`.
"""

from __future__ import annotations

from importlib import import_module

import click

#: The wires, each with its module here.
WIRES = {"jsonstream": "jsonstream", "agentproc": "agentproc", "sns": "sns", "tryll": "tryll"}

_BOTH = "both"


@click.command("schema")
@click.argument("wire", type=click.Choice(list(WIRES)))
@click.option(
    "--direction",
    type=click.Choice(["events", "commands", _BOTH]),
    default=_BOTH,
    show_default=True,
    help="What the agent says, what the host or bridge says, or either: of the wires that are JSON lines.",
)
def command(wire: str, direction: str) -> None:
    """Print a WIRE's messages, in the language that programs have for them.

    \b
    jsonstream  JSON Schema (2020-12): one line of the wire is one instance. Each message is in `$defs` under its
                `type`; those that are not in the protocol document but are understood carry `x-dialect`.
    agentproc   AgentProc 0.4 as JSON Schema, likewise.
    sns         OpenAPI 3.1: every route of the network, as it serves it at `/api/openapi.json`. What makes the network
                makes this, too: it needs the `network` extra.
    tryll       FlatBuffers: the `.fbs` that `flatc` reads. The vendor's is not public; this one is a reconstruction.

    \b
    Examples:
      trunkline schema jsonstream > jsonstream.schema.json
      trunkline schema agentproc --direction commands
      trunkline schema sns > openapi.json
      trunkline schema tryll > messages.fbs
    """
    module = import_module(f"trunkline.cli.schema.{WIRES[wire]}")
    if direction not in module.DIRECTIONS:
        raise click.UsageError(f"`{wire}` is not divided by `--direction`: leave it out.")
    click.echo(module.text(direction), nl=False)
