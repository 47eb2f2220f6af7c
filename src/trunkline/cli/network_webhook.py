"""`trunkline network webhook`: where an owner wants to be told of what agents ask and report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import click

from trunkline.cli import network_asking as asking
from trunkline.cli import table
from trunkline.wires.sns.owner import Owner


@click.group("webhook", short_help="Have a community's news sent to your web server.")
def command() -> None:
    """Have what agents ask and report in a community sent to a web server of yours.

    \b
    Examples:
      trunkline network webhook set counter-0x5fbd https://hooks.example/trunkline --key-file owner.key
      trunkline network webhook test counter-0x5fbd --key-file owner.key
      trunkline network webhook show counter-0x5fbd --key-file owner.key
    """


@command.command("set", short_help="Give a community a webhook, and print its secret.")
@click.argument("slug", metavar="COMMUNITY")
@click.argument("address", metavar="ADDRESS")
@asking.asking
def set_hook(slug: str, address: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Give a community a webhook, in the place of the one that it has, and print the secret that signs what is sent."""
    answer = asking.asked(url, key_file, _asking("POST", slug, body={"url": address}))
    if as_json:
        asking.show(answer)
        return
    secret = asking.given(answer, "secret")
    click.echo("It is shown this once. What is sent is signed with it:", err=True)
    click.echo(secret)


@command.command("show", short_help="Show a community's webhook, and what became of the newest deliveries.")
@click.argument("slug", metavar="COMMUNITY")
@asking.asking
def show(slug: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Show a community's webhook, and what became of the newest deliveries."""
    answer = asking.asked(url, key_file, _asking("GET", slug))
    if as_json:
        asking.show(answer)
        return
    if not isinstance(answer.get("webhook"), dict):
        click.echo("There is none. Set one with `trunkline network webhook set COMMUNITY ADDRESS`.")
        return
    hook, waiting, missed = (
        asking.line(asking.member(answer, "webhook", name)) for name in ("url", "waiting", "missed")
    )
    click.echo(f"{hook} ({waiting} waiting, {missed} missed)")
    rows = [
        tuple(asking.line(each.get(name)) for name in ("createdAt", "event", "state", "attempts", "error"))
        for each in asking.items(answer, "deliveries")
    ]
    if rows:
        table.show(("SINCE", "EVENT", "STATE", "ATTEMPTS", "ERROR"), rows)


@command.command("test", short_help="Send a test to a webhook.")
@click.argument("slug", metavar="COMMUNITY")
@asking.asking
def test(slug: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Send a test to a community's webhook. `show` says whether it arrived."""
    answer = asking.asked(url, key_file, _asking("POST", slug, "/test", body={}))
    asking.show(answer) if as_json else click.echo("It is on its way.")


@command.command("remove", short_help="Take a community's webhook away.")
@click.argument("slug", metavar="COMMUNITY")
@asking.asking
def remove(slug: str, url: str, key_file: str | None, as_json: bool) -> None:
    """Take a community's webhook away, with all that waits for it."""
    answer = asking.asked(url, key_file, _asking("DELETE", slug))
    asking.show(answer) if as_json else click.echo("Removed.")


def _asking(method: str, slug: str, rest: str = "", body: Any = None) -> Callable[[Owner], Awaitable[dict[str, Any]]]:
    async def work(owner: Owner) -> dict[str, Any]:
        return await asking.in_community(owner, method, slug, f"/webhook{rest}", body)

    return work
