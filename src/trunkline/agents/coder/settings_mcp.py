"""The MCP servers of the configuration files. What is secret in them is for `settings_values.all_secrets` to find."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from trunkline.agents.coder.settings_values import Reference, expanded
from trunkline.base.config import Config
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.core.agent import AddMcpServer, OAuthClient

Transport = Literal["stdio", "sse", "streamable-http", "streamable_http"]


class Servers(Value):
    """What is to be connected, and why something is not."""

    servers: tuple[AddMcpServer, ...]
    warnings: tuple[str, ...]


def configured_servers(config: Config) -> dict[str, Mapping[str, Any]]:
    """The tables of all servers, by name. A workspace that nobody trusts may have turned some of them off."""
    return {
        name: {**table, "enabled": config.narrowed(table.get("enabled", True), "mcp", "servers", name, "enabled")}
        for name, table in config.get("mcp", "servers", default={}).items()
    }


def mcp_servers(
    configured: Mapping[str, Mapping[str, Any]],
    environ: Mapping[str, str],
    only: Collection[str] | None = None,
) -> Servers:
    """Servers from their tables. One that cannot work is left out with a warning: the others are of use without it."""
    servers: list[AddMcpServer] = []
    warnings = [
        f"There is no MCP server `{name}` in the configuration.{suggestion(name, configured)}"
        for name in only or ()
        if name not in configured
    ]
    for name, table in configured.items():
        if (only is not None and name not in only) or not table.get("enabled", True):
            continue
        try:
            servers.append(_server(name, table, environ))
        except (Reference, ValueError) as problem:
            warnings.append(f"The MCP server `{name}` is left out: {problem}.")
    return Servers(tuple(servers), tuple(warnings))


def _server(name: str, table: Mapping[str, Any], environ: Mapping[str, str]) -> AddMcpServer:
    """One server.

    Raises:
        Reference: it refers to a variable that is not set.
        ValueError: something is missing.
    """
    # The schema has let only these pass.
    transport: Transport = table.get("transport") or ("stdio" if "command" in table else "streamable-http")
    needed = "command" if transport == "stdio" else "url"
    if not table.get(needed):
        raise ValueError(f"it has no `{needed}`")
    command, url = table.get("command"), table.get("url")
    return AddMcpServer(
        name=name,
        transport=transport,
        command=command if command is None else expanded(command, environ),
        args=tuple(expanded(argument, environ) for argument in table.get("args", ())),
        env=_expanded(table.get("env"), environ),
        url=url if url is None else expanded(url, environ),
        headers=_expanded(table.get("headers"), environ),
        startup_timeout_ms=table.get("startup_timeout_ms"),
        deferred=table.get("deferred", False),
        oauth=_oauth(table.get("oauth", False), environ),
    )


def _oauth(said: bool | Mapping[str, Any], environ: Mapping[str, str]) -> bool | OAuthClient:
    if isinstance(said, bool):
        return said
    texts = {key: expanded(said[key], environ) for key in ("client_id", "client_secret", "redirect_uri") if key in said}
    return OAuthClient(scopes=tuple(said.get("scopes", ())), **texts)


def _expanded(pairs: Mapping[str, str] | None, environ: Mapping[str, str]) -> dict[str, str] | None:
    return None if pairs is None else {name: expanded(value, environ) for name, value in pairs.items()}
