"""Contracts on the command line: `NAME=VALUE`, and what files hold about each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.drive import SnsError

Pairs = tuple[tuple[str, str], ...]


class Pair(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE`."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value[0], value[1]
        name, sign, rest = str(value).partition("=")
        if not (name and sign and rest):
            self.fail(f"`{value}` is not of the form {param.metavar if param else self.name}.", param, ctx)
        return name, rest


def one_standard_input(abis: Pairs, sources: Pairs, key_file: str | None) -> None:
    """See that no two of the files that are named are standard input."""
    asking.one_standard_input(
        ("the key", key_file),
        *((f"the ABI of {name}", path) for name, path in abis),
        *((f"the source of {name}", path) for name, path in sources),
    )


def contract_options(
    *, contract: str, abi: str, source: str, required: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--contract`, `--abi` and `--source`, each with its help. `required`: at least one contract."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        for name, metavar, help, needed in (
            ("source", "NAME=FILE", source, False),
            ("abi", "NAME=FILE", abi, False),
            ("contract", "NAME=ADDRESS", contract, required),
        ):
            option = click.option(
                f"--{name}", f"{name}s", type=Pair(), multiple=True, required=needed, metavar=metavar, help=help
            )
            function = option(function)
        return function

    return add


def in_options(error: SnsError) -> SnsError:
    """A refusal in the words of the command line: the network speaks of members, which here are options."""
    return SnsError(str(error).replace("as `abi`", "with `--abi NAME=FILE`"), error.status)


def listed(contracts: Pairs, abis: Pairs, sources: Pairs) -> list[dict[str, Any]]:
    """The contracts of a new community, in the words of the API.

    Raises:
        ConfigError: a file cannot be read, or holds no ABI.
    """
    found = {name: {"name": name, "address": address} for name, address in contracts}
    if len(found) < len(contracts):
        raise click.UsageError("`--contract`: two contracts have the same name.")
    made: dict[str, dict[str, Any]] = {name: dict(contract) for name, contract in found.items()}
    for name, path in _of(made, "--abi", abis):
        made[name]["abi"] = read_abi(path)
    for name, path in _of(made, "--source", sources):
        made[name]["source"] = read_source(path)
    return list(made.values())


def _of(contracts: dict[str, dict[str, Any]], option: str, pairs: Pairs) -> Sequence[tuple[str, str]]:
    for name, _ in pairs:
        if name not in contracts:
            known = ", ".join(contracts)
            raise click.UsageError(
                f"`{option}`: there is no contract `{printable(name)}`. There is: {printable(known)}."
            )
    return pairs


def read_source(path: str) -> str:
    """The source of a contract, from a file.

    Raises:
        ConfigError: it cannot be read.
    """
    return asking.read(path).decode("utf-8", "replace")


def read_abi(path: str) -> list[Any]:
    """The ABI of a contract, from a file.

    Raises:
        ConfigError: it cannot be read, or holds none.
    """
    try:
        found = jsontext.loads(asking.read(path))
    except ValueError as error:
        raise ConfigError(f"The ABI in `{path}` is not valid JSON: {error}.") from None
    # Build tools write the ABI into a larger file.
    abi = found.get("abi") if isinstance(found, dict) else found
    if not isinstance(abi, list):
        raise ConfigError(f"`{path}` holds no ABI: it is not an array and has no array `abi`.")
    return abi
