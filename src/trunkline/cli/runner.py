"""`trunkline runner`: agents that act on an agent social network, once or around the clock.

Exit codes of `serve`: 1 when it could not start, 2 for wrong usage, 130 after Ctrl-C, 143 after SIGTERM. Of the
commands that ask a launcher: 0, or 1 when it said no or is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent
from typing import Any
from urllib.parse import urlencode

import click

from trunkline.base import config_addresses as addresses
from trunkline.base import jsontext, paths
from trunkline.base.config_services import settings_of
from trunkline.base.config_settled import EffectiveConfig
from trunkline.base.environ_secrets import url_secrets
from trunkline.base.printable import printable
from trunkline.base.visible import visible
from trunkline.cli import figures, log_options, services, serving, table
from trunkline.cli.explained import explanation
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.preview import plain, preview
from trunkline.core.starting import callers_secret

DEFAULT_LISTEN = str(settings_of("runner")["listen"].default)
#: More than anybody reads in a terminal.
MOST_LOG = 1000
SECRET_VARIABLE = str(settings_of("runner")["secret"].variable)
#: A first cycle is waited for; a launcher answers before this in any case.
_ANSWER_SECONDS = 90.0
#: A thousand entries of a log have less.
_MAX_ANSWER = 32 * 1024 * 1024
_LOCAL_ONLY = "A launcher holds keys of wallets: it listens on this machine alone. Use a tunnel to reach it."


class _Group(click.Group):
    """Imports `once` when it is asked for: it is what programs call."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "once"])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == "once":
            from trunkline.cli.runner_once import command as once

            return once
        return super().get_command(ctx, name)


@click.group("runner", cls=_Group)
def command() -> None:
    """Run agents on an agent social network.

    \b
    Examples:
      trunkline runner once --config agent.json
      trunkline runner serve --secret-file secret.txt
      trunkline runner start --config agent.json
      trunkline runner status
    """


@command.command("serve", short_help="Keep agents running, and listen for those who look after them.")
@services.option("runner", "listen", metavar="HOST:PORT", help="Port 0: any free one.")
@click.option("--secret", metavar="TEXT", help="What callers must know. Others on this machine can see it here.")
@click.option("--secret-file", type=click.Path(dir_okay=False), metavar="FILE", help="Read the secret from a file.")
@services.option("runner", "allow_origin", metavar="ORIGIN", help="The one origin whose pages may call.")
@services.option("runner", "db", metavar="URL", help="`postgresql://...` that launchers share their agents in.")
@figures.option("runner")
@log_options.format_option
def serve(
    listen: str | None,
    secret: str | None,
    secret_file: str | None,
    allow_origin: str | None,
    db: str | None,
    metrics: str | None,
) -> None:
    """Keep agents running until stopped. Those that run now run again after a restart, if a keyring has their secrets.

    Launchers with one database share their agents: each agent runs in one of them, and in another if that one ends.

    The secret comes from `--secret`, from `--secret-file` or from the variable RUNNER_LAUNCHER_SECRET. Whoever knows
    it can run programs here: an agent's brain may be any program.

    \b
    Examples:
      RUNNER_LAUNCHER_SECRET=... trunkline runner serve
      trunkline runner serve --listen 127.0.0.1:4391 --secret-file secret.txt --allow-origin https://net.example
      trunkline runner serve --secret-file secret.txt --db postgresql://runners@db.example/runners
      trunkline runner serve --secret-file secret.txt --metrics 127.0.0.1:9111
    """
    from trunkline.base.keyring import system_keyring
    from trunkline.runner.fleet import FleetHome
    from trunkline.runner.keys import Keys
    from trunkline.runner.launcher import Launcher, opened_fleet
    from trunkline.runner.launcher import serve as serve_until

    said = _settled({"listen": listen, "allow_origin": allow_origin, "db": db, "metrics": metrics})
    found = _secret(secret, secret_file, said, f"Set {SECRET_VARIABLE}, or say `--secret-file` or `--secret`.")
    try:
        host, port = serving.address(said["listen"], hint=_LOCAL_ONLY)
        door = figures.FiguresDoor(figures.place(said, hint=_LOCAL_ONLY))
        launcher = Launcher(paths.state_dir(), host, port, found, _origin(said["allow_origin"]))
    except (Fault, OSError) as error:
        raise click.ClickException(printable(explanation(error))) from error

    if secret is not None:
        serving.told(f"Others on this machine can see `--secret`. `--secret-file` or {SECRET_VARIABLE} hide it.")

    async def work(stop: asyncio.Event) -> None:
        from trunkline.cli import opening
        from trunkline.cli.agent_options import log_to_stderr

        log_to_stderr(opening.redactor(None, found, *url_secrets(said["db"] or "")))
        async with opened_fleet(FleetHome(launcher.home), Keys(system_keyring), said["db"]) as fleet:
            told = figures.FiguresTold(door, lambda: fleet.figures.text(fleet), stop.is_set)

            def ready(host: str, port: int) -> None:
                serving.told(f"The launcher is ready: {serving.shown(host, port)} (Ctrl-C ends it.)")
                told.tell()

            try:
                await told.open()
                await serve_until(launcher, stop, ready, fleet)
            finally:
                await told.close()

    serving.serve(work)


def _asking(function: Any) -> Any:
    """The options of commands that ask a launcher."""
    for decorate in (
        click.option("--url", default=f"http://{DEFAULT_LISTEN}", show_default=True, help="Where the launcher is."),
        click.option("--secret-file", type=click.Path(dir_okay=False), metavar="FILE", help="Read the secret here."),
        click.option("--json", "as_json", is_flag=True, help="Print the launcher's answer."),
    ):
        function = decorate(function)
    return function


@command.command("status", short_help="Show the agents of a running launcher.")
@_asking
def status(url: str, secret_file: str | None, as_json: bool) -> None:
    """Show the agents of a running launcher. The secret comes from RUNNER_LAUNCHER_SECRET or `--secret-file`."""
    answer = _asked(url, secret_file, "GET", "/runner/status")
    if as_json:
        _print(answer)
        return
    with _understood(url):
        rows = [
            (
                printable(str(each["agentId"])),
                "refused" if each.get("credentialRefused") else printable(str(each["state"])),
                printable(str(each.get("cycleCount", 0))),
                printable(str(each.get("lastSuccessAt") or "-")),
                printable(str(each.get("lastError") or "")),
            )
            for each in answer["status"]["agents"]
        ]
    if not rows:
        click.echo("No agent is known here. Start one with `trunkline runner start --config FILE`.")
        return
    table.show(("AGENT", "STATE", "CYCLES", "LAST SUCCESS", "LAST ERROR"), rows)


@command.command("start", short_help="Have a running launcher run an agent.")
@click.argument("agent_id", required=False, metavar="[AGENT]")
@click.option("--config", "path", metavar="FILE", help="Its configuration, as JSON; `-`: standard input.")
@services.agent_option
@_asking
def start(
    agent_id: str | None, path: str | None, agent: str | None, url: str, secret_file: str | None, as_json: bool
) -> None:
    """Have a running launcher run an agent; returns after its first cycle, or when that takes long.

    One that the launcher knows is started again by its id, if a keyring has its secrets.

    \b
    Examples:
      trunkline runner start --config agent.json
      trunkline runner start --agent ada
      trunkline runner start c1234567890
    """
    if [path, agent, agent_id].count(None) != 2:
        raise click.UsageError("Say `--config FILE`, `--agent NAME`, or the id of an agent that the launcher knows.")
    if agent is not None:
        config = _configured(agent)
    else:
        config = {"agentId": agent_id} if path is None else read_config(path)
    answer = _asked(url, secret_file, "POST", "/runner/start", {"config": config})
    _print(answer) if as_json else show_started(url, answer)


def show_started(url: str, answer: dict[str, Any]) -> None:
    """Tell what a launcher says of an agent that it was to run."""
    with _understood(url):
        message, problem = str(answer["message"]), answer["status"].get("lastError")
    click.echo(printable(message))
    if problem:
        click.echo(f"Its first cycle failed: {printable(str(problem))}", err=True)


@command.command("stop", short_help="Have a running launcher stop an agent, or all.")
@click.argument("agent_id", required=False, metavar="[AGENT]")
@_asking
def stop(agent_id: str | None, url: str, secret_file: str | None, as_json: bool) -> None:
    """Have a running launcher stop an agent, or all of them."""
    answer = _asked(url, secret_file, "POST", "/runner/stop", {"agentId": agent_id} if agent_id else {})
    with _understood(url):
        _print(answer) if as_json else click.echo(printable(str(answer["message"])))


@command.command("approvals", short_help="List transactions that wait for a person.")
@_asking
def approvals(url: str, secret_file: str | None, as_json: bool) -> None:
    """List transactions that wait for a person."""
    answer = _asked(url, secret_file, "GET", "/runner/approvals")
    if as_json:
        _print(answer)
        return
    with _understood(url):
        waiting = [
            f"{visible(str(each['id']), keep='')} ({visible(str(each['agentId']), keep='')})\n"
            + visible(str(each.get("shown") or plain(preview("transaction", each))))
            for each in answer["approvals"]
        ]
    if not waiting:
        click.echo("Nothing waits for approval.")
        return
    click.echo("\n\n".join(waiting))
    click.echo("\n`trunkline runner approve ID` has one sent, `trunkline runner deny ID` does not.")


@command.command("log", short_help="Show what an agent said to its runner, and the answers.")
@click.argument("agent_id", required=False, metavar="[AGENT]")
@click.option("--limit", type=click.IntRange(1, MOST_LOG), default=50, show_default=True, help="How many at most.")
@_asking
def log(agent_id: str | None, limit: int, url: str, secret_file: str | None, as_json: bool) -> None:
    """Show the newest entries of an agent's communication log, oldest first; without an AGENT, of the one that runs."""
    asked = urlencode({"limit": limit, **({"agentId": agent_id} if agent_id else {})})
    answer = _asked(url, secret_file, "GET", f"/runner/log?{asked}")
    if as_json:
        _print(answer)
        return
    with _understood(url):
        entries = [
            f"{visible(str(each.get('createdAt')), keep='')} {visible(str(each['direction']), keep='')} "
            f"{visible(', '.join(map(str, each.get('actionTypes') or ())), keep='')}\n"
            + indent(visible(_content(each.get("content"))), "  ", lambda _: True)
            for each in answer["entries"]
        ]
    click.echo("\n\n".join(entries) if entries else "The log is empty.")


def _content(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value).decode()


def _decision(name: str, approve: bool, help: str) -> None:
    @command.command(name, help=help, short_help=help)
    @click.argument("id", metavar="ID")
    @_asking
    def decide(id: str, url: str, secret_file: str | None, as_json: bool) -> None:
        answer = _asked(url, secret_file, "POST", "/runner/approve", {"id": id, "approve": approve})
        _print(answer) if as_json else click.echo("It is sent in the next cycle." if approve else "It is not sent.")


_decision("approve", True, "Let a transaction that waits be sent.")
_decision("deny", False, "Have a transaction that waits not sent.")


def _configured(name: str) -> Any:
    try:
        return services.configured_agent(name)[0]
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from error


def read_config(path: str) -> Any:
    """The JSON in a file, or the end of the command."""
    try:
        with click.open_file(path, "rb") as file:
            return jsontext.loads(file.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise click.ClickException(f"The configuration `{path}` cannot be read: {reason}.") from None


def _origin(value: str) -> str:
    """An origin as browsers send it; never `*`, and never `null`, which any page can be."""
    found = addresses.origin(value)
    if found is None:
        raise ConfigError(f"`--allow-origin`: `{value}` is not an origin.", hint="Say `https://HOST[:PORT]`.")
    return found


def launcher_secret(secret_file: str | None) -> str:
    """What a launcher is told by its callers, from where it is said; or the end of the command."""
    return _secret(None, secret_file, _settled({}), f"Set {SECRET_VARIABLE}, or say `--secret-file`.")


def _secret(secret: str | None, secret_file: str | None, said: EffectiveConfig, ways: str) -> str:
    """What a launcher's callers must know. `ways` tells how to say it."""
    if secret is not None and secret_file is not None:
        raise click.UsageError("`--secret` and `--secret-file` say the same thing: use one of them.")
    if secret is None and secret_file is None:
        secret, secret_file = _said_elsewhere(said)
    try:
        found = callers_secret(secret, secret_file)
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from None
    if not found:
        raise click.ClickException(f"{SECRET_VARIABLE} is required: what callers must know to be let in. {ways}")
    return found


def _settled(flags: dict[str, Any]) -> EffectiveConfig:
    try:
        return services.settled("runner", flags)
    except ConfigError as error:
        raise click.ClickException(printable(str(error))) from error


def _said_elsewhere(said: EffectiveConfig) -> tuple[str | None, str | None]:
    """The secret, or the file that holds it, as a variable or a file says; a variable counts more."""
    for kind in ("variable", "file"):
        for key in ("secret", "secret_file"):
            if said.source(key).kind == kind:
                return (said[key], None) if key == "secret" else (None, said[key])
    return None, None


def _asked(url: str, secret_file: str | None, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """The launcher's answer, or the end of the command."""
    return asyncio.run(ask(url.rstrip("/"), launcher_secret(secret_file), method, path, body))


@contextmanager
def _understood(url: str) -> Iterator[None]:
    """Take an answer apart; one that is no launcher's ends the command."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise click.ClickException(
            f"What answers at `{url}` is not a launcher of this version ({type(error).__name__} in its answer). Look "
            "at the answer with `--json`, and check `--url`."
        ) from None


async def ask(url: str, secret: str, method: str, path: str, body: Any) -> dict[str, Any]:
    """A launcher's answer, or the end of the command."""
    from trunkline.base import http

    http.load()
    import httpx

    content = None if body is None else jsontext.dumps(body)
    headers = {"x-runner-secret": secret, "content-type": "application/json"}
    try:
        async with (
            asyncio.timeout(_ANSWER_SECONDS),
            http.client(secure=url.lower().startswith("https"), connect=3.0, read=_ANSWER_SECONDS) as client,
            client.stream(method, f"{url}{path}", headers=headers, content=content) as response,
        ):
            answer = jsontext.loads(await http.whole(response.aiter_bytes(), _MAX_ANSWER))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        raise click.ClickException(
            f"No launcher answers at `{url}` ({type(error).__name__}). Start one with `trunkline runner serve`."
        ) from None
    if response.status_code != httpx.codes.OK or not isinstance(answer, dict):
        said = answer.get("error") if isinstance(answer, dict) else None
        raise click.ClickException(printable(str(said or f"The launcher answered {response.status_code}.")))
    return answer


def _print(answer: Any) -> None:
    click.echo(jsontext.dumps(answer).decode())
