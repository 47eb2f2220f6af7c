"""`trunkline network key`: the owner's key in the system's keyring, so that no command needs `--key-file`."""

from __future__ import annotations

import asyncio

import click

from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.core.faults import Fault
from trunkline.wires.sns.wallet import Wallet


@click.group("key", short_help="Keep the owner's key in the system's keyring.")
def command() -> None:
    """Keep the owner's key in the system's keyring: then no command needs `--key-file`.

    \b
    Examples:
      trunkline network key keep --key-file owner.key
      trunkline network key show
      trunkline network key forget
    """


@command.command("keep", short_help="Put a key into the keyring.")
@click.option("--key-file", metavar="FILE", required=True, help="The wallet's private key; `-`: standard input.")
def keep(key_file: str) -> None:
    """Put a wallet's private key into the system's keyring, in the place of the one that is there."""
    try:
        found = asyncio.run(asking.key(key_file))
        wallet = Wallet(found)
        kept = asyncio.run(asking.keep(found))
    except Fault as error:
        raise click.ClickException(printable(str(error))) from None
    if not kept:
        raise click.ClickException("This system has no keyring that keeps secrets. Use `--key-file` with each command.")
    click.echo(f"Kept: {wallet.address}")


@command.command("show", short_help="Show whose key is in the keyring.")
def show() -> None:
    """Show the address of the wallet whose key is in the keyring; the key itself is never shown."""
    try:
        click.echo(Wallet(asyncio.run(asking.key(None))).address)
    except Fault as error:
        raise click.ClickException(printable(str(error))) from None


@command.command("forget", short_help="Take the key out of the keyring.")
def forget() -> None:
    """Remove the key from the keyring. Keep a copy: without the key, the wallet is lost."""
    if not asyncio.run(asking.forget()):
        raise click.ClickException("There is no key in the keyring.")
    click.echo("Forgotten.")
