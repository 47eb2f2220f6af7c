"""Whether a command line is one of ours: for files that name commands and that no test can run whole."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trunkline.cli.app import app
from trunkline.cli.program_command import ProgramCommand


def is_command(words: Sequence[str]) -> bool:
    """Whether `trunkline WORDS` names a command, and options that it has."""
    command: click.Command = app
    context = click.Context(app)
    rest = list(words)
    while isinstance(command, click.Group):
        found = command.get_command(context, rest[0]) if rest else None
        if found is None:
            return False
        command, rest = found, rest[1:]
    flags = {word.partition("=")[0] for word in rest if word.startswith("--")}
    if isinstance(command, ProgramCommand):
        return flags <= {name for action in command.parser().actions for name in action.option_strings}
    return flags <= {name for option in command.params for name in option.opts}
