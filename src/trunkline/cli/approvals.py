"""`trunkline approvals`: what waits for a person in the exchange that runs here, and what became of it.

Exit codes: 0, or 1 when no exchange runs, there is no such approval, or somebody else was faster.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.cli import local_exchange, table, value_completion
from trunkline.cli.explained import explained
from trunkline.cli.local_exchange import ExchangeRefused
from trunkline.core.faults import ConfigError
from trunkline.core.transcript import when

#: So much of each id is shown in the list, where it is enough to tell it from the others.
FEWEST_OF_ID = 8

EXIT_FAILED = 1

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_approval = click.argument("approval", metavar="ID", shell_complete=value_completion.approvals)


@click.group("approvals")
def command() -> None:
    """See what agents ask for in the exchange that runs here, and answer.

    Of an ID its beginning is enough, as long as no other has it.

    \b
    Examples:
      trunkline approvals list
      trunkline approvals show 3f2a
      trunkline approvals approve 3f2a
      trunkline approvals deny 3f2a --reason "not on a Friday"
    """


@command.command("list", short_help="List what waits for an answer.")
@click.option(
    "--state",
    type=click.Choice(["pending", "approved", "denied", "closed", "all"]),
    default="pending",
    show_default=True,
    help="Those of one state, or all.",
)
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@_as_json
@explained
def list_approvals(state: str, wide: bool, as_json: bool) -> None:
    """List what waits for an answer, oldest first."""
    found = _found("" if state == "all" else f"?state={state}")
    if as_json:
        click.echo(jsontext.dumps({"approvals": found}))
    elif found:
        # From all others: of a shorter beginning, `approve` would not know which one is meant.
        known = {str(each["id"]) for each in (*found, *_found(""))}
        shown = max(FEWEST_OF_ID, _distinct(sorted(known)))
        rows = [
            [
                str(each["id"])[:shown],
                when(each["asked_at"] / 1000),
                str(each["state"]),
                printable_line(str(each["agent"])),
                printable_line(str(each["tool"])),
                printable_line(str(each["description"])),
            ]
            for each in found
        ]
        table.show(["ID", "ASKED", "STATE", "AGENT", "TOOL", "WHAT FOR"], rows, wide=wide)
    else:
        click.echo("Nothing waits for an answer." if state == "pending" else "There are none.", err=True)


@command.command("show", short_help="Show all of one approval.")
@_approval
@_as_json
@explained
def show(approval: str, as_json: bool) -> None:
    """Show what exactly is asked, and what became of it."""
    found = _one(approval)
    if as_json:
        click.echo(jsontext.dumps(found))
        return
    for name in ("id", "state", "agent", "session", "tool", "category", "description", "decided_by", "reason"):
        if found.get(name):
            click.echo(f"{name.replace('_', ' ')}: {printable_line(str(found[name]))}")
    click.echo(f"asked at: {when(found['asked_at'] / 1000)}")
    click.echo("arguments:")
    for name, value in found["args"].items():
        text = value if isinstance(value, str) else jsontext.dumps(value).decode("utf-8", "replace")
        click.echo(f"  {printable_line(name)}: {printable_line(text)}")


@command.command("approve", short_help="Let it be done.")
@_approval
@click.option("--always", is_flag=True, help="Also every later call of the same category in that session.")
@_as_json
@explained
def approve(approval: str, always: bool, as_json: bool) -> None:
    """Let the agent do just what it asked for."""
    _decide(approval, {"decision": "approve", **({"scope": "always"} if always else {})}, as_json)


@command.command("deny", short_help="Do not let it be done.")
@_approval
@click.option("--reason", metavar="TEXT", help="The reason, which the agent is given.")
@_as_json
@explained
def deny(approval: str, reason: str | None, as_json: bool) -> None:
    """Do not let the agent do what it asked for."""
    _decide(approval, {"decision": "deny", **({"reason": reason} if reason else {})}, as_json)


def _decide(approval: str, answer: dict[str, str], as_json: bool) -> None:
    id = str(_one(approval)["id"])
    try:
        said = local_exchange.request("POST", f"/api/approvals/{id}", answer)
    except ExchangeRefused as refused:
        if not as_json or "decided_by" not in refused.body:
            raise
        click.echo(jsontext.dumps(dict(refused.body)))
        sys.exit(EXIT_FAILED)
    if as_json:
        click.echo(jsontext.dumps(said))
    else:
        click.echo("Approved." if answer["decision"] == "approve" else "Denied.")


def _one(approval: str) -> dict[str, Any]:
    """The one whose id is that, or begins so.

    Raises:
        ConfigError: there is none, or there are several.
    """
    found = _found("")
    exact = [each for each in found if each["id"] == approval]
    matching = exact or [each for each in found if approval and str(each["id"]).startswith(approval)]
    if len(matching) > 1:
        raise ConfigError(f"The ids of {len(matching)} approvals begin with `{approval}`.", hint="Give more of it.")
    if not matching:
        raise ConfigError(
            f"There is no approval `{approval[:80]}`.", hint="`trunkline approvals list --state all` shows them."
        )
    return matching[0]


def _found(query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = local_exchange.request("GET", f"/api/approvals{query}")["approvals"]
    return found


def _distinct(ids: list[str]) -> int:
    """How much of each id tells it from the others."""
    longest = max(map(len, ids))
    return next((length for length in range(1, longest) if len({id[:length] for id in ids}) == len(ids)), longest)
