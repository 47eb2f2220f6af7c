"""`trunkline conform jsonstream-host ... -- CMD ...`: put a host, a program that talks to agents, to the test."""

from __future__ import annotations

import click

from trunkline.cli import conform_run
from trunkline.cli.finite import FiniteRange

#: Patience with a host, also with one that waits for an agent that does not come.
DEFAULT_TIMEOUT = 45.0

_EXAMPLE = "trunkline conform jsonstream-host -- my-host --agent {agent} --prompt {prompt}"
_LACKING = "a host that reads messages from standard input (without `{prompt}`)"


@click.command("jsonstream-host", short_help="Test a host that drives JSON stream agents.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@click.option("--as", "name", metavar="NAME",
              help="For a host that looks for its agent in PATH: the name, such as `aionrs`.")  # fmt: skip
@conform_run.options("jh.ready.*")
@click.option("--timeout", type=FiniteRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long a run of the host may take, also one that goes wrong.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def command(
    target: tuple[str, ...], name: str | None, how: conform_run.How, timeout: float, env: tuple[str, ...]
) -> None:
    """Test a host: a program that starts an agent and talks to it over the JSON stream.

    The kit plays the agent, which misbehaves on purpose. {agent} in the command stands for the path of its program;
    {prompt} for what the host is to say. Without {prompt} the host is told on its standard input, a message in each
    line, and ends after the answer to the last. It shows answers on standard output, decides on tools by itself, and
    exits with 0 when all went well.

    \b
    trunkline conform jsonstream-host -- my-host --agent {agent} --prompt {prompt}
    trunkline conform jsonstream-host --as aionrs -- my-host
    """
    from trunkline.conform.jsonstream_host.stage import AGENT, Stage, Target
    from trunkline.conform.jsonstream_host.suite import CONVERSES, SUITE
    from trunkline.wires.jsonstream.messages import PROTOCOL_VERSION

    if name is not None and (not name or "/" in name):
        raise click.UsageError(f"`--as {name}`: the name of a program, without a path.")

    def trial() -> conform_run.Trial[Stage]:
        argv = conform_run.argv(target, _EXAMPLE)
        host = Target(argv=argv, env=conform_run.environment(env), timeout=timeout, name=name)
        if name is None and not any(AGENT in word for word in host.argv):
            raise click.UsageError(f"A host's command must contain `{AGENT}`, or use `--as NAME`: {_EXAMPLE}")
        has = {CONVERSES} if host.converses else set()
        return conform_run.Trial(lambda check: Stage(host, check), host.argv, host.env, has, _LACKING)

    conform_run.conduct(SUITE, "jsonstream-host", PROTOCOL_VERSION, how, trial)
