"""`trunkline mcp list`, `login` and `logout`: the MCP servers of the coding agent, and who is logged in to them."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from trunkline.base import jsontext
from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable_line
from trunkline.base.values import Value
from trunkline.cli import table
from trunkline.cli.explained import explained_as
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from trunkline.tools.mcp.oauth.store import KeptLogin, LoginStore
    from trunkline.tools.mcp.servers import ServerState

#: How long somebody may take to log in, unless they say otherwise.
LOGIN_SECONDS = 300

_workspace = click.option(
    "--workspace", metavar="PATH", default=".", show_default=True, help="The directory in which the agent would work."
)


class Configured(Value):
    """A server of the configuration."""

    name: str
    transport: str
    enabled: bool
    spec: AddMcpServer | None
    problem: str = ""
    """Why it cannot be used as it is."""


def _clean(text: str) -> str:
    from trunkline.cli import opening

    return opening.redactor().text(text)


_explained = explained_as(_clean)


def found_in(workspace: str) -> dict[str, Configured]:
    """The servers that an agent has there, by name, those that are turned off included.

    Raises:
        ConfigError: a file cannot be used.
    """
    from trunkline.agents.coder.settings import load_config
    from trunkline.agents.coder.settings_mcp import configured_servers, mcp_servers

    found: dict[str, Configured] = {}
    for name, server in configured_servers(load_config(os.path.abspath(workspace))).items():
        made = mcp_servers({name: {**server, "enabled": True}}, os.environ)
        spec = next(iter(made.servers), None)
        transport = spec.transport if spec is not None else str(server.get("transport", ""))
        problem = " ".join(made.warnings)
        found[name] = Configured(name, transport, bool(server.get("enabled", True)), spec, problem)
    return found


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.cli.value_completion import beginning

    found = found_in(context.params.get("workspace") or ".").values()
    return beginning((each.name for each in found if each.spec is None or each.spec.url), incomplete)


# Lists


@click.command("list", short_help="List the MCP servers of the configuration, and their logins.")
@_workspace
@click.option("--connect", is_flag=True, help="Connect to each of them, and tell how that went.")
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@_explained
def list_servers(workspace: str, connect: bool, wide: bool, as_json: bool) -> None:
    """List the MCP servers of the configuration: how each is reached, and whether somebody is logged in.

    Nothing is started, and nobody is asked, unless you say `--connect`.

    \b
    Examples:
      trunkline mcp list
      trunkline mcp list --connect --json
    """
    from trunkline.tools.mcp.oauth.store import LoginStore

    found = found_in(workspace)
    states = asyncio.run(_states(found, os.path.abspath(workspace))) if connect else {}
    store = LoginStore()
    records = [_record(each, store, states.get(each.name)) for each in found.values()]
    if as_json:
        click.echo(jsontext.dumps({"servers": records}))
    elif records:
        rows = [
            [record["name"], record["transport"], record["login"] or "-", _told(record), record["at"]]
            for record in records
        ]
        head = ["NAME", "TRANSPORT", "LOGIN", "STATE", "AT"]
        table.show(head, [list(map(printable_line, row)) for row in rows], wide=wide)
        for record in records:
            if record["problem"]:
                click.echo(printable_line(_clean(record["problem"])), err=True)
    else:
        click.echo("There are no MCP servers in the configuration: see `[mcp.servers.NAME]`.", err=True)


def _told(record: dict[str, Any]) -> str:
    tools = record["tools"]
    if tools is None:
        return str(record["state"])
    return f"{record['state']}, {len(tools)} {'tool' if len(tools) == 1 else 'tools'}"


def _record(server: Configured, store: LoginStore, state: ServerState | None) -> dict[str, Any]:
    from trunkline.tools.mcp.transport import place

    spec = server.spec
    at = "" if spec is None else place(spec.url) if spec.url else spec.command
    shown: str = state.state if state is not None else "broken" if spec is None else "on" if server.enabled else "off"
    kept = store.kept(spec) if spec is not None and spec.url else None
    return {
        "name": server.name,
        "transport": server.transport,
        "at": _clean(at or ""),
        "enabled": server.enabled,
        "login": _login_state(spec, kept),
        "kept": None if kept is None else kept.kept,
        "expires_at": None if kept is None else kept.expires_at,
        "state": shown,
        "tools": None if state is None or state.state != "connected" else [tool.name for tool in state.tools],
        "problem": _clean(state.why if state is not None else server.problem),
    }


def _login_state(spec: AddMcpServer | None, kept: KeptLogin | None) -> str | None:
    """None: nobody logs in to it."""
    from trunkline.tools.mcp.http import has_credentials

    if spec is None or not spec.url or has_credentials(spec):
        return None
    if kept is None:
        return "not logged in"
    return "expired" if kept.over(time.time()) else "logged in"


async def _states(found: dict[str, Configured], directory: str) -> dict[str, ServerState]:
    from trunkline.agents.coder.settings import load_config
    from trunkline.cli import opening
    from trunkline.models.credentials import without_credentials
    from trunkline.tools.mcp.servers import McpServers

    redactor = opening.redactor()
    servers = McpServers(
        directory,
        trusted=load_config(directory).trusted,
        env=lambda: without_credentials(os.environ, redactor),
        redactor=redactor,
    )
    try:
        await servers.connect_all([each.spec for each in found.values() if each.spec is not None and each.enabled])
        return {state.name: state for state in servers.states}
    finally:
        await servers.close()


# Logins


@click.command("login", short_help="Log in to an MCP server with a browser.")
@click.argument("server", metavar="NAME", shell_complete=_complete)
@_workspace
@click.option(
    "--no-browser", is_flag=True, help="Open no browser: print the address, and read the one that a browser ends at."
)
@click.option(
    "--timeout", type=click.IntRange(1, 86400), default=LOGIN_SECONDS, show_default=True, metavar="SECONDS",
    help="How long the login may take.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects, one per line: the address, then the login.")
@_explained
def login(server: str, workspace: str, no_browser: bool, timeout: int, as_json: bool) -> None:
    """Log in to the MCP server NAME with a browser, for all agents of this user.

    The browser comes back to an address of this machine. If it runs on another machine, it cannot, and shows an error:
    then copy the address of that page, and paste it here.

    \b
    Examples:
      trunkline mcp login web
      trunkline mcp login web --no-browser
    """
    from trunkline.cli import opening
    from trunkline.cli.mcp_login import TerminalUser
    from trunkline.tools.mcp.oauth.accounts import check_login, log_in_and_keep
    from trunkline.tools.mcp.oauth.store import LoginStore

    spec = _server(server, found_in(workspace))
    check_login(spec)
    person = TerminalUser(server, browser=not no_browser, as_json=as_json)

    async def work() -> KeptLogin:
        with person.reading():
            return await log_in_and_keep(spec, person, LoginStore(), opening.redactor(), seconds=timeout)

    person.done(asyncio.run(work()))


@click.command("logout", short_help="Delete the login to an MCP server.")
@click.argument("server", metavar="NAME", shell_complete=_complete)
@_workspace
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@_explained
def logout(server: str, workspace: str, as_json: bool) -> None:
    """Delete the login to the MCP server NAME, and take it back at the server if that is possible.

    \b
    Examples:
      trunkline mcp logout web
    """
    from trunkline.tools.mcp.oauth.accounts import log_out
    from trunkline.tools.mcp.oauth.store import LoginStore

    store = LoginStore()
    logins = [each for each in store.listed() if each.server == server]
    if not logins:
        _server(server, found_in(workspace))

    async def work() -> bool:
        return all([await log_out(store, each) for each in logins])

    revoked = bool(logins) and asyncio.run(work())
    if as_json:
        click.echo(jsontext.dumps({"name": server, "was_logged_in": bool(logins), "revoked": revoked}))
    elif not logins:
        click.echo(f"Nobody was logged in to `{printable_line(server)}`.")
    else:
        there = " and taken back at the server" if revoked else ""
        click.echo(f"The login to `{printable_line(server)}` is deleted here{there}.")


def _server(name: str, found: dict[str, Configured]) -> AddMcpServer:
    if name not in found:
        raise ConfigError(
            f"There is no MCP server `{name}` in the configuration.{suggestion(name, found)}",
            hint="`trunkline mcp list` lists them.",
        )
    spec = found[name].spec
    if spec is None:
        raise ConfigError(found[name].problem)
    return spec
