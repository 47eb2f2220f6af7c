"""`trunkline conform WIRE ... -- CMD ...`: put anybody's implementation of a wire to the test.

Results go to standard output, progress to standard error.

Exit codes: 0 when every MUST passed (with `--strict`: every SHOULD, too), 1 when not, 2 for wrong usage, which a
command that cannot be started is, 130 after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.base import jsontext

if TYPE_CHECKING:
    from trunkline.conform.jsonstream.stage import Target
    from trunkline.conform.kit import Check, Result
    from trunkline.conform.report import Report

EXIT_DOES_NOT_CONFORM = 1
EXIT_INTERRUPTED = 130
#: As many as a small machine has cores: checks mostly wait.
DEFAULT_JOBS = 2
#: Patience with a model that is asked to do something.
DEFAULT_TIMEOUT = 30.0

_STYLES = {"passed": "green", "failed": "bold red", "not exercised": "yellow"}


@click.group("conform")
def command() -> None:
    """Put anybody's implementation of a wire to the test."""


@command.command("jsonstream", short_help="Put a program that speaks the JSON stream to the test.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@click.option("--only", multiple=True, metavar="GLOB", help="Only checks whose id matches, such as `js.stop.*`.")
@click.option("--list", "list_only", is_flag=True, help="List the checks; run nothing.")
@click.option("--show-prompts", is_flag=True, help="Print what the kit says to the agent, as TOML; run nothing.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE.toml", help="Say it in other words.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the conversations included.")
@click.option("--report", "reports", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Also write a report; FILE ends in .json or .md.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with 1 for a SHOULD that did not pass, too.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=DEFAULT_TIMEOUT, show_default=True,
              metavar="SECONDS", help="How long the agent may take to do what it is asked.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=DEFAULT_JOBS, show_default=True, metavar="N",
              help="Checks that run at the same time.")  # fmt: skip
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Run the command here. The default is a fresh directory for each check.")  # fmt: skip
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for the command's environment.")
def jsonstream(
    target: tuple[str, ...],
    only: tuple[str, ...],
    list_only: bool,
    show_prompts: bool,
    prompts: Path | None,
    as_json: bool,
    reports: tuple[Path, ...],
    strict: bool,
    timeout: float,
    jobs: int,
    cwd: Path | None,
    env: tuple[str, ...],
) -> None:
    """Put a program that speaks the JSON stream to the test, as a host would meet it.

    Each check starts the command anew, most with flags of the protocol behind its own, and asks it in plain words to
    use its tools: Write, Edit, Read and Bash. A requirement that could not be brought about is "not exercised", which
    counts as failed for a MUST.

    \b
    trunkline conform jsonstream -- my-agent --json-stream
    trunkline conform jsonstream --only 'js.stop.*' --report stop.md -- my-agent --json-stream
    """
    from trunkline.conform.jsonstream.catalogue import SUITE
    from trunkline.conform.jsonstream.stage import Target

    words = _prompts(prompts)
    checks = SUITE.select(only)
    if show_prompts:
        click.echo("".join(f"{name} = {jsontext.dumps(text).decode()}\n" for name, text in words.items()), nl=False)
        return
    if not checks:
        raise click.UsageError(f"No check matches {', '.join(only)}. `--list` shows them all.")
    if list_only:
        _list(checks, as_json)
        return
    writers = [(path, _writer(path)) for path in reports]
    subject = Target(
        argv=_argv(target),
        env=_environment(env),
        cwd=str(cwd.resolve()) if cwd else None,
        timeout=timeout,
        prompts=words,
    )
    # Checks that share a directory would find each other's files.
    report = _run(subject, checks, 1 if cwd else jobs)
    click.echo(report.as_json(), nl=False) if as_json else _show(report)
    for path, write in writers:
        path.write_text(write(report), encoding="utf-8", errors="backslashreplace")
    fine = report.is_flawless if strict else report.conforms
    sys.exit(0 if fine else EXIT_DOES_NOT_CONFORM)


def _run(target: Target, checks: Sequence[Check], jobs: int) -> Report:
    from trunkline.base.process import SpawnError
    from trunkline.base.redact import Redactor
    from trunkline.conform.jsonstream.catalogue import SUITE
    from trunkline.conform.jsonstream.stage import Stage
    from trunkline.conform.report import Report
    from trunkline.wires.jsonstream.messages import PROTOCOL_VERSION

    started, began = datetime.now(UTC), time.monotonic()
    progress = _Progress(len(checks))
    try:
        run = SUITE.run(checks, lambda name: Stage(target, name), jobs=jobs, on_result=progress.tell)
        results, records = asyncio.run(run)
    except SpawnError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    finally:
        progress.finish()
    return Report(
        wire="jsonstream",
        protocol=PROTOCOL_VERSION,
        argv=target.argv,
        started=started.isoformat(timespec="seconds"),
        seconds=time.monotonic() - began,
        results=tuple(results),
        records=tuple(records),
        redactor=Redactor.from_environ(os.environ | dict(target.env)),
        left_out=len(SUITE.select(())) - len(checks),
    )


class _Progress:
    """One line on standard error, on a terminal, while the checks run."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def tell(self, result: Result) -> None:
        self._done += 1
        if self._shown:
            click.echo(f"\r\x1b[K{self._done}/{self._total} {result.check.id}: {result.verdict}", nl=False, err=True)

    def finish(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def _prompts(path: Path | None) -> dict[str, str]:
    from trunkline.conform.jsonstream.prompts import PROMPTS, PromptError, load

    if path is None:
        return PROMPTS
    try:
        return load(path)
    except PromptError as error:
        raise click.UsageError(str(error)) from None


def _argv(target: Sequence[str]) -> tuple[str, ...]:
    """The command, with the files that it names made absolute: it runs in a directory of its own."""
    if not target:
        raise click.UsageError(
            "Name the command to test behind `--`: trunkline conform jsonstream -- my-agent --json-stream"
        )
    return tuple(os.path.abspath(word) if os.path.isfile(word) else word for word in target)


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not name or not sign:
            raise click.UsageError(f"`--env` needs NAME=VALUE, not `{pair}`.")
        found[name] = value
    return found


def _writer(path: Path) -> Callable[[Report], str]:
    writers: dict[str, Callable[[Report], str]] = {
        ".json": lambda report: report.as_json(),
        ".md": lambda report: report.as_markdown(),
    }
    if path.suffix not in writers:
        raise click.UsageError(f"`--report {path}`: the name must end in {' or '.join(writers)}.")
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"`--report {path}`: there is no directory `{path.parent}`.")
    return writers[path.suffix]


def _list(checks: Sequence[Check], as_json: bool) -> None:
    from trunkline.conform.report import check_data

    if as_json:
        click.echo(jsontext.dumps([check_data(check) for check in checks]).decode())
        return
    rows = [(check.id, check.tier, check.section, check.requirement) for check in checks]
    _table(("check", "tier", "section", "requirement"), rows)


def _show(report: Report) -> None:
    rows = [
        (result.check.id, result.check.tier, result.check.section, result.verdict, report.redactor.text(result.reason))
        for result in report.results
    ]
    _table(("check", "tier", "section", "result", "reason"), rows)
    click.echo(f"{shlex.join(report.redactor.data(report.argv))}\n{report.summary()}")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Columns for people; without a terminal, one line for each row and nothing else."""
    if not sys.stdout.isatty():
        widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            click.echo("  ".join([*cells, row[-1].replace("\n", " ")]).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(table)
