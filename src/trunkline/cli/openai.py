"""`trunkline openai`: agents for OpenAI's clients. `serve` has a parser of its own, with the options of `agent`."""

from __future__ import annotations

import click

from trunkline.cli.program_command import program_command


@click.group("openai")
def command() -> None:
    """Agents for programs that talk to OpenAI.

    \b
    trunkline openai serve --agent coder                     an agent as a model
    """


command.add_command(program_command("serve", "Serve agents as models until stopped.", "openai_serve"))
