"""`trunkline graph run`: `trunkline chat` with a graph, in this process.

Exit codes are those of `trunkline chat`.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from trunkline.base.printable import printable_line
from trunkline.cli import chat, chat_options
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.graph_options import ENGINES, complete_graph, naming_models
from trunkline.cli.trace import refuse_to_replace
from trunkline.core.faults import Fault


@click.command("run", short_help="Talk to a graph, without a server.")
@click.argument("file", type=click.Path(), shell_complete=complete_graph)
@chat_options.asking
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="mock",
    show_default=True,
    help="`mock` needs no model and repeats the message; `local` runs real models, downloaded on first use.",
)
@naming_models
@chat_options.keeping
@chat_options.approving
@chat_options.tracing_unless
def command(
    file: str, texts: tuple[str, ...], as_json: bool, as_jsonl: bool, engine: str, models_dir: str | None, **given: Any
) -> None:
    """Talk to a graph in this process: answers as they come, events of nodes, and the path through the graph.

    It is `trunkline chat graph:FILE` with an engine that needs no model: keys, commands and flags are the same.
    Files that the graph names are looked for beside it.

    Without a terminal the graph may call all of its own tools, which nobody carries out, and nothing is kept unless
    `--session-id` or `--resume` say so.

    An agent that the graph names (`agent:NAME`) works in this folder, and may do nothing that needs to be allowed. One
    that runs a program or a module of its own has to be named by `--model`.

    \b
    Examples:
      trunkline graph run npc.yaml
      trunkline graph run npc.yaml -m "Who are you?" --record turn.json
      trunkline graph run npc.yaml -m "My name is Ann." -m "What is my name?"
      trunkline graph run npc.yaml --engine local --model smollm2-135m
      trunkline graph run speaker.yaml --engine local -m "Good morning" --sound answer.wav
    """
    from trunkline.agents.graph.conversation import GraphFileAgent
    from trunkline.agents.graph.spoken import speaks
    from trunkline.wires.tryll.errors import described

    refuse_to_replace(given["record"], file)
    refuse_to_replace(given["sound"], file)
    mock = engine == "mock"
    try:
        agent = GraphFileAgent.load(file, mock=mock, describe=described, models_dir=models_dir)
    except Fault as error:
        raise click.ClickException(printable_line(str(error))) from error
    alone = bool(texts) or not sys.stdin.isatty()
    # Who sits in front of it is asked; nobody else can be.
    allow = ",".join(filter(None, (given.pop("allow"), *(agent.tools if alone else ()))))
    if alone and given["session_id"] is None and given["resume"] is None:
        given["no_session"] = True
    if not speaks(agent.file.graph):
        why_mute = "the graph has no node that speaks."
    elif mock:
        why_mute = "the mock engine has no voice. `--engine local` has."
    else:
        why_mute = "no node had anything to say aloud."
    options = ChatOptions(
        given=agent,
        command=("trunkline", "graph", "run", file, *(() if mock else ("--engine", engine)), *_folder(models_dir)),
        allow=allow,
        **given,
    )
    chat.start(options, texts, as_json=as_json, as_jsonl=as_jsonl, why_mute=why_mute)


def _folder(models_dir: str | None) -> tuple[str, ...]:
    """What names the folder again, when the command is to be repeated."""
    return () if models_dir is None else ("--models-dir", models_dir)
