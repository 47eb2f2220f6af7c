"""What the commands of `trunkline conform` share: running a kit, and telling what it found."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable, printable_line
from trunkline.base.values import Value
from trunkline.cli import table

if TYPE_CHECKING:
    from trunkline.conform.kit import Check, CheckResult, Suite
    from trunkline.conform.report import Report
    from trunkline.conform.stage import Stage
    from trunkline.conform.wording import Wording

S = TypeVar("S", bound="Stage")

EXIT_DOES_NOT_CONFORM = 1
#: Nothing is known of the target: neither that it conforms nor that it does not.
EXIT_NOT_RUN = 2
EXIT_INTERRUPTED = 130
#: As many as a small machine has cores: checks mostly wait.
DEFAULT_JOBS = 2

_STYLES = {"passed": "green", "failed": "bold red", "not exercised": "yellow", "not applicable": "dim"}


class How(Value):
    """What the options say that every kit has."""

    only: tuple[str, ...]
    list_only: bool
    as_json: bool
    reports: tuple[Path, ...]
    strict: bool
    jobs: int


def options(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that every kit has: the command gets them as one argument, `how`. `example` is one of `--only`."""
    shared = (
        click.option("--only", multiple=True, metavar="GLOB",
                     help=f"Only checks whose id matches, such as `{example}`."),
        click.option("--list", "list_only", is_flag=True, help="List the checks; run nothing."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the conversations included."),
        click.option("--report", "reports", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
                     help="Also write a report; FILE ends in .json or .md."),
        click.option("--strict", is_flag=True, help="Exit with 1 also if a SHOULD did not pass."),
        click.option("--jobs", type=click.IntRange(min=1), default=DEFAULT_JOBS, show_default=True, metavar="N",
                     help="Checks that run at the same time."),
    )  # fmt: skip

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_how(**given: Any) -> None:
            command(how=How(**{name: given.pop(name) for name in How.__fields__}), **given)

        # Each goes in front of those that were added before it.
        for option in reversed(shared):
            with_how = option(with_how)
        return with_how

    return decorate


class Trial(NamedTuple, Generic[S]):
    """Against what the checks of a kit are run. `stage` makes the place for the check of that name."""

    stage: Callable[[str], S]
    argv: tuple[str, ...]
    """What a report calls it."""
    env: Mapping[str, str] = {}
    has: AbstractSet[str] = frozenset()
    """What there is for checks beyond what every one has."""
    lacking: str = ""
    """What to say when there are no checks that this is enough for."""
    is_shared: bool = False
    """Checks would find each other's files: one at a time."""
    secrets: Callable[[], Iterable[str]] = tuple
    """What a report must not show, known when all is over."""
    announce: Callable[[], None] = lambda: None
    """Says what the run will do, before it does; raises `UsageError` where that is not agreed to."""


def conduct(suite: Suite[S], wire: str, protocol: str, how: How, prepare: Callable[[], Trial[S]]) -> None:
    """All that a kit's command does: choose the checks, list them or run them, and tell what was found.

    `prepare` reads the rest of what was typed; it is asked after the list of checks, which needs nothing else.
    """
    checks = suite.select(how.only)
    if not checks:
        raise click.UsageError(f"No check matches {', '.join(how.only)}. `--list` shows them all.")
    if how.list_only:
        _list(checks, how.as_json)
        return
    writers = [(path, _writer(path)) for path in how.reports]
    trial = prepare()
    checks = suite.playable(checks, trial.has)
    if not checks:
        raise click.UsageError(f"These checks need more than was given: {trial.lacking}.")
    trial.announce()
    report = _run(suite, checks, trial, wire, protocol, 1 if trial.is_shared else how.jobs)
    report.redactor.learn(trial.secrets())
    click.echo(report.as_json(), nl=False) if how.as_json else _show(report)
    for path, write in writers:
        path.write_text(write(report), encoding="utf-8", errors="backslashreplace")
    fine = report.is_flawless if how.strict else report.conforms
    sys.exit(0 if fine else EXIT_DOES_NOT_CONFORM)


def _run(suite: Suite[S], checks: Sequence[Check], trial: Trial[S], wire: str, protocol: str, jobs: int) -> Report:
    """Run checks. A target that cannot be started or reached at all ends with 2, Ctrl-C with 130."""
    from trunkline.base.process import SpawnError
    from trunkline.base.redact import Redactor
    from trunkline.conform.report import Report

    started, began = datetime.now(UTC), time.monotonic()
    progress = _Progress(len(checks))
    try:
        results, records = asyncio.run(suite.run(checks, trial.stage, jobs=jobs, on_result=progress.tell))
    except SpawnError as error:
        raise _NotRun(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    finally:
        progress.finish()
    return Report(
        wire=wire,
        protocol=protocol,
        argv=trial.argv,
        started=started.isoformat(timespec="seconds"),
        seconds=time.monotonic() - began,
        results=tuple(results),
        records=tuple(records),
        redactor=Redactor.from_environ(os.environ | dict(trial.env)),
        left_out=len(suite.select(())) - len(checks),
    )


class _NotRun(click.ClickException):
    """Nothing could be started or reached. What was typed is right, so that its usage would explain nothing."""

    exit_code = EXIT_NOT_RUN


def argv(target: Sequence[str], example: str) -> tuple[str, ...]:
    """The command, with the files that it names made absolute: it runs in a directory of its own."""
    if not target:
        raise click.UsageError(f"Name the command to test after `--`: {example}")
    return tuple(os.path.abspath(word) if os.path.isfile(word) else word for word in target)


def environment(pairs: Sequence[str]) -> dict[str, str]:
    """The variables that were given as `NAME=VALUE`."""
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not name or not sign:
            raise click.UsageError(f"`--env` needs NAME=VALUE, not `{pair}`.")
        found[name] = value
    return found


def prompts(wording: Wording, path: Path | None, words: Sequence[str] = ()) -> dict[str, str]:
    """What a kit says: its own words, those of a file, and those that were given as `NAME=TEXT`."""
    from trunkline.conform.wording import PromptError

    try:
        return wording.with_words(wording.prompts if path is None else wording.load(path), words)
    except PromptError as error:
        raise click.UsageError(str(error)) from None


def show_prompts(said: Mapping[str, str]) -> None:
    """Print them as TOML, for a file to begin with."""
    click.echo("".join(f"{name} = {jsontext.dumps(text).decode()}\n" for name, text in said.items()), nl=False)


def _writer(path: Path) -> Callable[[Report], str]:
    """What makes the report for a file; known before anything is run."""
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
    clean = report.redactor.text
    rows = [
        (result.check.id, result.check.tier, result.check.section, result.verdict, printable(clean(result.reason)))
        for result in report.results
    ]
    _table(("check", "tier", "section", "result", "reason"), rows)
    click.echo(f"{printable_line(shlex.join(report.redactor.data(report.argv)))}\n{report.summary()}")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Columns for people; without a terminal, one line for each row and nothing else."""
    if not sys.stdout.isatty():
        first, *others = [[cell.replace("\n", " ") for cell in row] for row in rows]
        table.show(first, others)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(*head, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        shown.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(shown)


class _Progress:
    """One line on standard error, on a terminal, while the checks run."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def tell(self, result: CheckResult) -> None:
        self._done += 1
        if self._shown:
            click.echo(f"\r\x1b[K{self._done}/{self._total} {result.check.id}: {result.verdict}", nl=False, err=True)

    def finish(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
