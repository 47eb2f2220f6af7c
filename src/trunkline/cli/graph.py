"""`trunkline graph`: graph agents as YAML files: checked, tried out, and drawn.

Exit codes of `check` and `draw`: 0, 1 when something is wrong with the file, 2 for wrong usage.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from trunkline.base.printable import printable_line
from trunkline.cli.graph_export import command as export_command
from trunkline.cli.graph_options import complete_graph
from trunkline.cli.graph_run import command as run_command
from trunkline.cli.graph_test import command as test_command
from trunkline.cli.graph_watch import command as watch_command
from trunkline.cli.trace import refuse_to_replace
from trunkline.core.faults import Fault

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_check import Finding, GraphReport

EXIT_PROBLEMS = 1

_FILE = click.Path()
_COLOURS = {"problem": "red", "warning": "yellow", "fine": "green"}


@click.group("graph")
def command() -> None:
    """Check, run, test, draw and export graph agents: YAML files, or those that come along, `npc` and `smith`.

    \b
    Examples:
      trunkline graph check shop.yaml
      trunkline graph run npc -m "Who is the mayor?"
      trunkline graph test shop.yaml
      trunkline graph draw npc -o npc.svg
    """


command.add_command(export_command)
command.add_command(run_command)
command.add_command(test_command)
command.add_command(watch_command)


@command.command("check", short_help="Report everything that is wrong with a graph.")
@click.argument("file", type=_FILE, shell_complete=complete_graph)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(file: str, as_json: bool) -> None:
    """Say all that is wrong with a graph, with file, line, node and key. Nothing is run, and no model is needed.

    Exits with 1 if no agent can be made of it. What looks odd is a warning.
    """
    from trunkline.agents.graph.yaml_check import examine
    from trunkline.base import jsontext

    report = examine(file)
    if as_json:
        click.echo(jsontext.dumps(_record(file, report)).decode())
    else:
        for label, findings in (("problem", report.problems), ("warning", report.warnings)):
            for each in findings:
                click.echo(f"{_coloured(label)} {printable_line(each.told)}")
        if report.graph is not None:
            count = len(report.graph.graph.nodes)
            click.echo(f"{_coloured('fine')} {printable_line(file)}: {count} node{'s' if count != 1 else ''}")
    sys.exit(EXIT_PROBLEMS if report.graph is None else 0)


def _coloured(label: str) -> str:
    padded = f"{label:8}"
    return padded if "NO_COLOR" in os.environ else click.style(padded, fg=_COLOURS[label], bold=True)


def _record(file: str, report: GraphReport) -> dict[str, Any]:
    return {
        "file": file,
        "ok": report.graph is not None,
        "nodes": len(report.graph.graph.nodes) if report.graph is not None else None,
        "problems": [_finding(each) for each in report.problems],
        "warnings": [_finding(each) for each in report.warnings],
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "line": found.line or None,
        "column": found.column or None,
        "node": found.node or None,
        "key": found.key or None,
        "problem": found.text,
        "message": found.told,
    }


@command.command("draw", short_help="Draw a graph, or a turn through it, as SVG.")
@click.argument("file", type=_FILE, shell_complete=complete_graph)
@click.option(
    "-o",
    "--output",
    metavar="OUT.svg",
    type=click.Path(dir_okay=False),
    help="Write it to this file instead of standard output.",
)
@click.option("--turn", metavar="RECORDED.json", type=_FILE, help="A turn that `graph run --record` wrote down.")
def draw(file: str, output: str | None, turn: str | None) -> None:
    """Draw a graph as an SVG picture, for light pages and for dark ones.

    With a recorded turn: which nodes ran, in which order, how long, and what they decided. Any turn's diagnostics
    (`debug_info`) will do.
    """
    from trunkline.agents.graph.drawing import recorded, svg
    from trunkline.agents.graph.yaml_check import examine

    refuse_to_replace(output, file, turn)
    report = examine(file)
    if report.graph is None:
        for each in report.problems:
            click.echo(f"Error: {printable_line(each.told)}", err=True)
        sys.exit(EXIT_PROBLEMS)
    model = report.graph.default_model
    try:
        picture = svg.draw(
            report.graph.graph,
            title=os.path.basename(file),
            about=f"default model: {model}" if model else "",
            turn=recorded.load(turn) if turn is not None else None,
        )
        if output is None:
            click.echo(picture, nl=False)
        else:
            with open(output, "w", encoding="utf-8") as opened:
                opened.write(picture)
    except Fault as error:
        raise click.ClickException(printable_line(str(error))) from error
    except OSError as error:
        if output is None:
            raise
        raise click.ClickException(printable_line(f"`{output}` cannot be written: {error.strerror}.")) from error
