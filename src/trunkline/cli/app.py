"""The commands for people: a `click` group that imports a command when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from trunkline import __version__

#: Command name -> module in this folder; each has a `click` command named `command`.
COMMANDS = {
    "up": "up",
    "chat": "chat",
    "conform": "conform",
    "ledger": "ledger",
    "models": "models",
    "schema": "schema",
    "sessions": "sessions",
    "shim": "shim",
}


class LazyGroup(click.Group):
    """Knows its commands by name only, until one is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, `agent` included, which does not go through `click`."""
        return sorted([*COMMANDS, "agent"])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one."""
        if name == "agent":
            return _agent
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"trunkline.cli.{COMMANDS[name]}").command
        return command


@click.command("agent", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def _agent(arguments: tuple[str, ...]) -> None:
    """Be an agent for a host program: JSON lines on standard input and output."""
    from trunkline.cli.agent import main

    main(list(arguments))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="trunkline %(version)s")
def app() -> None:
    """Any agent, any wire.

    \b
    trunkline up                                          see it work
    trunkline chat                                        talk to a coding agent
    trunkline agent --json-stream --agent echo            an agent for a host program
    trunkline conform jsonstream -- CMD ...               certify anybody's agent
    """
