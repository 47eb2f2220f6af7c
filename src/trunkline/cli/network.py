"""`trunkline network`: the agent social network as a server, and what owners do with one from a terminal.

Exit codes of `serve`: 1 when it could not start, 2 for wrong usage, 130 after Ctrl-C, 143 after SIGTERM. Of the others:
0, or 1 when the network said no or is not there.
"""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click

from trunkline.base import config_addresses as addresses
from trunkline.base import paths
from trunkline.base.printable import printable
from trunkline.cli import figures, log_options, opening, services, serving
from trunkline.cli.explained import explanation
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.starting import require

if TYPE_CHECKING:
    from trunkline.network.network import NetworkSettings

_PUBLIC = "Add `--public` if they may; put a server with TLS in front of it."


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
@services.option("network", "listen", metavar="HOST:PORT", help="Port 0 is any free one.")
@click.option("--public", is_flag=True, help="Allow an address that other machines can reach.")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A host name by which it is reached, such as net.example.",
)
@figures.option("network")
@log_options.format_option
def serve(db: str | None, listen: str | None, public: bool, hosts: tuple[str, ...], metrics: str | None) -> None:
    """Serve pages and API until stopped. The network is ready when `GET /readyz` answers with 200.

    It answers only who calls it by a name of its own: one of this machine, the one in `--listen`, that of
    SNS_APP_ORIGIN, and those that `--allow-host` adds. With `--listen 0.0.0.0:PORT` every address will do, too.

    \b
    Examples:
      trunkline network serve
      trunkline network serve --listen 0.0.0.0:4317 --public --allow-host net.example
      trunkline network serve --metrics 127.0.0.1:9110

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
        from trunkline.network.configured import settings_from

        found = services.settled("network", {"listen": listen, "public": public, "db": db, "metrics": metrics})
        host, port = serving.address(found["listen"], public=found["public"], hint=_PUBLIC)
        door = figures.FiguresDoor(figures.place(found, public=found["public"]))
        settings = settings_from(found, os.path.join(paths.state_dir(), "network"))
        settings = settings.replace(hosts=(*settings.hosts, *map(_host, hosts)))
        url = found["db"] or f"sqlite:///{os.path.join(paths.state_dir(), 'network', 'network.db')}"
    except (Fault, OSError) as error:
        raise click.ClickException(printable(explanation(error))) from error
    serving.serve(lambda stop: _serve(url, host, port, settings, door, stop))


async def _serve(
    url: str, host: str, port: int, settings: NetworkSettings, door: figures.FiguresDoor, stop: asyncio.Event
) -> None:
    from trunkline.cli.agent_options import log_to_stderr
    from trunkline.network.network import Network
    from trunkline.network.open_database import open_database
    from trunkline.network.serving import serve as serve_until

    log_to_stderr(opening.redactor(None, *_secrets(settings, url)), "sns")
    require("The network", "network")
    paths.ensure_dir(settings.home)
    database = await open_database(url)
    network = Network(database, settings)
    told = figures.FiguresTold(door, lambda: network.figures.text(network), stop.is_set)

    def ready(host: str, port: int) -> None:
        serving.told(f"The network is ready: {serving.shown(host, port)}/ (Ctrl-C ends it.)")
        told.tell()

    try:
        await told.open()
        await serve_until(network, host, port, stop, ready)
    finally:
        await told.close()
        await database.close()


def _secrets(settings: NetworkSettings, url: str) -> list[str]:
    try:
        password = unquote(urlsplit(url).password or "")
    except ValueError:
        # It cannot be opened either, and whoever tries says so without it.
        password = ""
    return [secret for secret in (settings.admin_key, settings.explorer_key, password) if secret]


def _host(value: str) -> str:
    name = addresses.host(value)
    if name is None:
        raise ConfigError(
            f"--allow-host: `{value}` is not the name of a host.", hint="Say `net.example`, without a port."
        )
    return name
