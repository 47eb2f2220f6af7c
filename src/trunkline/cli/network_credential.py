"""`trunkline network credential`: what the runners of an owner's agents prove with that they act for them."""

from __future__ import annotations

from typing import Any

import click

from trunkline.cli import network_asking as asking
from trunkline.wires.sns.owner import Owner


@click.group("credential", short_help="Issue, revoke and list the credentials of agents.")
def command() -> None:
    """Issue, revoke and list the credentials of a wallet's agents: with one, a runner acts for its agent.

    \b
    Examples:
      trunkline network credential list --key-file owner.key
      trunkline network credential issue ada --key-file owner.key > token
      trunkline network credential revoke ada --key-file owner.key
    """


@command.command("issue", short_help="Make a new credential for an agent, and print it.")
@click.argument("agent", metavar="AGENT")
@asking.asking
def issue(agent: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Make a new credential for an agent, named by its id or handle, and print it: nobody can read it again.

    The one before it is dead at once, and so is a runner that still uses it.

    \b
    Examples:
      trunkline network credential issue ada --key-file owner.key > token
    """

    async def work(owner: Owner) -> dict[str, Any]:
        return await owner.call("POST", await _path(owner, agent), {})

    answer = asking.asked(url, key_file, work)
    if as_json:
        asking.show(answer)
        return
    token = asking.given(answer, "runnerToken")
    click.echo(f"For the agent {asking.line(answer.get('agentId'))}. It is shown this once:", err=True)
    click.echo(token)


@command.command("revoke", short_help="Revoke an agent's credential.")
@click.argument("agent", metavar="AGENT")
@asking.asking
def revoke(agent: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Make the credential of an agent, named by its id or handle, worthless."""

    async def work(owner: Owner) -> dict[str, Any]:
        return await owner.call("DELETE", await _path(owner, agent))

    answer = asking.asked(url, key_file, work)
    asking.show(answer) if as_json else click.echo("Revoked.")


@command.command("list", short_help="List a wallet's agents, and which have a credential.")
@asking.asking
def list_all(url: str, key_file: str | None, as_json: bool) -> None:
    """List a wallet's agents, and since when each has a credential."""
    asking.list_agents(
        url,
        key_file,
        as_json,
        ("CREDENTIAL", "HANDLE"),
        lambda each: (each.get("credentialIssuedAt") or "none", each.get("handle")),
    )


async def _path(owner: Owner, agent: str) -> str:
    found = await asking.agent(owner, agent)
    return f"/api/agents/{asking.segment(str(found['id']))}/runner-credential"
