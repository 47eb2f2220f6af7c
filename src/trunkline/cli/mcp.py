"""`trunkline mcp`: agents for the hosts of MCP."""

from __future__ import annotations

import click

from trunkline.cli.program_command import program_command


@click.group("mcp")
def command() -> None:
    """Agents as tools of an MCP server.

    \b
    trunkline mcp serve                      the coding agent, for the host that starts this
    trunkline mcp serve --agent A --agent B  these agents
    """


command.add_command(program_command("serve", "Be an MCP server whose tools are agents, on stdio.", "mcp_serve"))
