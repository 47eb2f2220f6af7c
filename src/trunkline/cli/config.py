"""`trunkline config`: what is configured, by whom, and what is wrong with it.

Exit codes: 0; 1 when something is wrong with a file or a variable; 2 for wrong usage.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from trunkline.base import config_aionrs, jsontext
from trunkline.base.config import FILE_VARIABLE, MOST_NAMED, PROJECT_FILE, Origin, user_file
from trunkline.base.config_problems import Problem
from trunkline.base.printable import printable_line
from trunkline.base.values import Value
from trunkline.cli import table
from trunkline.cli.config_check import not_followed, problems_of, wrong_variables
from trunkline.cli.explained import explained

F = TypeVar("F", bound=Callable[..., Any])

EXIT_FAILED = 1

_workspace = click.option(
    "--workspace", metavar="DIR", default=os.curdir, help="Whose `trunkline.toml` (default: here)."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("config")
def command() -> None:
    """Show what is configured and who says so, and find what is wrong with it.

    One configuration serves every part: the coding agent, the bridge, the network, the runner and the Tryll server.
    Flags beat variables, variables beat `trunkline.toml` of the workspace, and that beats your own file.

    \b
    Examples:
      trunkline config show --origin
      trunkline config check
      trunkline config path
    """


@command.command("show", short_help="Show every value that holds.")
@click.option("--origin", is_flag=True, help="Say of each value where it comes from.")
@_json
@_workspace
@explained
def show(origin: bool, as_json: bool, workspace: str) -> None:
    """Show every value that holds, as TOML. Secrets are not shown.

    With `--origin` each line says who it is from: a variable, a place in a file, or the default.
    """
    from trunkline.cli import config_show

    found = config_show.gather(workspace, os.environ)
    if as_json:
        click.echo(jsontext.dumps(config_show.record(found)).decode())
        return
    for warning in found.warnings:
        click.echo(warning, err=True)
    for line in config_show.text(found, with_origin=origin):
        click.echo(line)


@command.command("check", short_help="Find what is wrong with the configuration.")
@click.argument("file", required=False, metavar="[FILE]", type=click.Path(dir_okay=False))
@_json
@_workspace
@explained
def check_command(file: str | None, as_json: bool, workspace: str) -> None:
    """Look for mistakes: in one FILE, or in all files and variables that count here.

    A FILE whose name ends in `.json` is what an agent of the runner's is told.

    Each mistake is one line with its place, `FILE:LINE:COLUMN`, and what was probably meant. Ends with exit code 1 if
    there is one. What a workspace's files say in vain, since you do not trust it, is told as well, and is no mistake.
    """
    only = file if file is not None else os.environ.get(FILE_VARIABLE) or None
    files = [only] if only is not None else [user_file(), os.path.join(workspace, PROJECT_FILE)]
    problems: list[Problem] = []
    looked_at = []
    for each in files:
        found = problems_of(each, missing=only is not None)
        if found is not None:
            looked_at.append(each)
            problems += found
    if file is None and not problems:
        problems += wrong_variables(workspace)
    ignored, advice = not_followed(workspace, file)
    if as_json:
        told = {
            "ok": not problems,
            "files": looked_at,
            "problems": _records(problems),
            "not_followed": _records(ignored),
        }
        click.echo(jsontext.dumps(told).decode())
    else:
        _tell(problems, ignored, looked_at)
        if ignored:
            click.echo(printable_line(advice))
    if problems:
        sys.exit(EXIT_FAILED)


def _records(values: Sequence[Value]) -> list[dict[str, object]]:
    return [{name: getattr(each, name) for name in each.__fields__} for each in values]


def _tell(problems: list[Problem], ignored: Sequence[Origin], looked_at: list[str]) -> None:
    for problem in problems:
        click.echo(str(problem))
    for each in ignored[:MOST_NAMED]:
        click.echo(str(Problem(each.file, "is not followed", each.key, each.line, each.column)))
    if len(ignored) > MOST_NAMED:
        click.echo(f"Nor are {len(ignored) - MOST_NAMED} keys more.")
    for path in looked_at:
        if path not in {problem.file for problem in problems} | {each.file for each in ignored}:
            click.echo(f"{printable_line(path)}: ok")
    if not looked_at and not problems:
        click.echo(f"There is no configuration file here. Yours would be `{printable_line(user_file())}`.")


@command.command("path", short_help="Show which files are read.")
@click.option("--user", is_flag=True, help="Print the path of your own file, and nothing else.")
@_json
@_workspace
@explained
def path_command(user: bool, as_json: bool, workspace: str) -> None:
    """Show which files are read, the one that counts most first, and whether they are there."""
    if user:
        click.echo(user_file())
        return
    files = [
        (os.path.abspath(os.path.join(workspace, PROJECT_FILE)), "the workspace's"),
        (os.path.abspath(os.path.join(workspace, config_aionrs.PROJECT_FILE)), "a host's, as aionrs has it"),
        (user_file(), "yours"),
    ]
    if named := os.environ.get(config_aionrs.FILE_VARIABLE):
        files.append((named, f"{config_aionrs.FILE_VARIABLE}"))
    if only := os.environ.get(FILE_VARIABLE):
        files = [(os.path.abspath(only), FILE_VARIABLE)]
    if as_json:
        told = [{"path": path, "whose": whose, "exists": os.path.exists(path)} for path, whose in files]
        click.echo(jsontext.dumps({"files": told}).decode())
        return
    rows = [("yes" if os.path.exists(path) else "no", whose, printable_line(path)) for path, whose in files]
    table.show(("THERE", "WHOSE", "FILE"), rows, wide=True)
