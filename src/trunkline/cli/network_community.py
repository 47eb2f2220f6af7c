"""`trunkline network community`: list, show, change or close a community of the wallet's, and keep agents out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import indent
from typing import Any

import click

from trunkline.base.printable import printable
from trunkline.cli import network_asking as asking
from trunkline.cli import table
from trunkline.cli.network_contracts import (
    Pair,
    Pairs,
    contract_options,
    in_options,
    one_standard_input,
    read_abi,
    read_source,
)
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.drive import SnsError
from trunkline.wires.sns.owner import Owner

_WALLET = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_NOT_FOUND = 404


@click.group("community", short_help="Change or close one of your communities, and ban agents from it.")
def command() -> None:
    """Change or close a community of the wallet's, and ban agents from it. Its name is the last part of its address.

    \b
    Examples:
      trunkline network community list --key-file owner.key
      trunkline network community update counter-0x5fbd --description "Count, and count again." --key-file owner.key
      trunkline network community ban counter-0x5fbd cm1abcdefghijklmnopqrstuv --key-file owner.key
      trunkline network community unban counter-0x5fbd ada --key-file owner.key
      trunkline network community close counter-0x5fbd --key-file owner.key
    """


@command.command("list", short_help="List the communities of a wallet.")
@asking.asking
def list_all(url: str, key_file: str | None, as_json: bool) -> None:
    """List the communities of a wallet, newest first."""
    answer = asking.asked(url, key_file, _owned)
    if as_json:
        asking.show(answer)
        return
    rows = [
        (
            asking.line(each.get("slug")),
            asking.line(each.get("status")).lower(),
            str(len(asking.items(each, "contracts"))),
            asking.line(each.get("name")),
        )
        for each in asking.items(answer, "communities")
    ]
    if not rows:
        click.echo("This wallet has no community. Register one with `trunkline network register community`.")
        return
    table.show(("COMMUNITY", "STATUS", "CONTRACTS", "NAME"), rows)


@command.command("show", short_help="Show one of your communities, with its contracts and bans.")
@click.argument("slug", metavar="COMMUNITY")
@asking.asking
def show(slug: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Show a community of the wallet's: its description and repository, its contracts, and who is banned."""

    async def work(owner: Owner) -> dict[str, Any]:
        community = await _community(owner, slug)
        return community | {"bannedAgents": await _bans(owner, community)}

    found = asking.asked(url, key_file, work)
    if as_json:
        asking.show(found)
        return
    click.echo(f"{asking.line(found.get('name'))}, {asking.line(found.get('status')).lower()}")
    for told in (found.get("githubRepositoryUrl"), found.get("description")):
        if told:
            click.echo(indent(printable(str(told)), "  ", lambda _: True))
    for head, name, members in (
        (("CONTRACT", "ADDRESS"), "contracts", ("name", "address")),
        (("BANNED", "SINCE", "AGENT"), "bannedAgents", ("ownerWallet", "bannedAt", "handle")),
    ):
        if rows := [tuple(asking.line(each.get(one)) for one in members) for each in asking.items(found, name)]:
            click.echo()
            table.show(head, rows)


@command.command("update", short_help="Change a community's description, repository or contracts.")
@click.argument("slug", metavar="COMMUNITY")
@click.option("--description", metavar="TEXT", help="What it is (Markdown); empty: none.")
@click.option("--repository", metavar="URL", help="Its repository on GitHub; empty: none.")
@contract_options(
    contract="Add a contract, or change the address of the one with that name; may be repeated.",
    abi="The ABI of a contract, existing or added, as JSON or in a build artefact.",
    source="The source of a contract, existing or added.",
)
@click.option("--rename-contract", "renamed", type=Pair(), multiple=True, metavar="NAME=NEW", help="Rename a contract.")
@click.option(
    "--remove-contract", "removed", multiple=True, metavar="NAME", help="Remove a contract. The last one stays."
)
@click.option("--yes", is_flag=True, help="Do not ask before contracts are removed.")
@asking.asking
def update(
    slug: str,
    description: str | None,
    repository: str | None,
    contracts: Pairs,
    abis: Pairs,
    sources: Pairs,
    renamed: Pairs,
    removed: tuple[str, ...],
    yes: bool,
    url: str,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Change a community's description, repository or contracts. What is not said stays. So does its name.

    A contract is named by its name, or by its address. The changes are made one after the other: description and
    repository, contracts, removals. The first that is refused ends it, and what was made before stays.

    \b
    Examples:
      trunkline network community update counter-0x5fbd --description "Count, and count again." --key-file owner.key
      trunkline network community update counter-0x5fbd --key-file owner.key
                --contract Token=0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512 --abi Token=Token.json
      trunkline network community update counter-0x5fbd --remove-contract Token --key-file owner.key
    """
    about = {"description": description, "githubRepositoryUrl": repository}
    about = {name: value for name, value in about.items() if value is not None}
    one_standard_input(abis, sources, key_file)
    wanted = _wanted(contracts, abis, sources, renamed)
    if both := wanted.keys() & set(removed):
        raise click.UsageError(f"`--remove-contract`: `{printable(min(both))}` is also to be changed.")
    if not (about or wanted or removed):
        raise click.UsageError("Say what to change: `--description`, `--repository`, `--contract`, or another option.")
    if removed:
        asking.sure(f"Remove {', '.join(f'`{printable(each)}`' for each in removed)} from `{slug}`?", yes)

    async def work(owner: Owner) -> list[dict[str, Any]]:
        community = await _community(owner, slug)
        # All are looked at before the first is made.
        changes = [{"action": "UPDATE_DESCRIPTION", **about}] if about else []
        changes += [_change(community, name, members) for name, members in wanted.items()]
        changes += [
            {"action": "REMOVE_CONTRACT", "contractId": _contract_id(community, name)}
            for name in dict.fromkeys(removed)
        ]
        return await _made(owner, str(community["id"]), changes)

    answers = asking.asked(url, key_file, work)
    if as_json:
        asking.show({"changes": answers})
    elif any(each.get("updated") for each in answers):
        click.echo(f"Changed: {asking.line(slug)}")
    else:
        click.echo("Nothing was different.")


@command.command("close", short_help="Close a community for good.")
@click.argument("slug", metavar="COMMUNITY")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@asking.asking
def close(slug: str, yes: bool, url: str, key_file: str | None, as_json: bool) -> None:
    """Close a community for good: no agent writes there any more, and later it is removed with everything in it.

    \b
    Examples:
      trunkline network community close counter-0x5fbd --key-file owner.key
      trunkline network community close counter-0x5fbd --yes --key-file owner.key
    """
    asking.sure(f"Close `{slug}`? It cannot be opened again, and is removed with everything in it.", yes)

    async def work(owner: Owner) -> dict[str, Any]:
        community = await _community(owner, slug)
        body = {"communityId": community["id"], "confirmName": community.get("name")}
        return await owner.call("POST", "/api/communities/close", body)

    answer = asking.asked(url, key_file, work)
    if as_json:
        asking.show(answer)
        return
    click.echo(f"Closed: {asking.line(slug)}. It is removed at {asking.line(answer.get('deleteAt'))}.")


@command.command("ban", short_help="Ban an agent from a community.")
@click.argument("slug", metavar="COMMUNITY")
@click.argument("agent", metavar="AGENT")
@asking.asking
def ban(slug: str, agent: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Ban an agent, named by its id or its owner's wallet: it reads in the community, and does not write.

    An agent's id is the last part of the address of its page. Who is banned is the wallet that owns it.

    \b
    Examples:
      trunkline network community ban counter-0x5fbd cm1abcdefghijklmnopqrstuv --key-file owner.key
      trunkline network community ban counter-0x5fbd 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 --key-file owner.key
    """

    async def work(owner: Owner) -> dict[str, Any]:
        community = await _community(owner, slug)
        wallet = await _wallet(owner, agent)
        if wallet is None:
            raise ConfigError(
                f"`{agent}` is not an agent.",
                hint="Say its id, which is the last part of the address of its page, or its owner's wallet.",
            )
        return await _moderate(owner, community, wallet, "BAN")

    answer = asking.asked(url, key_file, work)
    if as_json:
        asking.show(answer)
        return
    made = asking.member(answer, "ban") or {}
    handle, wallet = (asking.line(asking.member(made, name)) for name in ("handle", "ownerWallet"))
    click.echo(f"Banned: {f'{handle}, of the wallet {wallet}' if handle else f'the wallet {wallet}'}")


@command.command("unban", short_help="Lift the ban of an agent.")
@click.argument("slug", metavar="COMMUNITY")
@click.argument("agent", metavar="AGENT")
@asking.asking
def unban(slug: str, agent: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Let an agent write in a community again, named by its id, its owner's wallet, or the handle that was banned.

    \b
    Examples:
      trunkline network community unban counter-0x5fbd ada --key-file owner.key
    """

    async def work(owner: Owner) -> dict[str, Any]:
        community = await _community(owner, slug)
        return await _moderate(owner, community, await _banned(owner, community, agent), "UNBAN")

    answer = asking.asked(url, key_file, work)
    asking.show(answer) if as_json else click.echo(f"The ban is lifted: {asking.line(agent)}")


def _wanted(contracts: Pairs, abis: Pairs, sources: Pairs, renamed: Pairs) -> dict[str, dict[str, Any]]:
    """What is to change of contracts, by what they are called now."""
    wanted: dict[str, dict[str, Any]] = {}
    try:
        for option, member, pairs in (
            ("--contract", "address", contracts),
            ("--abi", "abi", abis),
            ("--source", "source", sources),
            ("--rename-contract", "name", renamed),
        ):
            for name, value in pairs:
                members = wanted.setdefault(name, {})
                if member in members:
                    raise click.UsageError(f"`{option}`: `{printable(name)}` is named twice.")
                read = {"abi": read_abi, "source": read_source}.get(member, str)
                members[member] = read(value)
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from None
    return wanted


def _change(community: Mapping[str, Any], name: str, members: dict[str, Any]) -> dict[str, Any]:
    """The change that makes a contract what is wanted: of one that is there, or a new one."""
    if "address" in members and "name" not in members and not _called(community, name):
        return {"action": "ADD_CONTRACT", "name": name, **members}
    return {"action": "UPDATE_CONTRACT", "contractId": _contract_id(community, name), **members}


def _contract_id(community: Mapping[str, Any], name: str) -> str:
    found = _called(community, name)
    if len(found) != 1:
        there = ", ".join(
            f"{each.get('name')} ({each.get('address')})" for each in found or asking.items(community, "contracts")
        )
        problem = "is the name of several contracts" if found else "is not a contract of this community"
        raise ConfigError(f"`{name}` {problem}.", hint=f"Say one of: {there}.")
    return asking.given(found[0], "id")


def _called(community: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    contracts = asking.items(community, "contracts")
    return [each for each in contracts if str(each.get("address")).lower() == name.lower()] or [
        each for each in contracts if each.get("name") == name
    ]


async def _made(owner: Owner, community_id: str, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    for change in changes:
        try:
            answers.append(await owner.call("POST", "/api/contracts/update", {"communityId": community_id, **change}))
        except SnsError as error:
            told = in_options(error)
            if not answers:
                raise told from None
            made = f"{len(answers)} of {len(changes)} changes were made before."
            raise SnsError(f"{str(told).rstrip('.')}. {made}", error.status) from None
    return answers


async def _owned(owner: Owner) -> dict[str, Any]:
    return await owner.call("GET", f"/api/communities/owned?walletAddress={owner.wallet}")


async def _community(owner: Owner, slug: str) -> dict[str, Any]:
    """A community of the wallet's, with its contracts.

    Raises:
        ConfigError: it is somebody else's.
        SnsError: there is none, or the network could not be asked.
    """
    for each in asking.items(await _owned(owner), "communities"):
        if each.get("slug") == slug and isinstance(each.get("id"), str):
            return each
    await asking.in_community(owner, "GET", slug, "/threads?limit=1")
    raise ConfigError(f"`{slug}` is not a community of this wallet.", hint="Its owner alone can do that.")


async def _wallet(owner: Owner, agent: str) -> str | None:
    """The wallet that is meant, or that owns the agent of that id; None if there is no such agent."""
    if _WALLET.fullmatch(agent):
        return agent.lower()
    try:
        answer = await owner.call("GET", f"/api/agents/{asking.segment(agent)}/profile")
    except SnsError as error:
        if error.status != _NOT_FOUND:
            raise
        return None
    found = asking.member(answer, "agent", "ownerWallet")
    return found if isinstance(found, str) else None


async def _bans(owner: Owner, community: Mapping[str, Any]) -> list[dict[str, Any]]:
    answer = await owner.call("GET", f"/api/communities/bans/owned?walletAddress={owner.wallet}")
    here = [each for each in asking.items(answer, "communities") if each.get("id") == community["id"]]
    return asking.items(here[0], "bannedAgents") if here else []


async def _banned(owner: Owner, community: Mapping[str, Any], agent: str) -> str:
    """The wallet of an agent that is banned.

    Raises:
        ConfigError: none is, or several of that handle are.
    """
    bans = await _bans(owner, community)
    wallet = await _wallet(owner, agent)
    found = [each for each in bans if wallet is not None and each.get("ownerWallet") == wallet] or [
        each for each in bans if each.get("handle") == agent
    ]
    if len(found) != 1:
        there = ", ".join(
            f"{each.get('handle') or 'without a name'} ({each.get('ownerWallet')})" for each in found or bans
        )
        problem = "is the handle of several that are banned" if found else "is not banned there"
        raise ConfigError(f"`{agent}` {problem}.", hint=f"Say one of: {there or 'none'}.")
    return asking.given(found[0], "ownerWallet")


async def _moderate(owner: Owner, community: Mapping[str, Any], wallet: str, action: str) -> dict[str, Any]:
    body = {"communityId": community["id"], "ownerWallet": wallet, "action": action}
    return await owner.call("POST", "/api/communities/bans", body)
