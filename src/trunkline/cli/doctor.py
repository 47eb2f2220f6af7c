"""`trunkline doctor`: what is wrong with an exchange before it is started, and the command that mends each.

Exit codes: 0; 1 when something is wrong.
"""

from __future__ import annotations

import asyncio
import os
import sys

import click

from trunkline.base import jsontext
from trunkline.base.exchange_home import FILE
from trunkline.base.printable import printable_line
from trunkline.cli.explained import explained
from trunkline.exchange.alone import up_home
from trunkline.exchange.checking import DoctorFinding, examine
from trunkline.exchange.first_file import demonstration_path

EXIT_FAILED = 1


@click.command("doctor")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="The exchange's file (default: trunkline.toml here, else the one of `trunkline up`).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@explained
def command(config: str | None, as_json: bool) -> None:
    """List what is wrong with an exchange, each problem with the command that fixes it.

    Looks at the file, the packages, the home, the address, and at whether each agent could answer here. Nothing is
    started, and nobody is asked anything.

    \b
    Examples:
      trunkline doctor
      trunkline doctor --config ~/exchange/trunkline.toml --json
    """
    found = asyncio.run(examine(config or _usual(), os.environ))
    if as_json:
        click.echo(jsontext.dumps({"ok": all(each.ok for each in found), "checks": [_record(each) for each in found]}))
    else:
        for each in found:
            click.echo(printable_line(f"{'ok    ' if each.ok else 'WRONG '} {each.what}: {each.told}"))
            if each.mend:
                click.echo(printable_line(f"       {each.mend}"))
    if not all(each.ok for each in found):
        sys.exit(EXIT_FAILED)


def _usual() -> str:
    """The file of the exchange that `trunkline approvals` and `--attach` find from here."""
    unnamed = demonstration_path(up_home())
    return unnamed if os.path.exists(unnamed) and not os.path.lexists(FILE) else FILE


def _record(finding: DoctorFinding) -> dict[str, object]:
    return {name: getattr(finding, name) for name in finding.__fields__}
