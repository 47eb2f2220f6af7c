"""`trunkline node`: one node of a cluster."""

from __future__ import annotations

import time

import click

from trunkline.base import jsontext
from trunkline.cli import local_exchange
from trunkline.cli.explained import explained

#: How often is looked how far it is.
LOOK_SECONDS = 0.5


@click.group("node")
def command() -> None:
    """Do something with a node of the cluster."""


@command.command("drain")
@click.argument("name", metavar="NAME")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is drained.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@explained
def drain(name: str, no_wait: bool, as_json: bool) -> None:
    """Let the node NAME go: it takes no new sessions, and those that it has move to others when their turns have ended.

    Ask any node of the cluster. When this returns, the node can be stopped. Ctrl-C stops waiting, and not the move;
    starting the node again ends the draining.

    \b
    Examples:
      trunkline node drain b
      trunkline node drain b --no-wait
    """
    said = local_exchange.request("POST", "/api/cluster/drain", {"node": name})
    left = said["sessions"]
    while left and not no_wait:
        if not as_json:
            click.echo(f"Sessions that are still on `{name}`: {left}", err=True)
        time.sleep(LOOK_SECONDS)
        before = left
        while left == before:
            found = local_exchange.request("GET", "/api/cluster")
            left = next((node["sessions"] for node in found["nodes"] if node["name"] == name), 0)
            if left == before:
                time.sleep(LOOK_SECONDS)
    if as_json:
        click.echo(jsontext.dumps({"node": name, "sessions": left}))
    else:
        click.echo(f"Node `{name}` is drained." if not left else f"Node `{name}` is being drained.")
