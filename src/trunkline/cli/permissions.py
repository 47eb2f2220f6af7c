"""`trunkline permissions`: the permission rules that count in a directory, and those that its user has added for it.

Exit codes: 0, or 1 when there is nothing to remove.
"""

from __future__ import annotations

import os
import sys

import click

from trunkline.agents.coder.kept_rules import KeptRules, kept_in
from trunkline.agents.coder.settings import load_config
from trunkline.agents.coder.settings_approvals import permissions
from trunkline.base import jsontext
from trunkline.base.nearest import suggestion
from trunkline.base.paths import homely
from trunkline.base.printable import printable_line
from trunkline.cli import table
from trunkline.cli.explained import explained
from trunkline.core.approvals import unknown_tool
from trunkline.core.rules import Kind, Rules, told

EXIT_NOTHING = 1

_workspace = click.option(
    "--workspace", metavar="PATH", default=".", show_default=True, help="The directory in which the agent would work."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
_kind = click.option(
    "--kind",
    type=click.Choice(["allow", "ask", "deny"]),
    help="What the rule does.",
)


@click.group("permissions")
def command() -> None:
    """List the permission rules of a directory, and add and remove your own.

    A rule says what the coding agent may do unasked (allow), what you are always asked about (ask), and what is never
    done (deny). Those that you add here count in one directory, and are kept in a file of yours outside of it. In the
    terminal, the answer `p` to a question adds one as well.

    \b
    A rule names a tool, and what of it is meant:
      Bash                      all of it
      Bash(git status:*)        commands that begin so; without `:*`, that one
      Read(~/.ssh/**)           files; patterns start at the directory
      WebFetch(domain:x.org)    addresses
      mcp__SERVER               all tools of an MCP server

    \b
    Examples:
      trunkline permissions list
      trunkline permissions add 'Bash(make test)'
      trunkline permissions add --kind deny 'Bash(git push:*)'
      trunkline permissions remove 'Bash(make test)'
    """


@command.command("list")
@_workspace
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@_json
@explained
def list_rules(workspace: str, wide: bool, as_json: bool) -> None:
    """List all rules that count there, with the file that each is written in."""
    rules, warnings = rules_in(workspace)
    if as_json:
        found = [{"kind": kind, "rule": rule, "file": file} for kind, rule, file in told(rules)]
        click.echo(jsontext.dumps({"rules": found, "own_file": KeptRules(workspace).file, "warnings": list(warnings)}))
        return
    for warning in warnings:
        click.echo(printable_line(warning), err=True)
    rows = [[kind, printable_line(rule), printable_line(homely(file))] for kind, rule, file in told(rules)]
    if rows:
        table.show(["KIND", "RULE", "FILE"], rows, wide=wide)
    else:
        click.echo("There are no rules. `trunkline permissions --help` says how to add one.", err=True)


@command.command("add")
@click.argument("rule")
@_workspace
@_kind
@_json
@explained
def add(rule: str, workspace: str, kind: Kind | None, as_json: bool) -> None:
    """Add RULE for a directory; it allows something unless --kind says otherwise."""
    kept = KeptRules(workspace)
    is_new = kept.add(rule, kind or "allow")
    if as_json:
        click.echo(jsontext.dumps({"added": is_new, "kind": kind or "allow", "rule": rule.strip(), "file": kept.file}))
    elif is_new:
        click.echo(f"Added to {homely(kept.file)}: {kind or 'allow'} {printable_line(rule.strip())}")
    else:
        click.echo("You have that rule already.", err=True)
    # It may be a tool of an MCP server: what looks like a slip is told, and kept all the same.
    if slip := unknown_tool(rule, more_tools=True, to_allow=""):
        click.echo(printable_line(slip), err=True)


@command.command("remove")
@click.argument("rule")
@_workspace
@_kind
@_json
@explained
def remove(rule: str, workspace: str, kind: Kind | None, as_json: bool) -> None:
    """Remove RULE, which was added for a directory; those in configuration files are for you to edit."""
    kept = KeptRules(workspace)
    own = [text for _, text, _ in told(kept.read())]
    is_gone = kept.remove(rule, kind)
    if as_json:
        click.echo(jsontext.dumps({"removed": is_gone, "rule": rule.strip(), "file": kept.file}))
    elif is_gone:
        click.echo(f"Removed from {homely(kept.file)}: {printable_line(rule.strip())}")
    else:
        click.echo(_not_there(rule.strip(), own, workspace), err=True)
    if not is_gone:
        sys.exit(EXIT_NOTHING)


def rules_in(workspace: str) -> tuple[Rules, tuple[str, ...]]:
    """The rules that count in a directory, and what is wrong with them."""
    place = os.path.abspath(workspace)
    return permissions(load_config(place), kept_in(place), more_tools=True)


def _not_there(rule: str, own: list[str], workspace: str) -> str:
    elsewhere = next((file for _, text, file in told(rules_in(workspace)[0]) if text == rule), "")
    if elsewhere:
        return f"That rule is in {homely(elsewhere)}: edit the file to remove it."
    return f"There is no such rule of yours for this directory.{suggestion(rule, own)}"
