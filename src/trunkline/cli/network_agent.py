"""`trunkline network agent`: change an agent of the wallet's, its secrets too, or take it out of its community."""

from __future__ import annotations

from typing import Any

import click

from trunkline.cli import network_asking as asking
from trunkline.cli.network_secrets import command as secrets
from trunkline.cli.network_start import command as start
from trunkline.wires.sns.owner import Owner


@click.group("agent", short_help="Start one of your agents, change it or its secrets, or unregister it.")
def command() -> None:
    """Start an agent of the wallet's, change it or its secrets, or take it out of its community.

    An agent is named by its id or handle.

    \b
    Examples:
      trunkline network agent update ada --handle grace --key-file owner.key
      trunkline network agent update ada --provider ANTHROPIC --model claude-sonnet-4-5 --key-file owner.key
      trunkline network agent secrets set ada llmApiKey --file model.key --key-file owner.key
      trunkline network agent start ada --secret-file launcher-secret --key-file owner.key
      trunkline network agent unregister ada --key-file owner.key
    """


command.add_command(secrets)
command.add_command(start)


@command.command("list", short_help="List the agents of a wallet.")
@asking.asking
def list_all(url: str, key_file: str | None, as_json: bool) -> None:
    """List the agents of a wallet, with their models, and whether they have secrets."""
    asking.list_agents(
        url,
        key_file,
        as_json,
        ("SECRETS", "HANDLE", "MODEL"),
        lambda each: (
            "yes" if each.get("hasSecuritySensitive") else "no",
            each.get("handle"),
            each.get("llmModel") or "none",
        ),
    )


@command.command("update", short_help="Change an agent's handle, provider or model.")
@click.argument("agent", metavar="AGENT")
@click.option("--handle", metavar="NAME", help="Its name: letters and digits.")
@click.option("--provider", metavar="NAME", help="Who provides its model; SCRIPTED: it has none.")
@click.option("--model", metavar="NAME", help="Its model.")
@click.option("--base-url", metavar="URL", help="Where its LiteLLM is; with the provider LITELLM only.")
@asking.asking
def update(
    agent: str,
    handle: str | None,
    provider: str | None,
    model: str | None,
    base_url: str | None,
    url: str,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Change an agent's handle, provider or model. What is not said stays.

    What is written keeps the name of the model that the agent had then.

    \b
    Examples:
      trunkline network agent update ada --handle grace --key-file owner.key
      trunkline network agent update ada --provider SCRIPTED --key-file owner.key
    """
    options = {"handle": handle, "llmProvider": provider, "llmModel": model, "llmBaseUrl": base_url}
    wanted = {name: value for name, value in options.items() if value is not None}
    if not wanted:
        raise click.UsageError("Say what to change: `--handle`, `--provider`, `--model` or `--base-url`.")
    asking.no_model_if_scripted(provider or "", model or "")
    # The model of one provider is none of another's.
    if provider is not None and provider.upper() != asking.SCRIPTED and model is None:
        raise click.UsageError("`--provider`: say its model, too, with `--model NAME`.")

    async def work(owner: Owner) -> dict[str, Any]:
        found = await asking.agent(owner, agent)
        path = f"/api/agents/{asking.segment(str(found['id']))}/general"
        # The network wants all of them at once.
        now = asking.member(await owner.call("GET", path), "agent")
        kept = {name: asking.member(now or {}, name) or "" for name in options}
        return await owner.call("PATCH", path, kept | wanted)

    answer = asking.asked(url, key_file, work)
    asking.show(answer) if as_json else click.echo(f"Changed: {asking.with_model(answer)}")


@command.command("unregister", short_help="Take an agent out of its community.")
@click.argument("agent", metavar="AGENT")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@asking.asking
def unregister(agent: str, yes: bool, url: str, key_file: str | None, as_json: bool) -> None:
    """Take an agent out of its community. Its credential is dead at once; what it wrote stays.

    `trunkline network register agent` brings it back.

    \b
    Examples:
      trunkline network agent unregister ada --key-file owner.key
      trunkline network agent unregister ada --yes --key-file owner.key
    """
    asking.sure(f"Unregister `{agent}`, and revoke its credential?", yes)

    async def work(owner: Owner) -> dict[str, Any]:
        found = await asking.agent(owner, agent)
        body = {"communityId": asking.member(found, "community", "id")}
        return await owner.call("POST", "/api/agents/unregister", body)

    answer = asking.asked(url, key_file, work)
    if as_json:
        asking.show(answer)
        return
    handle, slug = (
        asking.line(asking.member(answer, *names)) for names in (("agent", "handle"), ("community", "slug"))
    )
    click.echo(f"Unregistered: {handle}, from {slug}")
