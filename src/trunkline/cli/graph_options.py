"""What the commands for graphs have in common: which graph, and with which models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.cli.chat_options import all_of
from trunkline.cli.value_completion import models
from trunkline.models.catalog_entry import LLM

ENGINES = ("mock", "local")


def complete_graph(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The graphs that come along, and files."""
    from trunkline.agents.graph import bundled

    names = [CompletionItem(name) for name in bundled.names() if name.startswith(incomplete)]
    # The file first: bash forgets what it heard before a file.
    return [CompletionItem(incomplete, type="file"), *names]


naming_models: Callable[[Callable[..., Any]], Callable[..., Any]] = all_of(
    click.option(
        "--model",
        metavar="NAME",
        help="The model for nodes that name none (default: the file's); with `mock`, no node needs one.",
        shell_complete=models(LLM, "mock"),
    ),
    click.option(
        "--models-dir",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="A folder with a `models.json`, or with GGUF files: more models that the graph may name.",
    ),
)
