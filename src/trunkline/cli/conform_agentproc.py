"""`trunkline conform agentproc [--bridge] ... -- CMD ...`: put an AgentProc agent, or a bridge, to the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from trunkline.base.values import Value
from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange
from trunkline.wires.agentproc.messages import DIALECTS

#: Patience with a model that is asked to do something.
DEFAULT_TIMEOUT = 30.0
#: Patience with a turn of a bridge, behind which no model is.
DEFAULT_BRIDGE_TIMEOUT = 15.0

_AGENT_EXAMPLE = "trunkline conform agentproc -- ./my_agent.py"
_BRIDGE_EXAMPLE = (
    "trunkline conform agentproc --bridge -- my-bridge --profile {profile} --message {message} --session {session}"
)


@click.command("agentproc", short_help="Test an AgentProc agent or bridge.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@click.option("--bridge", is_flag=True, help="The command is a bridge, with places such as {profile} and {message}.")
@click.option("--protocol", type=click.Choice(DIALECTS), help="What the agent speaks; 0.1 unless given.")
@click.option("--output", type=click.Choice(["auto", "text", "json"]),
              help="How a bridge reports: text, or an object on the last line. Detected by default.")  # fmt: skip
@click.option("--show-prompts", is_flag=True, help="Print what the kit says to an agent, as TOML; run nothing.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE.toml", help="Say it in other words.")
@click.option("--prompt", "words", multiple=True, metavar="NAME=TEXT", help="Say one thing in other words.")
@conform_run.options("ap.session.*")
@click.option("--timeout", type=FiniteRange(min=0.1), metavar="SECONDS",
              help=f"How long a turn may take: {DEFAULT_TIMEOUT:g} for an agent, {DEFAULT_BRIDGE_TIMEOUT:g} for a "
              "bridge.")  # fmt: skip
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Run an agent here. The default is a fresh directory for each check.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def command(
    target: tuple[str, ...],
    bridge: bool,
    protocol: str | None,
    output: str | None,
    how: conform_run.How,
    show_prompts: bool,
    prompts: Path | None,
    words: tuple[str, ...],
    timeout: float | None,
    cwd: Path | None,
    env: tuple[str, ...],
) -> None:
    """Test an AgentProc agent, as a bridge would use it; with --bridge, test a bridge, as its agents would see it.

    An agent is started anew for each turn, with the turn's variables, and asked for something in plain words. A bridge
    is started anew for each turn, too: {profile} {message} {session} in its command, and {session_name} {from} {image}
    {file} if it has them, stand for what the kit puts there. Behind the profile is an agent of the kit's own.

    \b
    trunkline conform agentproc -- ./my_agent.py
    trunkline conform agentproc --protocol 0.4 -- node my-agent.js
    trunkline conform agentproc --bridge -- my-bridge --profile {profile} --message {message} --session {session}
    """
    from trunkline.conform.agentproc.agent.prompts import WORDING

    if bridge:
        _refuse("--bridge", {"--protocol": protocol, "--prompts": prompts, "--prompt": words, "--cwd": cwd})
    else:
        _refuse("an agent", {"--output": output})
    said = conform_run.prompts(WORDING, prompts, words)
    if show_prompts:
        conform_run.show_prompts(said)
        return
    run = _bridge if bridge else _agent
    run(_Asked(target, protocol or "0.1", output or "auto", said, how, timeout, cwd, conform_run.environment(env)))


class _Asked(Value):
    """What was typed."""

    target: tuple[str, ...]
    protocol: str
    output: str
    prompts: Mapping[str, str]
    how: conform_run.How
    timeout: float | None
    cwd: Path | None
    env: Mapping[str, str]


def _agent(asked: _Asked) -> None:
    from trunkline.conform.agentproc.agent.stage import Stage, Target
    from trunkline.conform.agentproc.agent.suite import SUITES
    from trunkline.wires.agentproc.messages import Dialect

    protocol = cast(Dialect, asked.protocol)

    def trial() -> conform_run.Trial[Stage]:
        target = Target(
            argv=conform_run.argv(asked.target, _AGENT_EXAMPLE),
            env=asked.env,
            protocol=protocol,
            cwd=str(asked.cwd.resolve()) if asked.cwd else None,
            timeout=asked.timeout or DEFAULT_TIMEOUT,
            prompts=asked.prompts,
        )
        return conform_run.Trial(
            lambda name: Stage(target, name), target.argv, target.env, is_shared=asked.cwd is not None
        )

    conform_run.conduct(SUITES[protocol], "agentproc", protocol, asked.how, trial)


def _bridge(asked: _Asked) -> None:
    from trunkline.conform.agentproc.bridge.seen import Output
    from trunkline.conform.agentproc.bridge.stage import Stage, Target
    from trunkline.conform.agentproc.bridge.suite import SUITE

    def trial() -> conform_run.Trial[Stage]:
        target = Target(
            argv=conform_run.argv(asked.target, _BRIDGE_EXAMPLE),
            env=asked.env,
            output=cast(Output, asked.output),
            timeout=asked.timeout or DEFAULT_BRIDGE_TIMEOUT,
        )
        for place in ("{profile}", "{message}"):
            if not any(place in word for word in target.argv):
                raise click.UsageError(f"The command of a bridge must contain `{place}`: {_BRIDGE_EXAMPLE}")
        return conform_run.Trial(lambda name: Stage(target, name), target.argv, target.env)

    conform_run.conduct(SUITE, "agentproc bridge", asked.protocol, asked.how, trial)


def _refuse(what: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value:
            raise click.UsageError(f"`{option}` has no meaning for {what}; leave it out.")
