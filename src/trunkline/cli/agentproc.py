"""`trunkline agentproc`: command-line agents, one process per message.

`run` and `serve` are spawned by programs and go their own short way; here they are listed, and completed for a shell.
"""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from trunkline.cli.arguments import Parser

#: Command name -> module in this folder with a `click` command named `command`.
_COMMANDS = {"check": "agentproc_check", "hub": "agentproc_hub"}
#: Command name -> module in this folder with a `main` of its own, the one with its parser, and its line in the list.
_PROGRAMS = {
    "run": ("agentproc_run", "agentproc_run_options", "Send one message to an agent and show its answer."),
    "serve": ("agentproc_serve", "agentproc_serve", "Be an AgentProc agent: environment in, lines out."),
}


class ProgramCommand(click.Command):
    """A command that has a parser of its own. It is made for those who ask about it, and not to run the command."""

    def parser(self) -> Parser:
        """What the command understands."""
        made: Parser = import_module(f"trunkline.cli.{_PROGRAMS[str(self.name)][1]}").make_parser()
        return made

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its options."""
        from trunkline.cli import agentproc_completion

        return agentproc_completion.options(self.parser(), incomplete)


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*_COMMANDS, *_PROGRAMS])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _PROGRAMS:
            return _program(name)
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"trunkline.cli.{_COMMANDS[name]}").command
        return command


def _program(name: str) -> click.Command:
    module, _, summary = _PROGRAMS[name]

    @click.command(
        name,
        cls=ProgramCommand,
        short_help=summary,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=_complete)
    def run(arguments: tuple[str, ...]) -> None:
        import_module(f"trunkline.cli.{module}").main(list(arguments))

    return run


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.cli import agentproc_completion

    if not isinstance(context.command, ProgramCommand):
        return []
    return agentproc_completion.words(context.command.parser(), context.params.get("arguments") or (), incomplete)


@click.group("agentproc", cls=_Group)
def command() -> None:
    """Command-line agents that are started for every message.

    \b
    trunkline agentproc hub list                             those you may have
    trunkline agentproc run --profile P --message M          talk to one
    trunkline agentproc check P                              explain a profile
    trunkline agentproc serve AGENT                          be one
    """
