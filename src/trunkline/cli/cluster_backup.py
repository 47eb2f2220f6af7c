"""`trunkline cluster backup` and `restore`: both stores of a cluster in one directory.

Exit codes: 0, or 1 when it did not work, or 130 when it was stopped by Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trunkline.base import exchange_home, jsontext
from trunkline.base.printable import printable_line
from trunkline.base.sizes import size_text
from trunkline.cli.explained import explained

if TYPE_CHECKING:
    from trunkline.exchange.cluster.backup import ClusterBackup, Part, Report
    from trunkline.exchange.settings import ClusterSettings

EXIT_STOPPED = 130
#: Without a terminal, a line for each so many bytes.
PLAIN_BYTES = 100_000_000

_directory = click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
_config = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    default=exchange_home.FILE,
    help="The file of one of the exchanges (default: `trunkline.toml` here).",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.command("backup")
@_directory
@_config
@_json
@explained
def backup(directory: str, config: str, as_json: bool) -> None:
    """Write the sessions and rows of the cluster into the new directory DIR.

    The exchanges may be running. What they do meanwhile may be missing: turns that are in progress are `unknown` after
    a restore. A directory without `manifest.json` is not a backup. PostgreSQL's `pg_dump` must be installed.

    \b
    Examples:
      trunkline cluster backup /srv/backup/monday
      trunkline cluster backup /srv/backup/monday --config /etc/trunkline/trunkline.toml --json
    """
    settings = _settings(config)
    from trunkline.exchange.cluster.backup import back_up

    try:
        with _progress("saving") as report:
            made = asyncio.run(back_up(settings, directory, report))
    except KeyboardInterrupt:
        click.echo("Stopped. There is no backup.", err=True)
        sys.exit(EXIT_STOPPED)
    _tell(made, directory, as_json, "Saved")


@click.command("restore")
@_directory
@_config
@click.option("--force", is_flag=True, help="Replace the sessions that the cluster has.")
@_json
@explained
def restore(directory: str, config: str, force: bool, as_json: bool) -> None:
    """Put the backup in DIR in place of the sessions and rows of the cluster. Stop all exchanges first.

    The backup is checked before anything changes. Turns that were in progress when it was made end `unknown`, and
    nothing is run again. PostgreSQL's `pg_restore` must be installed.

    \b
    Examples:
      trunkline cluster restore /srv/backup/monday
      trunkline cluster restore /srv/backup/monday --force
    """
    settings = _settings(config)
    from trunkline.exchange.cluster import backup as backups

    try:
        with _progress("restoring") as report:
            found = asyncio.run(backups.restore(settings, directory, force=force, report=report))
    except KeyboardInterrupt:
        click.echo(
            "Stopped. Start no exchange before you have run this again with `--force`: the cluster may be incomplete.",
            err=True,
        )
        sys.exit(EXIT_STOPPED)
    _tell(found, directory, as_json, "Restored")


def _settings(path: str) -> ClusterSettings:
    from trunkline.core.faults import ConfigError
    from trunkline.exchange import config

    # Nothing else of the file is used: whoever saves a cluster need not have the tokens of its people.
    settings = config.read_cluster(path)
    if settings is None:
        raise ConfigError(
            f"The exchange of `{path}` is not one of a cluster.", hint="The section `[cluster]` makes it one."
        )
    return settings


def _tell(backup: ClusterBackup, directory: str, as_json: bool, verb: str) -> None:
    if as_json:
        told = {
            "directory": directory,
            "cluster": backup.cluster,
            "made_at": backup.made_at,
            "rows_bytes": backup.rows.bytes,
            "events_bytes": backup.events.bytes,
            "messages": backup.snapshot.messages,
        }
        click.echo(jsontext.dumps(told))
        return
    rows, events = size_text(backup.rows.bytes), size_text(backup.events.bytes)
    click.echo(
        f"{verb} the cluster `{backup.cluster}` as of {backup.made_at}: {rows} of rows, {events} of events, in "
        f"`{printable_line(directory)}`."
    )


@contextmanager
def _progress(doing: str) -> Iterator[Report]:
    """A bar on a terminal, lines elsewhere; both on standard error."""
    if not sys.stderr.isatty():
        yield _Lines(doing)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[Part, TaskID] = {}

        def show(part: Part, done: int, total: int) -> None:
            if part not in tasks:
                # One for each part: a task whose total is known cannot have an unknown one afterwards.
                tasks[part] = bar.add_task(f"{doing} {part}", total=total or None)
            # How large a snapshot will be is a guess.
            bar.update(tasks[part], completed=done, total=max(done, total) if total else None)

        yield show


class _Lines:
    """Progress for those who read a log: a line for each step, and for much of it several."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._last: tuple[str, int] | None = None

    def __call__(self, part: Part, done: int, total: int) -> None:
        step = (part, done // PLAIN_BYTES)
        if step != self._last:
            self._last = step
            more = f", {size_text(done)} so far" if step[1] else ""
            click.echo(f"{self._doing} {part}{more}", err=True)
