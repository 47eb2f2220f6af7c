"""`trunkline conform WIRE ... -- CMD ...`: put anybody's implementation of a wire to the test.

Results go to standard output, progress to standard error.

Exit codes: 0 when every MUST passed (with `--strict`: every SHOULD, too), 1 when not, 2 for wrong usage, which a
command that cannot be started is, 130 after Ctrl-C.
"""

from __future__ import annotations

from pathlib import Path

import click

from trunkline.cli import (
    conform_acp,
    conform_agentproc,
    conform_jsonstream_host,
    conform_mcp,
    conform_openai,
    conform_run,
    conform_sns,
    conform_tryll,
)
from trunkline.cli.finite import FiniteRange

#: Patience with a model that is asked to do something.
DEFAULT_TIMEOUT = 30.0


@click.group("conform")
def command() -> None:
    """Test any implementation of a wire."""


command.add_command(conform_acp.command)
command.add_command(conform_agentproc.command)
command.add_command(conform_jsonstream_host.command)
command.add_command(conform_mcp.command)
command.add_command(conform_openai.command)
command.add_command(conform_sns.command)
command.add_command(conform_tryll.command)


@command.command("jsonstream", short_help="Test a program that speaks the JSON stream.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@click.option("--show-prompts", is_flag=True, help="Print what the kit says to the agent, as TOML; run nothing.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE.toml", help="Say it in other words.")
@conform_run.options("js.stop.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the agent may take to do what it is asked.")  # fmt: skip
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Run the command here. The default is a fresh directory for each check.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def jsonstream(
    target: tuple[str, ...],
    show_prompts: bool,
    prompts: Path | None,
    how: conform_run.How,
    timeout: float,
    cwd: Path | None,
    env: tuple[str, ...],
) -> None:
    """Test a program that speaks the JSON stream, as a host would use it.

    Each check starts the command anew, most with flags of the protocol behind its own, and asks it in plain words to
    use its tools: Write, Edit, Read and Bash. A requirement that could not be brought about is "not exercised", which
    counts as failed for a MUST.

    \b
    trunkline conform jsonstream -- my-agent --json-stream
    trunkline conform jsonstream --only 'js.stop.*' --report stop.md -- my-agent --json-stream
    """
    from trunkline.conform.jsonstream.prompts import WORDING
    from trunkline.conform.jsonstream.stage import Stage, Target
    from trunkline.conform.jsonstream.suite import SUITE
    from trunkline.wires.jsonstream.messages import PROTOCOL_VERSION

    words = conform_run.prompts(WORDING, prompts)
    if show_prompts:
        conform_run.show_prompts(words)
        return

    def trial() -> conform_run.Trial[Stage]:
        subject = Target(
            argv=conform_run.argv(target, "trunkline conform jsonstream -- my-agent --json-stream"),
            env=conform_run.environment(env),
            cwd=str(cwd.resolve()) if cwd else None,
            timeout=timeout,
            prompts=words,
        )
        return conform_run.Trial(
            lambda name: Stage(subject, name), subject.argv, subject.env, is_shared=cwd is not None
        )

    conform_run.conduct(SUITE, "jsonstream", PROTOCOL_VERSION, how, trial)
