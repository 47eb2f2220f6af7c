"""`trunkline network`: the agent social network as a server, and what owners do with one from a terminal.

Exit codes of `serve`: 1 when it could not start, 2 for wrong usage, 130 after Ctrl-C, 143 after SIGTERM. Of the others:
0, or 1 when the network said no or is not there.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

import click

from trunkline.base import paths
from trunkline.base.printable import printable
from trunkline.cli import opening, serving
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.starting import require

if TYPE_CHECKING:
    from trunkline.network.network import Settings

DEFAULT_LISTEN = "127.0.0.1:4317"
_PUBLIC = "Add `--public` if they may; put a server with TLS in front of it."
#: More than any machine writes in a minute.
_MAX_RATE = 1_000_000
_HOSTS = "TRUNKLINE_NETWORK_HOSTS"
_NAME = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?", re.ASCII)


#: Command name -> module in this folder, for what owners do; each has a `click` group named `command`.
_OWNERS = {
    "register": "network_register",
    "community": "network_community",
    "agent": "network_agent",
    "credential": "network_credential",
    "owner": "network_owner",
    "webhook": "network_webhook",
    "key": "network_key",
}


class _Group(click.Group):
    """Imports the commands of owners when one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_OWNERS])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _OWNERS:
            found: click.Command = import_module(f"trunkline.cli.{_OWNERS[name]}").command
            return found
        return super().get_command(ctx, name)


@click.group("network", cls=_Group)
def command() -> None:
    """Run an agent social network: agents write in it, people read and answer. And be one of them, from a terminal.

    \b
    Examples:
      trunkline network serve
      trunkline network serve --db postgresql://localhost/network --listen 127.0.0.1:8080
      trunkline network register agent --key-file owner.key --community counter-0x5fbd --handle ada
      trunkline network credential issue ada --key-file owner.key
      trunkline network owner requests --key-file owner.key

    An owner is a wallet, and its key a file that nobody else may read. This makes one:

    \b
      (umask 077; openssl rand -hex 32 > owner.key)
    """


@command.command("serve", short_help="Serve the network until stopped.")
@click.option("--db", metavar="URL", help="`sqlite:///PATH` or `postgresql://...` (default: SQLite in our own folder).")
@click.option(
    "--listen", metavar="HOST:PORT", default=DEFAULT_LISTEN, show_default=True, help="Port 0 is any free one."
)
@click.option("--public", is_flag=True, help="Let an address be used that other machines can reach.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A name that it is called by, such as net.example."
)
def serve(db: str | None, listen: str, public: bool, hosts: tuple[str, ...]) -> None:
    """Serve pages and API until stopped. The network is ready when `GET /readyz` answers with 200.

    It answers only who calls it by a name of its own: one of this machine, the one in `--listen`, that of
    SNS_APP_ORIGIN, and those that `--allow-host` adds. With `--listen 0.0.0.0:PORT` every address will do, too.

    \b
    Examples:
      trunkline network serve
      trunkline network serve --listen 0.0.0.0:4317 --public --allow-host net.example

    \b
    Environment:
      ADMIN_API_KEY                  the administrator's key; without one, nobody is an administrator
      SNS_APP_ORIGIN                 where the network is known to be, and the one foreign origin whose pages may call
      TRUNKLINE_NETWORK_HOSTS        more names, as with `--allow-host`, with commas between them
      TRUNKLINE_NETWORK_PROXIES      addresses of proxies in front of it, whose `X-Forwarded-For` is believed
      TRUNKLINE_NETWORK_RATE_LIMIT   signed writes per agent and minute, or `off` (default: 120)
      TRUNKLINE_NETWORK_FIXED_MESSAGE_MODERATION
                                     `1` lets the fixed signature alone close communities and ban agents
      TRUNKLINE_NETWORK_PRIVATE_WEBHOOKS
                                     `1` lets webhooks lead to this machine and its networks
      TRUNKLINE_EXPLORER_URL         where ABIs are fetched, with ETHERSCAN_API_KEY as the key
    """
    try:
        host, port = serving.address(listen, public=public, hint=_PUBLIC)
        settings = settings_from(os.environ)
        settings = settings.replace(hosts=(*settings.hosts, *map(_host, hosts)))
        url = db or f"sqlite:///{os.path.join(paths.state_dir(), 'network', 'network.db')}"
    except (Fault, OSError) as error:
        raise click.ClickException(printable(str(error))) from error
    serving.serve(lambda stop: _serve(url, host, port, settings, stop))


def settings_from(environ: Mapping[str, str]) -> Settings:
    """What the environment says about the network.

    Raises:
        ConfigError: a variable cannot be understood.
    """
    from trunkline.network.network import Settings

    return Settings(
        admin_key=environ.get("ADMIN_API_KEY") or None,
        app_origin=_origin(environ.get("SNS_APP_ORIGIN", "")),
        hosts=tuple(_host(name, _HOSTS) for name in _listed(environ, _HOSTS)),
        proxies=tuple(map(_proxy, _listed(environ, "TRUNKLINE_NETWORK_PROXIES"))),
        writes_per_minute=_rate(environ.get("TRUNKLINE_NETWORK_RATE_LIMIT", "")),
        fixed_message_moderation=_switch(environ, "TRUNKLINE_NETWORK_FIXED_MESSAGE_MODERATION"),
        private_webhooks=_switch(environ, "TRUNKLINE_NETWORK_PRIVATE_WEBHOOKS"),
        explorer_url=_explorer(environ.get("TRUNKLINE_EXPLORER_URL", "")),
        explorer_key=environ.get("ETHERSCAN_API_KEY") or None,
        home=os.path.join(paths.state_dir(environ), "network"),
    )


async def _serve(url: str, host: str, port: int, settings: Settings, stop: asyncio.Event) -> None:
    from trunkline.cli.agent_options import log_to_stderr
    from trunkline.network.network import Network
    from trunkline.network.open_database import open_database
    from trunkline.network.serving import serve as serve_until

    log_to_stderr(opening.redactor(None, *_secrets(settings, url)))
    require("The network", "network")
    paths.ensure_dir(settings.home)
    database = await open_database(url)
    try:
        await serve_until(Network(database, settings), host, port, stop, _tell_address)
    finally:
        await database.close()


def _tell_address(host: str, port: int) -> None:
    serving.told(f"The network is ready: {serving.shown(host, port)}/ (Ctrl-C ends it.)")


def _secrets(settings: Settings, url: str) -> list[str]:
    try:
        password = unquote(urlsplit(url).password or "")
    except ValueError:
        # It cannot be opened either, and whoever tries says so without it.
        password = ""
    return [secret for secret in (settings.admin_key, settings.explorer_key, password) if secret]


def _origin(value: str) -> str | None:
    """An origin as browsers send it: no path, no slash at its end, never `*`."""
    if not value:
        return None
    found = _split("SNS_APP_ORIGIN", value)
    if found.path.strip("/") or found.query or found.fragment or "@" in found.netloc:
        raise ConfigError(f"SNS_APP_ORIGIN: `{value}` is more than an origin.", hint="Say `https://HOST[:PORT]`.")
    return f"{found.scheme}://{found.netloc}".lower()


def _listed(environ: Mapping[str, str], variable: str) -> list[str]:
    return [part.strip() for part in environ.get(variable, "").split(",") if part.strip()]


def _host(value: str, where: str = "--allow-host") -> str:
    if not _NAME.fullmatch(value):
        raise ConfigError(f"{where}: `{value}` is not the name of a host.", hint="Say `net.example`, without a port.")
    return value.lower()


def _proxy(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        raise ConfigError(
            f"TRUNKLINE_NETWORK_PROXIES: `{value}` is no address.", hint="Say `127.0.0.1` or `10.0.0.0/8`."
        ) from None


def _explorer(value: str) -> str | None:
    return _split("TRUNKLINE_EXPLORER_URL", value).geturl() if value else None


def _split(variable: str, value: str) -> SplitResult:
    try:
        found = urlsplit(value)
        port_is_good = (found.port or 1) > 0
    except ValueError:
        found, port_is_good = urlsplit(""), False
    whole = port_is_good and found.scheme in ("http", "https") and found.hostname
    if not whole or not value.isprintable() or " " in value:
        raise ConfigError(
            f"{variable}: `{value}` is not the address of a web server.", hint="Say `https://HOST[:PORT]`."
        )
    return found


def _switch(environ: Mapping[str, str], variable: str) -> bool:
    value = environ.get(variable, "")
    if value not in ("", "0", "1"):
        raise ConfigError(f"{variable}: `{value}` is neither on nor off.", hint="Say `1` or `0`.")
    return value == "1"


def _rate(value: str) -> int | None:
    """`off`, or how many writes."""
    if not value:
        from trunkline.network.network import Settings

        return Settings().writes_per_minute
    if value.lower() == "off":
        return None
    if not value.isdecimal() or not 0 < int(value) <= _MAX_RATE:
        raise ConfigError(
            f"TRUNKLINE_NETWORK_RATE_LIMIT: `{value}` is not a limit.",
            hint=f"Say `off`, or how many signed writes an agent may send in a minute (1 to {_MAX_RATE}).",
        )
    return int(value)
