"""`trunkline agentproc`: command-line agents, one process per message.

`run` and `serve` are spawned by programs and go their own short way; here they are listed, and completed for a shell.
"""

from __future__ import annotations

from importlib import import_module

import click

from trunkline.cli.program_command import program_command

#: Command name -> module in this folder with a `click` command named `command`.
_COMMANDS = {"check": "agentproc_check", "hub": "agentproc_hub"}
#: Command name -> module in this folder with a `main` of its own, the one with its parser, and its line in the list.
_PROGRAMS = {
    "run": ("agentproc_run", "agentproc_run_options", "Send one message to an agent and show its answer."),
    "serve": ("agentproc_serve", "agentproc_serve", "Be an AgentProc agent: environment in, lines out."),
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*_COMMANDS, *_PROGRAMS])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _PROGRAMS:
            module, described_in, summary = _PROGRAMS[name]
            return program_command(name, summary, module, described_in)
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"trunkline.cli.{_COMMANDS[name]}").command
        return command


@click.group("agentproc", cls=_Group)
def command() -> None:
    """Command-line agents that are started for every message.

    \b
    trunkline agentproc hub list                             those you may have
    trunkline agentproc run --profile P --message M          talk to one
    trunkline agentproc check P                              explain a profile
    trunkline agentproc serve AGENT                          be one
    """
