"""`trunkline init`: write the file that an exchange begins with. At a terminal it asks a few questions.

Exit codes: 0; 1 when there is a file already, or it cannot be written.
"""

from __future__ import annotations

import os
import sys

import click

from trunkline.base import config_addresses
from trunkline.base.exchange_home import FILE
from trunkline.base.printable import printable_line
from trunkline.cli.explained import explained
from trunkline.exchange import first_file
from trunkline.exchange.config_schema import is_name
from trunkline.exchange.first_file import Answers


@click.command("init")
@click.argument("file", default=FILE, metavar="[FILE]", type=click.Path(dir_okay=False))
@explained
def command(file: str) -> None:
    """Write a commented FILE (default: trunkline.toml) for an exchange; `trunkline up --config FILE` runs it.

    At a terminal it asks for the agent, its workspace, the address and your name; anywhere else it takes the defaults.
    A file that is there is never overwritten. Your token is shown once, and is not in the file.

    \b
    Examples:
      trunkline init
      trunkline init ~/exchange/trunkline.toml
    """
    if os.path.lexists(file):
        raise click.ClickException(_is_there(file))
    answers = Answers(person=first_file.person_of(os.environ))
    if _at_a_terminal():
        answers = _asked(answers)
    token = first_file.new_token()
    try:
        first_file.write(file, first_file.text(answers, token))
    except FileExistsError:
        raise click.ClickException(_is_there(file)) from None
    except OSError as error:
        raise click.ClickException(f"`{file}` cannot be written: {error.strerror or error}.") from None
    click.echo(f"Wrote {printable_line(file)}.")
    click.echo(f"The token of {answers.person}, shown this once: {token}")
    click.echo(f"Run it:   trunkline up --config {printable_line(file)}")
    click.echo(f"Check it: trunkline doctor --config {printable_line(file)}")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _is_there(file: str) -> str:
    return f"`{file}` already exists and is not overwritten. Name another: `trunkline init FILE`."


def _asked(default: Answers) -> Answers:
    return Answers(
        agent=_ask("Which agent", default.agent),
        workspace=_ask("Where does it work", default.workspace),
        listen=_ask("On which address is the exchange", default.listen, _address),
        person=_ask("What are you called", default.person, _name),
    )


def _ask(question: str, default: str, value: click.ParamType[str] | None = None) -> str:
    return str(click.prompt(question, default=default, type=value))


class _Address(click.ParamType[str]):
    name = "address"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if config_addresses.listening(value) is None:
            self.fail("Write an address such as 127.0.0.1:4400.")
        return value


class _Name(click.ParamType[str]):
    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_name(value):
            self.fail("A name has letters, digits, `.`, `_` and `-`, and at most 64 of them.")
        return value


_address, _name = _Address(), _Name()
