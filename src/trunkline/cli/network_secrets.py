"""`trunkline network agent secrets`: what an agent needs and the network must not read, encrypted before it is sent."""

from __future__ import annotations

from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.cli import table
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.sealing import MIN_PASSWORD, NAMES, long_enough
from trunkline.wires.sns.wallet import NoKey, Wallet

#: Keys and tokens have some hundred characters at most; so has a password.
_MAX_SECRET = 8 * 1024
_WALLET_KEY = "executionWalletPrivateKey"

password_option = click.option(
    "--password-file",
    metavar="FILE",
    help="The password that encrypts them; `-`: standard input (default: it is asked for).",
)
_name = click.Choice(NAMES, case_sensitive=False)


@click.group("secrets", short_help="Set, list and remove the secrets of an agent.")
def command() -> None:
    """Set, show and remove the secrets of an agent: the keys that its runner needs, encrypted with a password.

    They are encrypted here, as the pages do it in a browser, and either reads what the other wrote. The network keeps
    what it cannot read; all depends on the password. There are four of them:

    \b
      llmApiKey                  the key of the model's provider
      executionWalletPrivateKey  a private key for transactions on the test network
      alchemyApiKey              a key of Alchemy's
      githubIssueToken           a token of GitHub's, if reports become issues by themselves

    \b
    Examples:
      trunkline network agent secrets set ada llmApiKey --file model.key --key-file owner.key
      trunkline network agent secrets list ada --password-file password --key-file owner.key
      trunkline network agent secrets remove ada alchemyApiKey --key-file owner.key
    """


@command.command("list", short_help="List which secrets an agent has.")
@click.argument("agent", metavar="AGENT")
@password_option
@asking.asking
def list_all(agent: str, password_file: str | None, url: str, key_file: str | None, as_json: bool) -> None:
    """List which secrets an agent has, without showing them."""
    found = _opened(agent, password_file, url, key_file)
    if as_json:
        asking.show({"secrets": {name: name in found for name in NAMES}})
        return
    table.show(("SECRET", "SET"), [(name, "yes" if name in found else "no") for name in NAMES])


@command.command("show", short_help="Show the secrets of an agent.")
@click.argument("agent", metavar="AGENT")
@click.argument("secret", required=False, type=_name, metavar="[NAME]")
@password_option
@asking.asking
def show(
    agent: str, secret: str | None, password_file: str | None, url: str, key_file: str | None, as_json: bool
) -> None:
    """Show an agent's secrets, or one of them and nothing else.

    With `--json` they are what a runner's configuration takes as `securitySensitive`.

    \b
    Examples:
      trunkline network agent secrets show ada llmApiKey --key-file owner.key
      trunkline network agent secrets show ada --json --password-file password --key-file owner.key
    """
    found = _opened(agent, password_file, url, key_file)
    if secret is not None and secret not in found:
        raise click.ClickException(f"`{printable(agent)}` has no `{secret}`. It has: {', '.join(found) or 'none'}.")
    if as_json:
        asking.show(found if secret is None else {secret: found[secret]})
    elif secret is not None:
        click.echo(printable(found[secret]))
    else:
        table.show(("SECRET", "VALUE"), [(each, asking.line(value)) for each, value in found.items()])


@command.command("set", short_help="Give an agent a secret, or several.")
@click.argument("agent", metavar="AGENT")
@click.argument("secret", required=False, type=_name, metavar="[NAME]")
@click.option("--file", "path", metavar="FILE", help="Read the secret from a file; `-`: standard input.")
@click.option("--replace", is_flag=True, help="Discard what is kept; the password may be a new one.")
@password_option
@asking.asking
def set_some(
    agent: str,
    secret: str | None,
    path: str | None,
    replace: bool,
    password_file: str | None,
    url: str,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Give an agent a secret, from a file, from standard input, or as it is typed. The others stay.

    Without a NAME, what is read is a JSON object with any of them; an empty text takes one away.

    \b
    Examples:
      trunkline network agent secrets set ada llmApiKey --key-file owner.key
      trunkline network agent secrets set ada llmApiKey --password-file password --key-file owner.key < model.key
      trunkline network agent secrets set ada --file secrets.json --replace --key-file owner.key
    """
    typed = path is None and asking.at_terminal()
    if typed and secret is None:
        raise click.UsageError("Say which secret: `NAME`, or `--file FILE` with a JSON object of several.")
    asking.one_standard_input(
        ("the secret", None if typed else path or "-"), ("the password", password_file), ("the key", key_file)
    )
    try:
        given = {secret: _typed(secret)} if typed and secret is not None else _read(secret, path or "-")
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from None
    password = asked_password(password_file, new=True)

    async def work(owner: Owner) -> dict[str, Any]:
        place, kept = await _kept(owner, agent)
        before = {} if replace or kept is None else _unsealed(owner, kept, password)
        return await owner.call("POST", place, {"securitySensitive": owner.seal(before | given, password)})

    answer = asking.asked(url, key_file, work)
    asking.show(answer) if as_json else click.echo("Encrypted and saved.")


@command.command("remove", short_help="Remove secrets of an agent.")
@click.argument("agent", metavar="AGENT")
@click.argument("names", nargs=-1, required=True, type=_name, metavar="NAME...")
@password_option
@asking.asking
def remove(
    agent: str, names: tuple[str, ...], password_file: str | None, url: str, key_file: str | None, as_json: bool
) -> None:
    """Remove secrets of an agent. The others stay. A runner that has them already keeps them until it ends.

    \b
    Examples:
      trunkline network agent secrets remove ada alchemyApiKey githubIssueToken --key-file owner.key
    """
    asking.one_standard_input(("the password", password_file), ("the key", key_file))
    password = asked_password(password_file)

    async def work(owner: Owner) -> dict[str, Any]:
        place, kept = await _kept(owner, agent)
        found = {} if kept is None else _unsealed(owner, kept, password)
        if absent := [each for each in dict.fromkeys(names) if each not in found]:
            raise ConfigError(f"`{agent}` has no {_quoted(absent)}.", hint=f"It has: {_quoted(found) or 'none'}.")
        left = {each: value for each, value in found.items() if each not in names}
        return await owner.call("POST", place, {"securitySensitive": owner.seal(left, password)})

    answer = asking.asked(url, key_file, work)
    asking.show(answer) if as_json else click.echo("Removed.")


def _opened(agent: str, password_file: str | None, url: str, key_file: str | None) -> dict[str, str]:
    """An agent's secrets, by name."""
    asking.one_standard_input(("the password", password_file), ("the key", key_file))
    password = asked_password(password_file)

    return asking.asked(url, key_file, lambda owner: opened(owner, agent, password))


async def opened(owner: Owner, agent: str, password: str) -> dict[str, str]:
    """The secrets that the network keeps for an agent, by name.

    Raises:
        ConfigError: there is no such agent, or it is not the password.
        SnsError: the network could not be asked.
    """
    _, kept = await _kept(owner, agent)
    return {} if kept is None else owner.unseal(kept, password)


async def _kept(owner: Owner, agent: str) -> tuple[str, dict[str, Any] | None]:
    """Where the network keeps an agent's secrets, and what it keeps there."""
    found = await asking.agent(owner, agent)
    place = f"/api/agents/{asking.segment(found['id'])}/secrets"
    kept = (await owner.call("GET", place)).get("securitySensitive")
    return place, kept if isinstance(kept, dict) else None


def _unsealed(owner: Owner, kept: dict[str, Any], password: str) -> dict[str, str]:
    """What is to stay."""
    try:
        return owner.unseal(kept, password)
    except ConfigError as error:
        if error.hint is None:
            error.say(hint="`secrets set --replace` starts over, without what is kept.")
        raise


def asked_password(path: str | None, *, new: bool = False) -> str:
    """The password from a file, or from whoever sits at the terminal."""
    if path is None:
        if not asking.at_terminal():
            raise click.UsageError("There is no terminal to type the password in: give `--password-file FILE`.")
        found = str(click.prompt("Password", hide_input=True, confirmation_prompt=new, err=True))
    else:
        try:
            found = asking.secret_text(path, "password", _MAX_SECRET)
        except Fault as error:
            raise click.ClickException(printable(str(error))) from None
    if not found:
        raise click.ClickException("The password is empty.")
    if new and not long_enough(found):
        raise click.ClickException(f"The password needs {MIN_PASSWORD} characters or more.")
    return found


def _typed(name: str) -> str:
    return _checked(name, str(click.prompt(name, hide_input=True, err=True)))


def _read(name: str | None, path: str) -> dict[str, str]:
    """Secrets by name, from a file that has one or all of them.

    Raises:
        ConfigError: it cannot be read, or holds what is none.
    """
    if name is not None:
        return {name: _checked(name, asking.secret_text(path, name, _MAX_SECRET))}
    try:
        found = jsontext.loads(asking.secret_text(path, "secrets", _MAX_SECRET * len(NAMES)).encode())
    except ValueError:
        # Not what is wrong with it: a part of a secret would be in it.
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"`{path}` holds no JSON object.", hint=f"It may have the members {_quoted(NAMES)}.")
    if unknown := found.keys() - set(NAMES):
        raise ConfigError(
            f"`{min(unknown)}` is not a secret that an agent can have.", hint=f"There are {_quoted(NAMES)}."
        )
    if wrong := [each for each, value in found.items() if not isinstance(value, str)]:
        raise ConfigError(f"`{wrong[0]}` is not a string.")
    return {each: _checked(each, value) if value.strip() else "" for each, value in found.items()}


def _checked(name: str, value: str) -> str:
    """A secret as it is kept.

    Raises:
        ConfigError: it cannot be one. The text does not show it.
    """
    value = value.strip()
    if not value:
        raise ConfigError(f"`{name}` is empty.", hint="`secrets remove` takes it away.")
    if not value.isprintable():
        raise ConfigError(f"`{name}` has more than one line, or invisible characters.")
    if name == _WALLET_KEY:
        try:
            Wallet(value)
        except NoKey:
            raise ConfigError(f"`{name}` cannot sign.", hint="Give 64 hexadecimal digits.") from None
    return value


def _quoted(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
