"""`trunkline conform acp ... -- CMD ...`: put an agent that speaks the Agent Client Protocol to the test."""

from __future__ import annotations

from pathlib import Path

import click

from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange

#: Patience with a model that is asked to do something.
DEFAULT_TIMEOUT = 30.0

_EXAMPLE = "trunkline conform acp -- my-agent --acp"


@click.command("acp", short_help="Test an agent that speaks the Agent Client Protocol.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@click.option("--show-prompts", is_flag=True, help="Print what the kit says to the agent, as TOML; run nothing.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE.toml", help="Say it in other words.")
@click.option("--prompt", "words", multiple=True, metavar="NAME=TEXT", help="Say one thing in other words.")
@conform_run.options("acp.cancel.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the agent may take to do what it is asked.")  # fmt: skip
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Run the command here. The default is a fresh directory for each check.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def command(
    target: tuple[str, ...],
    show_prompts: bool,
    prompts: Path | None,
    words: tuple[str, ...],
    how: conform_run.How,
    timeout: float,
    cwd: Path | None,
    env: tuple[str, ...],
) -> None:
    """Test an agent that speaks the Agent Client Protocol (ACP) on standard input and output, as an editor would.

    Each check starts the command anew and asks it for something in plain words; `write` makes it use a tool for which
    it should ask for a permission. What the agent does not offer, or cannot be made to do, is "not applicable".

    \b
    trunkline conform acp -- my-agent --acp
    trunkline conform acp --prompt 'write=Create conform-write.txt' --only 'acp.permission.*' -- my-agent --acp
    """
    from trunkline.conform.acp.prompts import WORDING
    from trunkline.conform.acp.stage import Stage, Target
    from trunkline.conform.acp.suite import SUITE
    from trunkline.conform.acp.vocabulary import PROTOCOL_VERSION

    said = conform_run.prompts(WORDING, prompts, words)
    if show_prompts:
        conform_run.show_prompts(said)
        return

    def trial() -> conform_run.Trial[Stage]:
        subject = Target(
            argv=conform_run.argv(target, _EXAMPLE),
            env=conform_run.environment(env),
            cwd=str(cwd.resolve()) if cwd else None,
            timeout=timeout,
            prompts=said,
        )
        return conform_run.Trial(
            lambda name: Stage(subject, name), subject.argv, subject.env, is_shared=cwd is not None
        )

    conform_run.conduct(SUITE, "acp", str(PROTOCOL_VERSION), how, trial)
