"""What the commands of `trunkline conform` share: running a kit, and telling what it found."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from trunkline.base import jsontext
from trunkline.base.values import Value

if TYPE_CHECKING:
    from trunkline.conform.kit import Check, Result, Stage, Suite
    from trunkline.conform.report import Report

    S = TypeVar("S", bound=Stage)

EXIT_DOES_NOT_CONFORM = 1
EXIT_INTERRUPTED = 130
#: As many as a small machine has cores: checks mostly wait.
DEFAULT_JOBS = 2

_STYLES = {"passed": "green", "failed": "bold red", "not exercised": "yellow"}

Writer = tuple[Path, Callable[["Report"], str]]


class About(Value):
    """What a report says of a run: the wire, its version, and the target."""

    wire: str
    protocol: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


def run(suite: Suite[S], checks: Sequence[Check], stage: Callable[[str], S], jobs: int, about: About) -> Report:
    """Run checks. A target that cannot be started at all is wrong usage; Ctrl-C ends with 130."""
    from trunkline.base.process import SpawnError
    from trunkline.base.redact import Redactor
    from trunkline.conform.report import Report

    started, began = datetime.now(UTC), time.monotonic()
    progress = _Progress(len(checks))
    try:
        results, records = asyncio.run(suite.run(checks, stage, jobs=jobs, on_result=progress.tell))
    except SpawnError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    finally:
        progress.finish()
    return Report(
        wire=about.wire,
        protocol=about.protocol,
        argv=about.argv,
        started=started.isoformat(timespec="seconds"),
        seconds=time.monotonic() - began,
        results=tuple(results),
        records=tuple(records),
        redactor=Redactor.from_environ(os.environ | dict(about.env)),
        left_out=len(suite.select(())) - len(checks),
    )


def finish(report: Report, writers: Sequence[Writer], as_json: bool, strict: bool) -> NoReturn:
    """Tell what was found, write the reports, and leave with the exit status that it deserves."""
    click.echo(report.as_json(), nl=False) if as_json else _show(report)
    for path, write in writers:
        path.write_text(write(report), encoding="utf-8", errors="backslashreplace")
    fine = report.is_flawless if strict else report.conforms
    sys.exit(0 if fine else EXIT_DOES_NOT_CONFORM)


def is_list(checks: Sequence[Check], only: Sequence[str], list_only: bool, as_json: bool) -> bool:
    """Whether only a list of the checks was asked for; it is shown then. No check at all is wrong usage."""
    if not checks:
        raise click.UsageError(f"No check matches {', '.join(only)}. `--list` shows them all.")
    if list_only:
        _list(checks, as_json)
    return list_only


def argv(target: Sequence[str], example: str) -> tuple[str, ...]:
    """The command, with the files that it names made absolute: it runs in a directory of its own."""
    if not target:
        raise click.UsageError(f"Name the command to test behind `--`: {example}")
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


def writers(paths: Sequence[Path]) -> list[Writer]:
    """The reports that were asked for, each with what makes it; before anything is run."""
    return [(path, _writer(path)) for path in paths]


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
