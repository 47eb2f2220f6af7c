"""`trunkline conform mcp ... -- CMD ...` or `conform mcp URL`: put anybody's MCP server to the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange

#: How long a server may take for one answer, or to start.
DEFAULT_TIMEOUT = 15.0

_EXAMPLE = "trunkline conform mcp -- my-server"


@click.command("mcp", short_help="Test an MCP server.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="URL | -- CMD [ARGS]...")
@click.option("--tool", metavar="NAME", help="A tool that may be called. The default is one that says it only reads.")
@click.option("--arguments", metavar="JSON", help="What to call it with.")
@click.option("--slow-tool", metavar="NAME", help="A tool that takes a second or more, to see it cancelled.")
@click.option("--slow-arguments", metavar="JSON", help="What to call that one with.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header for a server at a URL.")
@conform_run.options("mcp.tools.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the server may take for one answer.")  # fmt: skip
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Run the command here. The default is a fresh directory for each check.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def command(
    target: tuple[str, ...],
    tool: str | None,
    arguments: str | None,
    slow_tool: str | None,
    slow_arguments: str | None,
    headers: tuple[str, ...],
    how: conform_run.How,
    timeout: float,
    cwd: Path | None,
    env: tuple[str, ...],
) -> None:
    """Test a server that speaks the Model Context Protocol (MCP), as a host would use it.

    The server is a command, which each check starts anew, or a URL. No tool is called unless it says that it only reads
    and needs no arguments, or is named with --tool. What the server does not offer is "not applicable".

    \b
    trunkline conform mcp -- uvx mcp-server-time
    trunkline conform mcp --tool get_current_time --arguments '{"timezone": "UTC"}' -- uvx mcp-server-time
    trunkline conform mcp http://127.0.0.1:8000/mcp --header 'Authorization=Bearer TOKEN'
    """
    from trunkline.conform.mcp.stage import Stage, Target
    from trunkline.conform.mcp.suite import SUITE
    from trunkline.conform.mcp.vocabulary import PROTOCOL_VERSION

    def trial() -> conform_run.Trial[Stage]:
        if not target:
            raise click.UsageError(f"Name the command to test after `--`, or the URL of a server: {_EXAMPLE}")
        url = target[0] if len(target) == 1 and target[0].startswith(("http://", "https://")) else None
        given = _pairs(headers)
        subject = Target(
            argv=(url,) if url else conform_run.argv(target, _EXAMPLE),
            env=conform_run.environment(env),
            url=url,
            headers=given,
            cwd=str(cwd.resolve()) if cwd else None,
            timeout=timeout,
            tool=tool,
            arguments=_object("arguments", arguments),
            slow_tool=slow_tool,
            slow_arguments=_object("slow-arguments", slow_arguments),
        )
        return conform_run.Trial(
            lambda name: Stage(subject, name),
            subject.argv,
            subject.env,
            is_shared=cwd is not None,
            secrets=lambda: [word for value in given.values() for word in value.split()],
        )

    conform_run.conduct(SUITE, "mcp", PROTOCOL_VERSION, how, trial)


def _pairs(headers: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for header in headers:
        name, sign, value = header.partition("=")
        if not name.strip() or not sign:
            raise click.UsageError(f"`--header` needs NAME=VALUE, not `{header}`.")
        found[name.strip().lower()] = value.strip()
    return found


def _object(option: str, text: str | None) -> dict[str, Any]:
    try:
        found = {} if text is None else jsontext.loads(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise click.UsageError(f"`--{option}` is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"`--{option}` needs a JSON object.")
    return found
