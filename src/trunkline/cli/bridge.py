"""`trunkline bridge`: agents in a chat.

Exit codes: 0 when the input of the last platform ended, 1 when the bridge could not start or had to give up, 2 for
wrong usage, 130 after Ctrl-C, 141 when nobody reads the answers at the terminal any more, 143 after SIGTERM.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from trunkline.base import jsontext
from trunkline.base.chat_platforms import PLATFORMS, remote
from trunkline.base.environ_secrets import hide_process
from trunkline.base.printable import printable, printable_line
from trunkline.chat import settings as chat_settings
from trunkline.chat.settings import BridgeSettings
from trunkline.cli import log_options, table, traced
from trunkline.cli.explained import explained_as
from trunkline.cli.wrapping import commands_apart
from trunkline.core.faults import ConfigError, Fault

R = TypeVar("R")

EXIT_FAILED = 1

#: Faults tell the file that they are about, where a setting is wrong.
_explained = explained_as(chat_settings.with_file)


def _agents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.cli.agentproc_completion import agents

    try:
        own = chat_settings.load(context.params.get("workspace")).agents
    except Fault:
        own = {}
    offered = [CompletionItem(name) for name in own if name.startswith(incomplete)]
    return [*offered, *(item for item in agents(incomplete) if item.value not in own)]


def _settled(function: Callable[..., R]) -> Callable[..., R]:
    """The arguments that `run` and `check` share."""
    for decorate in (
        click.argument("platforms", nargs=-1, metavar="[PLATFORM]...", type=click.Choice(list(PLATFORMS))),
        click.option(
            "--agent",
            metavar="NAME",
            help="Who answers: a name of `[bridge.agents]`, or any agent.",
            shell_complete=_agents,
        ),
        click.option("--allow", metavar="ID", multiple=True, help="Let somebody in: `telegram:12345`, or `*` for all."),
        click.option("--workspace", metavar="DIR", help="The directory that the agents work in."),
    ):
        function = decorate(function)
    return function


def _with_platforms(function: Callable[..., R]) -> Callable[..., R]:
    """Name the platforms in a help text: `TITLES` for people, `NAMES` as they are typed."""
    titles = [PLATFORMS[name].title for name in remote()]
    titles += [entry.title for entry in PLATFORMS.values() if entry.owner is not None]
    *before, last = titles
    text = (function.__doc__ or "").replace("TITLES", f"{', '.join(before)}, or {last}")
    function.__doc__ = text.replace("NAMES", ", ".join(f"`{name}`" for name in PLATFORMS))
    return function


@click.group("bridge")
@_with_platforms
def command() -> None:
    """Put agents into a chat: TITLES.

    Nobody is let in but those whom you name. What is received and what is to be sent is kept on disk: a restart loses
    nothing, and doubles nothing.

    \b
    Examples:
      trunkline bridge run terminal --agent echo
      trunkline bridge run telegram --agent agentproc:claude-code --allow telegram:12345
      trunkline bridge check
      trunkline bridge outbox
    """


@command.command("run", short_help="Serve platforms until stopped.")
@_settled
@log_options.format_option
@_explained
@_with_platforms
def run(platforms: tuple[str, ...], agent: str | None, allow: tuple[str, ...], workspace: str | None) -> None:
    """Serve each PLATFORM until stopped: NAMES. Without one, those that are configured.

    Nothing begins if the agent that answers first cannot answer.

    \b
    Examples:
      trunkline bridge run terminal --agent echo
      trunkline bridge run telegram --agent agentproc:claude-code --allow telegram:12345
      trunkline bridge run telegram matrix --workspace ~/project
    """
    found = _settings(agent, allow, workspace)
    for warning in found.warnings:
        log_options.echo(printable_line(warning))
    from trunkline.cli.agent_options import run as run_to_its_end

    chosen = _chosen(platforms, found)
    sys.exit(run_to_its_end(lambda: _guarded(_run(found, chosen))))


@command.command("check", short_help="Show what `run` would do, and what is missing.")
@_settled
@_explained
def check(platforms: tuple[str, ...], agent: str | None, allow: tuple[str, ...], workspace: str | None) -> None:
    """Show what `run` would do: who is let in, which agents can answer, whether each PLATFORM accepts the credentials.

    Ends with exit code 1 if something is missing.
    """
    from trunkline.cli import bridge_check

    found = _settings(agent, allow, workspace)
    names = platforms or tuple(found.platforms)
    if not asyncio.run(bridge_check.check(found, names, _say)):
        sys.exit(EXIT_FAILED)


@command.command("outbox", short_help="List messages that were not delivered.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--retry", metavar="ID", type=int, help="Send one again. If its state is `unknown`, it may appear twice.")
@click.option("--drop", metavar="ID", type=int, help="Forget one.")
@_explained
def outbox(as_json: bool, retry: int | None, drop: int | None) -> None:
    """List the messages that were not delivered (`failed`), or perhaps not (`unknown`)."""
    from trunkline.chat.delivery.rows import Rows
    from trunkline.chat.delivery.store import ChatStore

    if retry is not None and drop is not None:
        raise click.UsageError("Cannot use --retry and --drop together")
    store = ChatStore()
    try:
        rows = Rows(store)
        if retry is not None or drop is not None:
            id = drop if retry is None else retry
            if id is None or (rows.drop(id) if retry is None else rows.retry(id)) is None:
                raise ConfigError(
                    f"No message `{id}` waits for a decision.", hint="`trunkline bridge outbox` lists them."
                )
            click.echo("Forgotten." if retry is None else "It will be sent again.", err=True)
            return
        _list(rows.unsettled(), as_json)
    finally:
        store.close()


def _list(rows: Iterable[Any], as_json: bool) -> None:
    found = [
        {
            "id": row.id,
            "platform": row.platform,
            "chat": row.chat,
            "state": str(row.state),
            "created": row.created,
            "problem": row.problem,
            "text": row.summary,
        }
        for row in rows
    ]
    if as_json:
        click.echo(jsontext.dumps({"messages": found}))
        return
    if not found:
        click.echo("Everything has been delivered, or is on its way.", err=True)
        return
    shown = ("id", "platform", "chat", "state", "problem", "text")
    lines = [tuple(printable_line(str(row[key])) for key in shown) for row in found]
    table.show([key.upper() for key in shown], lines, wide=True)


async def _run(found: BridgeSettings, platforms: tuple[str, ...]) -> int:
    """Serve, if there is somebody to answer.

    Raises:
        ConfigError: there is not, or it cannot begin.
    """
    from trunkline.cli import bridge_check, bridge_run

    for name, why in (await bridge_check.unable(found)).items():
        if name == found.agent:
            raise ConfigError(f"The agent `{name}` cannot answer. {why}")
        log_options.echo(commands_apart(printable_line(f"warning: the agent `{name}` cannot answer. {why}")))
    hide_process()
    with traced.by_configuration():
        return await bridge_run.run(found, platforms)


async def _guarded(work: Coroutine[Any, Any, int]) -> int:
    try:
        return await work
    except Fault as fault:
        log_options.echo(commands_apart(f"Error: {printable_line(chat_settings.with_file(str(fault)))}"))
        return EXIT_FAILED


def _settings(agent: str | None, allow: tuple[str, ...], workspace: str | None) -> BridgeSettings:
    named = chat_settings.check_senders(allow)
    found = chat_settings.load(workspace, agent)
    return found.replace(allow=tuple(dict.fromkeys((*found.allow, *named))))


def _chosen(platforms: tuple[str, ...], found: BridgeSettings) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(platforms or found.platforms))
    if not chosen:
        from trunkline.cli.bridge_check import ways_to_a_platform

        raise ConfigError("No platform is configured.", hint=ways_to_a_platform())
    return chosen


def _say(text: str) -> None:
    click.echo(printable(text))
