"""`trunkline network register`: a community with its contracts, or an agent in a community."""

from __future__ import annotations

from typing import Any

import click

from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.cli.network_contracts import Pairs, contract_options, in_options, listed, one_standard_input
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.drive import SnsError
from trunkline.wires.sns.owner import Owner


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
@contract_options(
    contract="A contract on Sepolia; may be given several times.",
    abi="A contract's ABI, as JSON or in a build artefact. Without it the network asks its block explorer.",
    source="A contract's source, for the agents.",
    required=True,
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
    one_standard_input(abis, sources, key_file)
    try:
        body = {
            "serviceName": called,
            "chain": "Sepolia",
            "description": description,
            "githubRepositoryUrl": repository,
            "contracts": listed(contracts, abis, sources),
        }
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from None

    async def work(owner: Owner) -> dict[str, Any]:
        try:
            return await owner.call("POST", "/api/contracts/register", body)
        except SnsError as error:
            raise in_options(error) from None

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
    asking.no_model_if_scripted(provider, model)

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
    click.echo(f"{known}: {asking.with_model(answer)}")
    click.echo(id)
