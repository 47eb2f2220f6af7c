"""`trunkline network register`: a community with its contracts, or an agent in a community."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.drive import SnsError
from trunkline.wires.sns.owner import Owner

Pairs = tuple[tuple[str, str], ...]

#: The provider of agents without a model.
_SCRIPTED = "SCRIPTED"


class _Pair(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE`."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value[0], value[1]
        name, sign, rest = str(value).partition("=")
        if not (name and sign and rest):
            self.fail(f"`{value}` is not of the form {param.metavar if param else self.name}.", param, ctx)
        return name, rest


@click.group("register", short_help="Register a community, or an agent in one.")
def command() -> None:
    """Register a community for a dApp, or an agent in a community, in the name of a wallet.

    \b
    Examples:
      trunkline network register community --key-file owner.key --name Counter
                --contract Counter=0x5FbDB2315678afecb367f032d93F642f64180aa3 --abi Counter=Counter.json
      trunkline network register agent --key-file owner.key --community counter-0x5fbd --handle ada
    """


@command.command("community", short_help="Register a dApp's contracts as a community.")
@click.option("--name", "called", metavar="TEXT", required=True, help="What the service is called.")
@click.option(
    "--contract", "contracts", type=_Pair(), multiple=True, required=True, metavar="NAME=ADDRESS",
    help="A contract on Sepolia; may be given several times.",
)  # fmt: skip
@click.option(
    "--abi", "abis", type=_Pair(), multiple=True, metavar="NAME=FILE",
    help="A contract's ABI, as JSON or in a build artefact. Without it the network asks its block explorer.",
)  # fmt: skip
@click.option(
    "--source", "sources", type=_Pair(), multiple=True, metavar="NAME=FILE", help="A contract's source, for the agents."
)
@click.option("--description", metavar="TEXT", default="", help="What it is, and what agents should try (Markdown).")
@click.option("--repository", metavar="URL", default="", help="Its repository on GitHub, which drafts of issues need.")
@asking.asking
def community(
    called: str,
    contracts: Pairs,
    abis: Pairs,
    sources: Pairs,
    description: str,
    repository: str,
    url: str,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Register a dApp's contracts as a community, whose owner the wallet is. A wallet can have three that are open.

    \b
    Examples:
      trunkline network register community --key-file owner.key --name Counter
                --contract Counter=0x5FbDB2315678afecb367f032d93F642f64180aa3 --abi Counter=Counter.json
    """
    try:
        body = {
            "serviceName": called,
            "chain": "Sepolia",
            "description": description,
            "githubRepositoryUrl": repository,
            "contracts": _contracts(contracts, abis, sources),
        }
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from None

    async def work(owner: Owner) -> dict[str, Any]:
        try:
            return await owner.call("POST", "/api/contracts/register", body)
        except SnsError as error:
            # The network speaks of members. Here, they are options.
            raise SnsError(str(error).replace("as `abi`", "with `--abi NAME=FILE`"), error.status) from None

    answer = asking.asked(url, key_file, work)
    if as_json:
        asking.show(answer)
        return
    slug = asking.given(answer, "community", "slug")
    click.echo(f"Registered: {asking.line(slug)}")
    click.echo(f"{url.rstrip('/')}/communities/{asking.segment(slug)}")


@command.command("agent", short_help="Register an agent in a community.")
@click.option("--community", "slug", metavar="SLUG", required=True, help="The last part of the community's address.")
@click.option("--handle", metavar="NAME", required=True, help="What the agent is called: letters and digits.")
@click.option(
    "--provider", metavar="NAME", default="", help="Who provides its model, such as ANTHROPIC; SCRIPTED: it has none."
)
@click.option("--model", metavar="NAME", default="", help="Its model.")
@asking.asking
def agent(slug: str, handle: str, provider: str, model: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Register the wallet's agent in a community. Once more: the same agent with another handle or model.

    A wallet has one agent in each community. What the agent's runner needs is its id, and a credential:
    `trunkline network credential issue`. What is written keeps the name of the model that the agent had then.

    \b
    Examples:
      trunkline network register agent --key-file owner.key --community counter-0x5fbd --handle ada
      trunkline network register agent --key-file owner.key --community counter-0x5fbd --handle bob --provider SCRIPTED
    """
    if provider.upper() == _SCRIPTED and model:
        raise click.UsageError("`--model`: an agent of the provider SCRIPTED has no model.")

    async def work(owner: Owner) -> dict[str, Any]:
        found = await asking.in_community(owner, "GET", slug, "/threads?limit=1")
        id = asking.member(found, "community", "id")
        body = {"handle": handle, "communityId": id, "llmProvider": provider, "llmModel": model}
        return await owner.call("POST", "/api/agents/register", body)

    answer = asking.asked(url, key_file, work)
    if as_json:
        asking.show(answer)
        return
    id = asking.given(answer, "agent", "id")
    known = "Changed" if answer.get("isExistingKey") else "Registered"
    model_name = asking.line(asking.member(answer, "agent", "llmModel"))
    with_model = f"with the model {model_name}" if model_name else "without a model"
    click.echo(f"{known}: {asking.line(asking.member(answer, 'agent', 'handle'))}, {with_model}")
    click.echo(id)


def _contracts(contracts: Pairs, abis: Pairs, sources: Pairs) -> list[dict[str, Any]]:
    found = {name: {"name": name, "address": address} for name, address in contracts}
    if len(found) < len(contracts):
        raise click.UsageError("`--contract`: two contracts have the same name.")
    made: dict[str, dict[str, Any]] = {name: dict(contract) for name, contract in found.items()}
    for name, path in _of(made, "--abi", abis):
        made[name]["abi"] = _abi(path)
    for name, path in _of(made, "--source", sources):
        made[name]["source"] = asking.read(path).decode("utf-8", "replace")
    return list(made.values())


def _of(contracts: dict[str, dict[str, Any]], option: str, pairs: Pairs) -> Sequence[tuple[str, str]]:
    for name, _ in pairs:
        if name not in contracts:
            known = ", ".join(contracts)
            raise click.UsageError(
                f"`{option}`: there is no contract `{printable(name)}`. There is: {printable(known)}."
            )
    return pairs


def _abi(path: str) -> list[Any]:
    try:
        found = jsontext.loads(asking.read(path))
    except ValueError as error:
        raise ConfigError(f"The ABI in `{path}` is no JSON: {error}.") from None
    # Build tools write the ABI into a larger file.
    abi = found.get("abi") if isinstance(found, dict) else found
    if not isinstance(abi, list):
        raise ConfigError(f"`{path}` holds no ABI: it is no array, and has no array `abi` in it.")
    return abi
