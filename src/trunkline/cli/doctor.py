"""`trunkline doctor`: what is wrong with an exchange before it is started, and the command that mends each.

Exit codes: 0; 1 when something is wrong.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.exchange_home import FILE
from trunkline.base.printable import printable_line
from trunkline.base.programs import find_program
from trunkline.cli import table
from trunkline.cli.explained import explained
from trunkline.exchange.alone import up_home
from trunkline.exchange.checking import DoctorFinding, examine
from trunkline.exchange.first_file import demonstration_path
from trunkline.wires.acp import hub

EXIT_FAILED = 1


@click.command("doctor")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="The exchange's file (default: trunkline.toml here, else the one of `trunkline up`).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--agents", is_flag=True, help="Instead, say which agents of other people are here: `acp:NAME`.")
@explained
def command(config: str | None, as_json: bool, agents: bool) -> None:
    """List what is wrong with an exchange, each problem with the command that fixes it.

    Looks at the file, the packages, the home, the address, and at whether each agent could answer here. Nothing is
    started, and nobody is asked anything but the model servers of a `models.json`: whether they work.

    With --agents, lists the programs that speak the Agent Client Protocol and go by a short name, such as
    `acp:opencode`, and what each of them lacks here.

    \b
    Examples:
      trunkline doctor
      trunkline doctor --config ~/exchange/trunkline.toml --json
      trunkline doctor --agents
    """
    if agents:
        _show_agents(as_json)
        return
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


def _show_agents(as_json: bool) -> None:
    """Which of the known agents are here. That one is missing is nothing wrong."""
    records = [_agent(name, known) for name, known in hub.PROGRAMS.items()]
    if as_json:
        click.echo(jsontext.dumps({"agents": records}))
        return
    rows = [[f"acp:{each['name']}", "yes" if each["path"] else "no", each["description"]] for each in records]
    table.show(["NAME", "HERE", "DESCRIPTION"], rows)
    for each in records:
        if each["advice"]:
            click.echo(f"\n{each['name']}: {each['path'] or 'not here'}\n  {each['advice']}")


def _agent(name: str, known: hub.KnownAcpAgent) -> dict[str, Any]:
    """What is known of an agent, and what it lacks. Variables are named and never shown."""
    path = find_program(known.argv[0])
    keys = [key for key in known.keys if os.environ.get(key)]
    advice = ""
    if path is None:
        advice = known.how_to_install + (f" It needs {known.note}." if known.note else "")
    elif not keys:
        # Whether somebody has logged in is not to be seen from here.
        advice = f"Log in ({known.login}) unless you have, or set {' or '.join(known.keys[:2])}."
    command = shlex.join(known.argv)
    return {"name": name, "description": known.about, "command": command, "path": path, "keys": keys, "advice": advice}


def _usual() -> str:
    """The file of the exchange that `trunkline approvals` and `--attach` find from here."""
    unnamed = demonstration_path(up_home())
    return unnamed if os.path.exists(unnamed) and not os.path.lexists(FILE) else FILE


def _record(finding: DoctorFinding) -> dict[str, object]:
    return {name: getattr(finding, name) for name in finding.__fields__}
