"""`trunkline cluster`: the nodes that the exchange here is one of."""

from __future__ import annotations

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.cli import cluster_backup, local_exchange, table
from trunkline.cli.explained import explained


@click.group("cluster")
def command() -> None:
    """Look at the cluster that the exchange here is a node of, back it up, and restore it."""


command.add_command(cluster_backup.backup)
command.add_command(cluster_backup.restore)


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@explained
def status(as_json: bool) -> None:
    """Show the nodes that are alive, and how many sessions each has awake.

    The exit code is 1 if the node here is cut off from the others.

    \b
    Examples:
      trunkline cluster status
      trunkline cluster status --json
    """
    said = local_exchange.request("GET", "/api/cluster")
    if as_json:
        click.echo(jsontext.dumps(said))
    else:
        rows = [
            [
                printable_line(node["name"]) + (" (here)" if node["name"] == said["node"] else ""),
                printable_line(node["address"] or "-"),
                "draining" if node["draining"] else "ready" if node["ready"] else "cut off",
                f"{node['sessions']:,}",
            ]
            for node in said["nodes"]
        ]
        table.show(["NODE", "ADDRESS", "STATE", "SESSIONS"], rows)
        if said["why"]:
            click.echo(printable_line(said["why"]), err=True)
    if not said["ready"]:
        raise SystemExit(1)
