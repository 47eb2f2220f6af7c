"""`trunkline console`: a link that opens the console of the exchange that runs here."""

from __future__ import annotations

import sys

import click

from trunkline.base import jsontext
from trunkline.cli import local_exchange
from trunkline.cli.explained import explained


@click.command("console")
@click.option(
    "--open/--no-open", "opens", default=None, help="Whether to open it in a browser (default: at a terminal)."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and open nothing.")
@explained
def command(opens: bool | None, as_json: bool) -> None:
    """Print a link that signs one browser in to the console of the exchange that runs here, and open it.

    The link works once, and for a day. In the console you see what every agent does, answer what they ask, and find out
    why something ended.

    \b
    Examples:
      trunkline console
      trunkline console --no-open
    """
    said = local_exchange.request("POST", "/api/console/links", {})
    if as_json:
        click.echo(jsontext.dumps(said))
        return
    click.echo(said["url"])
    if sys.stdout.isatty() if opens is None else opens:
        import webbrowser

        webbrowser.open(said["url"])
