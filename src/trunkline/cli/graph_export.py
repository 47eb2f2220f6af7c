"""`trunkline graph export`: a graph's file as JSON, for clients of the Tryll wire that read no YAML."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from trunkline.base.printable import printable_line
from trunkline.cli.graph_options import complete_graph
from trunkline.cli.trace import refuse_to_replace
from trunkline.core.faults import Fault

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_graph import GraphFile


@click.command("export", short_help="Write a graph as JSON, for game clients.")
@click.argument("file", type=click.Path(), shell_complete=complete_graph)
@click.option(
    "-o",
    "--output",
    metavar="OUT.json",
    type=click.Path(dir_okay=False),
    help="Write it to this file instead of standard output.",
)
def command(file: str, output: str | None) -> None:
    """Write a graph as one JSON object: what a game's client sends to a server to have its agent there.

    `storages` are the requests that create the graph's storages, in order; `agent` is the one that creates the agent.
    Both are messages of the Tryll wire in their JSON form, without fields that have their defaults, and without ids.
    """
    from trunkline.agents.graph import yaml_graph
    from trunkline.base import jsontext

    refuse_to_replace(output, file)
    try:
        text = jsontext.dumps(exported(yaml_graph.load(file))).decode()
        if output is None:
            click.echo(text)
        else:
            with open(output, "w", encoding="utf-8") as opened:
                opened.write(f"{text}\n")
    except Fault as error:
        raise click.ClickException(printable_line(str(error))) from error
    except OSError as error:
        raise click.ClickException(printable_line(f"`{output}` cannot be written: {error.strerror}.")) from error
    sys.exit(0)


def exported(found: GraphFile) -> dict[str, Any]:
    """The requests that make an agent of the file."""
    from trunkline.wires.tryll import messages as m
    from trunkline.wires.tryll.codec import json_form

    storages: list[m.FromClient] = [
        m.CreateStringStorageRequest(0, each.name, each.strings, each.file_path, each.kind, each.keys)
        for each in found.storages
    ]
    storages += [
        m.CreateEmbeddedStringStorageRequest(
            0, each.name, each.config_path, each.strings, each.embedding_model, each.records_json, each.memory_path
        )
        for each in found.knowledge
    ]
    agent = m.CreateAgentRequest(0, found.graph, found.default_model, found.diagnostics, found.max_steps)
    return {"storages": [json_form.brief(each) for each in storages], "agent": json_form.brief(agent)}
