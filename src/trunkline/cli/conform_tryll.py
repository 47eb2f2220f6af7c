"""`trunkline conform tryll ADDRESS ...`: put anybody's Tryll server to the test, as a client meets it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from trunkline.base.hosts import is_loopback
from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from trunkline.conform.tryll.stage import Target

#: How long a server may take for one answer, or for the next frame of it.
DEFAULT_TIMEOUT = 10.0

TOKEN_VARIABLE = "TRUNKLINE_TRYLL_TOKEN"  # noqa: S105  # its name, not its value

_EXAMPLE = "trunkline conform tryll 127.0.0.1:9100"
_HOSTILE = "The kit opens about 190 connections to `{host}`, and many of them send what is broken or hostile."
_LACKING = "the Mock engine (without `--no-mock`), a model (`--model`), or the storage folder (`--storage-root`)"


@click.command("tryll", short_help="Test a Tryll server.")
@click.argument("address", required=False, metavar="ADDRESS")
@click.option("--model", default="", metavar="NAME",
              help="Play long turns with this model, which the server has, on its real engine.")  # fmt: skip
@click.option("--no-mock", is_flag=True, help="Leave out what needs the documented Mock engine.")
@click.option("--storage-root", type=click.Path(exists=True, file_okay=False), metavar="DIR",
              help="The server's storage folder: the kit puts files there, and removes them again.")  # fmt: skip
@click.option("--tls-ca", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="The server speaks TLS, and shows a certificate that this one (PEM) vouches for.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Do this to a server that is not on this machine.")
@conform_run.options("tryll.turn.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the server may take for one answer.")  # fmt: skip
def command(
    address: str | None,
    model: str,
    no_mock: bool,
    storage_root: str | None,
    tls_ca: str | None,
    yes: bool,
    how: conform_run.How,
    timeout: float,
) -> None:
    """Test the Tryll server at HOST:PORT, ws://HOST:PORT or wss://HOST:PORT, as a client would use it.

    Most checks need no model. Turns that take a while, and nodes that think, are played on the server's Mock engine;
    a server that has none, or another one, gets --no-mock, and --model if it has a model to play with. --storage-root
    adds the checks that need files. A server with a token wants it in TRUNKLINE_TRYLL_TOKEN.

    \b
    trunkline conform tryll 127.0.0.1:9100
    trunkline conform tryll ws://127.0.0.1:9101
    trunkline conform tryll wss://127.0.0.1:9101 --tls-ca server.pem
    trunkline conform tryll 127.0.0.1:9100 --no-mock --model smollm2-135m --only 'tryll.turn.*'
    """
    from trunkline.conform.tryll.stage import Stage
    from trunkline.conform.tryll.suite import SUITE
    from trunkline.wires.tryll.messages import PROTOCOL_VERSION

    def trial() -> conform_run.Trial[Stage]:
        target = _target(address, model, no_mock, storage_root, tls_ca, timeout, yes)
        return conform_run.Trial(
            lambda name: Stage(target, name),
            (target.address,),
            has=target.has,
            lacking=_LACKING,
            secrets=lambda: filter(None, [target.token]),
        )

    conform_run.conduct(SUITE, "tryll", str(PROTOCOL_VERSION), how, trial)


def _target(
    address: str | None,
    model: str,
    no_mock: bool,
    storage_root: str | None,
    tls_ca: str | None,
    timeout: float,
    yes: bool,
) -> Target:
    from trunkline.cli.tryll_chat import tls_context
    from trunkline.conform.tryll.stage import Target
    from trunkline.wires.tryll.drive.address import ServerAddress
    from trunkline.wires.tryll.messages import InferenceEngine

    if not address:
        raise click.UsageError(f"Name the address of the server: {_EXAMPLE}")
    try:
        where = ServerAddress.parse(address)
    except ValueError:
        raise click.UsageError(
            f"The address of a server is `HOST:PORT`, `ws://HOST:PORT` or `wss://HOST:PORT`, not `{address}`."
        ) from None
    if "?" in address:
        raise click.UsageError(f"The kit checks the binary form of the messages: say `{where}`, without `?...`.")
    if tls_ca is not None and where.scheme == "ws":
        raise click.UsageError(f"`--tls-ca` goes with `HOST:PORT` or `wss://`: there is no TLS at `{where}`.")
    if not yes and not is_loopback(where.host):
        raise click.UsageError(f"{_HOSTILE.format(host=where.host)} Add `--yes` if that is all right there.")
    engine = InferenceEngine.LLAMA_CPP if model else InferenceEngine.MOCK
    token = os.environ.get(TOKEN_VARIABLE, "")
    try:
        trusts = tls_context(tls_ca)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    return Target(where, timeout, token, model, engine, storage_root, not no_mock, trusts)
