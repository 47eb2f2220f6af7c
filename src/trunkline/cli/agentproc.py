"""`trunkline agentproc`: command-line agents, one process per message.

`run` and `serve` are spawned by programs and go their own short way; here they are only listed.
"""

from __future__ import annotations

from importlib import import_module

import click

#: Command name -> module in this folder with a `click` command named `command`.
_COMMANDS = {"check": "agentproc_check", "hub": "agentproc_hub"}
#: Command name -> module in this folder with a `main` of its own, and what the list says of it.
_PROGRAMS = {
    "run": ("agentproc_run", "Send one message to an agent and show its answer."),
    "serve": ("agentproc_serve", "Be an AgentProc agent: environment in, lines out."),
}


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
    module, summary = _PROGRAMS[name]

    @click.command(name, short_help=summary, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: tuple[str, ...]) -> None:
        import_module(f"trunkline.cli.{module}").main(list(arguments))

    return run


@click.group("agentproc", cls=_Group)
def command() -> None:
    """Command-line agents that are started for every message.

    \b
    trunkline agentproc hub list                             those you may have
    trunkline agentproc run --profile P --message M          talk to one
    trunkline agentproc check P                              explain a profile
    trunkline agentproc serve AGENT                          be one
    """
