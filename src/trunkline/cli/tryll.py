"""`trunkline tryll`: graph agents on local models, over TCP and WebSockets. Each command is in a module of its own."""

from __future__ import annotations

from importlib import import_module

import click

from trunkline.base.config_services import settings_of

DEFAULT_LISTEN = str(settings_of("tryll")["listen"].default)
#: The commands, each in a module of its own in this folder, and what the list says of them.
_COMMANDS = {
    "bench": ("tryll_bench", "Measure how many characters there can be at once."),
    "bundle": ("tryll_bundle", "Make a folder that serves without an installation."),
    "chat": ("tryll_chat", "Talk to a server in the terminal."),
    "serve": ("tryll_serve", "Serve graph agents until stopped."),
    "talk": ("tryll_talk", "Talk to a server aloud."),
}


class _Group(click.Group):
    """Imports those when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one, if need be."""
        if name not in _COMMANDS:
            return None
        module, summary = _COMMANDS[name]
        found: click.Command = import_module(f"trunkline.cli.{module}").command
        found.short_help = summary
        return found


@click.group("tryll", cls=_Group)
def command() -> None:
    """Serve graph agents on local models over TCP, and talk to them.

    \b
    Examples:
      trunkline tryll serve
      trunkline tryll chat
      trunkline tryll talk
      trunkline tryll bundle server --model smollm2-135m
    """
