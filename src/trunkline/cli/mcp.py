"""`trunkline mcp`: agents for the hosts of MCP, and the logins of the coding agent to servers of it."""

from __future__ import annotations

import click

from trunkline.cli import mcp_servers
from trunkline.cli.program_command import program_command


@click.group("mcp")
def command() -> None:
    """Agents as tools of an MCP server, and the MCP servers that the coding agent uses.

    \b
    trunkline mcp serve                      the coding agent, for the host that starts this
    trunkline mcp serve --agent A --agent B  these agents
    trunkline mcp list                       the servers of the configuration, and their logins
    trunkline mcp list --connect             the same, and whether they can be connected
    trunkline mcp login web                  log in to the server `web` with a browser
    trunkline mcp login web --no-browser     the same with a browser on another machine
    trunkline mcp logout web                 delete that login
    """


command.add_command(program_command("serve", "Be an MCP server whose tools are agents, on stdio.", "mcp_serve"))
command.add_command(mcp_servers.list_servers)
command.add_command(mcp_servers.login)
command.add_command(mcp_servers.logout)
