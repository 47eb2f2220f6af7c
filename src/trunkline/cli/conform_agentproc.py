"""`trunkline conform agentproc [--bridge] ... -- CMD ...`: put an AgentProc agent, or a bridge, to the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.cli import conform_run
from trunkline.wires.agentproc.messages import DIALECTS

#: Patience with a model that is asked to do something.
DEFAULT_TIMEOUT = 30.0
#: Patience with a turn of a bridge, behind which no model is.
DEFAULT_BRIDGE_TIMEOUT = 15.0

_AGENT_EXAMPLE = "trunkline conform agentproc -- ./my_agent.py"
_BRIDGE_EXAMPLE = (
    "trunkline conform agentproc --bridge -- my-bridge --profile {profile} --message {message} --session {session}"
)


@click.command("agentproc", short_help="Put an AgentProc agent or bridge to the test.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@click.option("--bridge", is_flag=True, help="The command is a bridge, with places such as {profile} and {message}.")
@click.option("--protocol", type=click.Choice(DIALECTS), help="What the agent speaks; 0.1 unless given.")
@click.option("--output", type=click.Choice(["auto", "text", "json"]),
              help="How a bridge tells: text, or an object on the last line. Found out unless given.")  # fmt: skip
@click.option("--only", multiple=True, metavar="GLOB", help="Only checks whose id matches, such as `ap.session.*`.")
@click.option("--list", "list_only", is_flag=True, help="List the checks; run nothing.")
@click.option("--show-prompts", is_flag=True, help="Print what the kit says to an agent, as TOML; run nothing.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE.toml", help="Say it in other words.")
@click.option("--prompt", "words", multiple=True, metavar="NAME=TEXT", help="Say one thing in other words.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the conversations included.")
@click.option("--report", "reports", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Also write a report; FILE ends in .json or .md.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with 1 for a SHOULD that did not pass, too.")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS",
              help=f"How long a turn may take: {DEFAULT_TIMEOUT:g} for an agent, {DEFAULT_BRIDGE_TIMEOUT:g} for a "
              "bridge.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=conform_run.DEFAULT_JOBS, show_default=True, metavar="N",
              help="Checks that run at the same time.")  # fmt: skip
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Run an agent here. The default is a fresh directory for each check.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def command(
    target: tuple[str, ...],
    bridge: bool,
    protocol: str | None,
    output: str | None,
    only: tuple[str, ...],
    list_only: bool,
    show_prompts: bool,
    prompts: Path | None,
    words: tuple[str, ...],
    as_json: bool,
    reports: tuple[Path, ...],
    strict: bool,
    timeout: float | None,
    jobs: int,
    cwd: Path | None,
    env: tuple[str, ...],
) -> None:
    """Put an AgentProc agent to the test, as a bridge would meet it; with --bridge, a bridge, as its agents would.

    An agent is started anew for each turn, with the turn's variables, and asked for something in plain words. A bridge
    is started anew for each turn, too: {profile} {message} {session} in its command, and {session_name} {from} {image}
    {file} if it has them, stand for what the kit puts there. Behind the profile is an agent of the kit's own.

    \b
    trunkline conform agentproc -- ./my_agent.py
    trunkline conform agentproc --protocol 0.4 -- node my-agent.js
    trunkline conform agentproc --bridge -- my-bridge --profile {profile} --message {message} --session {session}
    """
    if bridge:
        _refuse("--bridge", {"--protocol": protocol, "--prompts": prompts, "--prompt": words, "--cwd": cwd})
    else:
        _refuse("an agent", {"--output": output})
    said = _prompts(prompts, words)
    if show_prompts:
        click.echo("".join(f"{name} = {jsontext.dumps(text).decode()}\n" for name, text in said.items()), nl=False)
        return
    run = _bridge if bridge else _agent
    run(_Asked(target, protocol or "0.1", output or "auto", only, list_only, said, as_json, reports, strict, timeout,
               jobs, cwd, conform_run.environment(env)))  # fmt: skip


class _Asked(Value):
    """What was typed."""

    target: tuple[str, ...]
    protocol: str
    output: str
    only: tuple[str, ...]
    list_only: bool
    prompts: Mapping[str, str]
    as_json: bool
    reports: tuple[Path, ...]
    strict: bool
    timeout: float | None
    jobs: int
    cwd: Path | None
    env: Mapping[str, str]


def _agent(asked: _Asked) -> None:
    from trunkline.conform.agentproc.agent.catalogue import SUITES
    from trunkline.conform.agentproc.agent.stage import Stage, Target
    from trunkline.wires.agentproc.messages import Dialect

    protocol = cast(Dialect, asked.protocol)
    suite = SUITES[protocol]
    checks = suite.select(asked.only)
    if conform_run.is_list(checks, asked.only, asked.list_only, asked.as_json):
        return
    writers = conform_run.writers(asked.reports)
    target = Target(
        argv=conform_run.argv(asked.target, _AGENT_EXAMPLE),
        env=asked.env,
        protocol=protocol,
        cwd=str(asked.cwd.resolve()) if asked.cwd else None,
        timeout=asked.timeout or DEFAULT_TIMEOUT,
        prompts=asked.prompts,
    )
    about = conform_run.About("agentproc", protocol, target.argv, target.env)
    # Checks that share a directory would find each other's files.
    jobs = 1 if asked.cwd else asked.jobs
    report = conform_run.run(suite, checks, lambda name: Stage(target, name), jobs, about)
    conform_run.finish(report, writers, asked.as_json, asked.strict)


def _bridge(asked: _Asked) -> None:
    from trunkline.conform.agentproc.bridge.catalogue import SUITE
    from trunkline.conform.agentproc.bridge.seen import Output
    from trunkline.conform.agentproc.bridge.stage import Stage, Target

    checks = SUITE.select(asked.only)
    if conform_run.is_list(checks, asked.only, asked.list_only, asked.as_json):
        return
    writers = conform_run.writers(asked.reports)
    target = Target(
        argv=conform_run.argv(asked.target, _BRIDGE_EXAMPLE),
        env=asked.env,
        output=cast(Output, asked.output),
        timeout=asked.timeout or DEFAULT_BRIDGE_TIMEOUT,
    )
    for place in ("{profile}", "{message}"):
        if not any(place in word for word in target.argv):
            raise click.UsageError(f"The command of a bridge must hold `{place}`: {_BRIDGE_EXAMPLE}")
    about = conform_run.About("agentproc bridge", asked.protocol, target.argv, target.env)
    report = conform_run.run(SUITE, checks, lambda name: Stage(target, name), asked.jobs, about)
    conform_run.finish(report, writers, asked.as_json, asked.strict)


def _prompts(path: Path | None, words: tuple[str, ...]) -> dict[str, str]:
    from trunkline.conform.agentproc.agent.prompts import PROMPTS, PromptError, load, with_words

    try:
        return with_words(PROMPTS if path is None else load(path), words)
    except PromptError as error:
        raise click.UsageError(str(error)) from None


def _refuse(what: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value:
            raise click.UsageError(f"`{option}` means nothing for {what}; leave it out.")
