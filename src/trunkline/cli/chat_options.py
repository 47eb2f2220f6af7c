"""The flags of every command that talks to an agent: how one asks, what is kept, what may be done, and what is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from trunkline.base.vocabulary import DEFAULT_ALLOW, MODES
from trunkline.cli.opening import LATEST

F = TypeVar("F", bound=Callable[..., Any])


def option(name: str, **how: Any) -> Callable[[F], F]:
    """An option that `trunkline agent` has, too, with the variable that stands for it."""
    return click.option(f"--{name}", envvar=f"TRUNKLINE_{name.upper().replace('-', '_')}", **how)


def _complete_session(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    if context.params.get("attach"):
        from trunkline.cli import value_completion

        return value_completion.sessions(context, parameter, incomplete)
    from trunkline.cli.shelf import completions

    return [CompletionItem(name) for name in completions(incomplete)]


def all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def decorate(command: F) -> F:
        for each in reversed(options):
            command = each(command)
        return command

    return decorate


asking: Callable[[Callable[..., Any]], Callable[..., Any]] = all_of(
    click.option(
        "-p",
        "--print",
        "-m",
        "--message",
        "texts",
        metavar="TEXT",
        multiple=True,
        help="Ask this, print the answer, and end. Repeatable: each is a message of one conversation.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Without a terminal: a JSON object for each answer."),
    click.option("--jsonl", "as_jsonl", is_flag=True, help="Without a terminal: every event as a line of JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answer, and what went wrong."),
    click.option(
        "--lines",
        is_flag=True,
        help="Each line that is piped in is a message of one conversation, answered as it comes.",
    ),
)

keeping: Callable[[Callable[..., Any]], Callable[..., Any]] = all_of(
    option("workspace", metavar="PATH", help="The directory to work in; the default is the current one."),
    click.option("--session-id", metavar="ID", help="Begin a session under this id; an error if it exists."),
    click.option(
        "--resume",
        metavar="[ID]",
        is_flag=False,
        flag_value=LATEST,
        shell_complete=_complete_session,
        help="Continue a session; without an id, or with `latest`, the one used last in this workspace.",
    ),
    click.option(
        "--anyway",
        is_flag=True,
        help="With --resume: also from another directory, and, in a new session, with another agent.",
    ),
    option("no-session", is_flag=True, help="Keep nothing."),
)

approving: Callable[[Callable[..., Any]], Callable[..., Any]] = all_of(
    option("mode", type=click.Choice(list(MODES)), help="The approval mode to begin with."),
    option(
        "allow",
        metavar="TOOLS",
        help=f"Tools that need no approval besides those that do not anyway (usually {', '.join(DEFAULT_ALLOW)}), "
        "separated by commas.",
    ),
    option(
        "auto-approve", is_flag=True, help="Begin in the mode `yolo`: approve every tool until the mode is changed."
    ),
)


def _kept(*sound: str) -> tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]:
    return (
        click.option(
            "--record",
            metavar="FILE.json",
            type=click.Path(dir_okay=False),
            help="Write down what happened in the last turn of a graph, for `graph draw --turn`.",
        ),
        click.option(
            *sound, metavar="FILE.wav", type=click.Path(dir_okay=False), help="Keep what the agent says aloud."
        ),
    )


def tracing_as(*sound: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What is told and kept of each turn. `sound`: names of the flag with the file."""
    return all_of(
        click.option("--trace", is_flag=True, help="Show the path of each turn, if the agent is a graph."),
        *_kept(*sound),
    )


tracing = tracing_as("--sound")
tracing_unless: Callable[[Callable[..., Any]], Callable[..., Any]] = all_of(
    click.option(
        "--trace/--no-trace", default=True, show_default=True, help="Show the path of each turn through the graph."
    ),
    *_kept("--sound"),
)
