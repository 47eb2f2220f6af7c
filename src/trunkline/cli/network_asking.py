"""What the commands of owners have in common: where the network is, whose wallet it is, and how it is asked.

A key is read from a file or from the system's keyring, never from the command line, where others could see it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import click

from trunkline.base import jsontext
from trunkline.base.nearest import near
from trunkline.base.printable import printable
from trunkline.base.regular import NotRegular, open_to_others, read_regular
from trunkline.cli import table
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.sns.drive import SnsError
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:4317"
#: The name of the owner's key in the keyring, among the secrets of agents, whose ids look different.
KEYRING_ENTRY = "network-owner"
_MEMBER = "privateKey"
#: A key has 66 characters.
_MAX_KEY = 4096
#: What owners paste: an ABI, a source, an answer.
_MAX_FILE = 8 * 1024 * 1024
#: A block explorer may be asked meanwhile, for a minute.
_READ_SECONDS = 90.0
_CONNECT_SECONDS = 5.0
_NOT_FOUND = 404
#: The provider of agents without a model.
SCRIPTED = "SCRIPTED"
#: Names of communities in one message.
_MOST_NEAR = 3

_NO_KEY = (
    "There is no key to sign in with. Say `--key-file FILE`, or put one into the keyring once: "
    "`trunkline network key keep --key-file FILE`."
)
NO_AGENT = "This wallet has no agent. Register one with `trunkline network register agent`."

Work = Callable[[Owner], Awaitable[T]]


def asking(function: Any) -> Any:
    """The options of commands that ask a network in an owner's name."""
    for decorate in (
        click.option("--json", "as_json", is_flag=True, help="Print the network's answer."),
        click.option(
            "--key-file", metavar="FILE", help="The wallet's private key; `-`: standard input (default: the keyring's)."
        ),
        click.option("--url", default=DEFAULT_URL, show_default=True, metavar="URL", help="Where the network is."),
    ):
        function = decorate(function)
    return function


def asked(url: str, key_file: str | None, work: Work[T]) -> T:
    """Sign in, do some work, and sign out; gives what came of it, or ends the command."""
    try:
        return asyncio.run(_asked(_address(url), key_file, work))
    except Fault as error:
        raise click.ClickException(printable(str(error))) from None


async def _asked(url: str, key_file: str | None, work: Work[T]) -> T:
    from trunkline.base.http import client

    wallet = Wallet(await key(key_file))
    try:
        http = client(secure=url.startswith("https"), connect=_CONNECT_SECONDS, read=_READ_SECONDS)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    async with http:
        owner = Owner(http, url, wallet)
        await owner.sign_in()
        try:
            return await work(owner)
        finally:
            await owner.sign_out()


async def key(key_file: str | None) -> str:
    """The private key, from a file or from the keyring.

    Raises:
        ConfigError: there is none.
    """
    if key_file is not None:
        return _from_file(key_file)
    from trunkline.base.keyring import system_keyring
    from trunkline.runner.keys import Keys

    kept = await Keys(system_keyring).load(KEYRING_ENTRY)
    found = (kept or {}).get(_MEMBER)
    if not isinstance(found, str):
        raise ConfigError(_NO_KEY)
    return found


async def keep(found: str) -> bool:
    """Put a key into the keyring, and say whether it is there."""
    from trunkline.base.keyring import system_keyring
    from trunkline.runner.keys import Keys

    return await Keys(system_keyring).save(KEYRING_ENTRY, {_MEMBER: found})


async def forget() -> bool:
    """Take the key out of the keyring, and say whether there was one."""
    from trunkline.base.keyring import system_keyring
    from trunkline.runner.keys import Keys

    return await Keys(system_keyring).remove(KEYRING_ENTRY)


def read(path: str) -> bytes:
    """What a file has in it; `-`: standard input.

    Raises:
        ConfigError: it cannot be read, or is too large.
    """
    return _read(path, _MAX_FILE)


def secret_text(path: str, what: str, most: int) -> str:
    """A secret in a file, without the line break at its end; `-`: standard input, hidden if it is typed.

    A file that others can read is told of.

    Raises:
        ConfigError: it cannot be read, is too large, or is no text.
    """
    if path == "-" and at_terminal():
        return str(click.prompt(what.capitalize(), hide_input=True, err=True))
    data = _read(path, most)
    try:
        found = data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{_place(path)} holds no text in UTF-8, and so no {what}.") from None
    if path != "-" and open_to_others(path):
        click.echo(f"Others can read the {what} in `{printable(path)}`: `chmod 600` keeps them out.", err=True)
    return found.removesuffix("\n").removesuffix("\r")


def one_standard_input(*wanted: tuple[str, str | None]) -> None:
    """See that standard input is read once: it cannot be two things.

    Args:
        wanted: what is read, and from where.
    """
    twice = [what for what, path in wanted if path == "-"]
    if len(twice) > 1:
        raise click.UsageError(f"Standard input cannot be both {twice[0]} and {twice[1]}.")


def segment(id: str) -> str:
    """An id or a slug as one part of a path, and never as a way to another path."""
    if not id.strip(". "):
        raise click.UsageError("An id is missing.")
    return quote(id.encode("utf-8", "surrogateescape"), safe="")


def show(answer: Any) -> None:
    """Print an answer for programs."""
    click.echo(jsontext.dumps(answer).decode())


def line(value: Any) -> str:
    """What somebody wrote, in one line that does nothing to a terminal."""
    return printable(" ".join(str("" if value is None else value).split()))


def member(answer: Mapping[str, Any], *names: str) -> Any:
    """A member of an answer, however deep; None if it is not there."""
    found: Any = answer
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def items(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list of an answer; none if it is not there."""
    found = answer.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def given(answer: Mapping[str, Any], *names: str) -> str:
    """A text in an answer that there is no use going on without, printable as it is; or the command ends."""
    found = member(answer, *names)
    if not isinstance(found, str) or not found or not found.isprintable():
        raise click.ClickException(f"The network's answer has no `{'.'.join(names)}`: is it a network of this kind?")
    return found


def sure(question: str, yes: bool) -> None:
    """Go on only if `--yes` was given, or somebody at the terminal says so."""
    if yes:
        return
    question = printable(question)
    if not at_terminal():
        raise click.UsageError(f"{question} There is no terminal to ask in: confirm with `--yes`.")
    if not click.confirm(question, err=True):
        # Not an `Abort`, which is what Ctrl-C is.
        raise click.ClickException("Nothing was changed.")


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def no_model_if_scripted(provider: str, model: str) -> None:
    """See that no model is named for an agent that has none."""
    if provider.upper() == SCRIPTED and model:
        raise click.UsageError(f"`--model`: an agent of the provider {SCRIPTED} has no model.")


def with_model(answer: Mapping[str, Any]) -> str:
    """The agent in an answer, with its model, in one line."""
    model = line(member(answer, "agent", "llmModel"))
    return f"{line(member(answer, 'agent', 'handle'))}, {f'with the model {model}' if model else 'without a model'}"


async def mine(owner: Owner) -> dict[str, Any]:
    """The wallet's agents, as the network lists them."""
    return await owner.call("GET", "/api/agents/mine")


def list_agents(
    url: str,
    key_file: str | None,
    as_json: bool,
    heads: Sequence[str],
    cells: Callable[[dict[str, Any]], Sequence[Any]],
) -> None:
    """Show the agents of a wallet with their communities, and what `cells` says of each below `heads`."""
    answer = asked(url, key_file, mine)
    if as_json:
        show(answer)
        return
    rows = [
        (line(each.get("id")), line(member(each, "community", "slug")), *map(line, cells(each)))
        for each in items(answer, "pairs")
    ]
    table.show(("AGENT", "COMMUNITY", *heads), rows) if rows else click.echo(NO_AGENT)


async def agent(owner: Owner, named: str) -> dict[str, Any]:
    """An agent of the wallet's, by its id, or by its handle if only one has it.

    Raises:
        ConfigError: there is none, or there are several.
    """
    pairs = items(await mine(owner), "pairs")
    found = [each for each in pairs if each.get("id") == named] or [
        each for each in pairs if each.get("handle") == named
    ]
    if len(found) != 1:
        there = ", ".join(map(_named, found or pairs)) or "none"
        problem = "is the handle of several agents" if found else "is not an agent of this wallet"
        raise ConfigError(f"`{named}` {problem}.", hint=f"Say one of: {there}.")
    given(found[0], "id")
    return found[0]


def _named(pair: Mapping[str, Any]) -> str:
    """An agent by all that one may know it by."""
    slug = member(pair, "community", "slug")
    return f"{pair.get('handle')} ({pair.get('id')}{f', in {slug}' if slug else ''})"


async def in_community(owner: Owner, method: str, slug: str, rest: str, body: Any = None) -> dict[str, Any]:
    """Ask about a community. If there is none, those of the owner's are named that may have been meant.

    Raises:
        SnsError: the network said no, or could not be asked.
    """
    try:
        return await owner.call(method, f"/api/communities/{segment(slug)}{rest}", body)
    except SnsError as error:
        if error.status != _NOT_FOUND or "Community" not in str(error):
            raise
        said = str(error).rstrip(".")
        meant = await _near(owner, slug)
        more = f" Did you mean {meant}?" if meant else " Its name is the last part of its address."
        raise SnsError(f"{said}.{more}", error.status) from None


async def _near(owner: Owner, slug: str) -> str:
    try:
        answer = await owner.call("GET", f"/api/communities?owner={owner.wallet}")
    except SnsError:
        return ""
    slugs = [line(each.get("slug")) for each in items(answer, "communities")]
    found = near(slug, slugs, beginnings=True) or slugs
    return " or ".join(f"`{each}`" for each in found[:_MOST_NEAR])


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = urlsplit(""), False
    if "@" in parts.netloc:
        raise click.UsageError("`--url`: no name or password is asked for there. Leave out what is before the `@`.")
    # What is asked is put behind it: nothing else may stand there.
    if not usable or not url.isprintable() or any(sign in url for sign in " ?#"):
        raise click.UsageError(f"`--url`: `{printable(url)}` is not the address of a network. Use `http://HOST:PORT`.")
    return urlunsplit(parts).rstrip("/")


def _from_file(path: str) -> str:
    found = secret_text(path, "key", _MAX_KEY).strip()
    if not found:
        raise ConfigError(f"{_place(path)} holds no key.", hint="It has 64 hexadecimal digits, with `0x` or without.")
    return found


def _read(path: str, most: int) -> bytes:
    try:
        if path == "-":
            # There is none where it was closed.
            data = sys.stdin.buffer.read(most + 1) if sys.stdin is not None else b""
        else:
            data = read_regular(path, most + 1).data
    except NotRegular:
        raise ConfigError(f"`{path}` is not a regular file.", hint="`-` reads from a pipe.") from None
    except OSError as error:
        raise ConfigError(f"{_place(path)} cannot be read: {error.strerror or error}.") from None
    if len(data) > most:
        raise ConfigError(f"{_place(path)} has more than {most} bytes.")
    return data


def _place(path: str) -> str:
    return "Standard input" if path == "-" else f"`{path}`"
