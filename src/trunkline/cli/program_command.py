"""Commands that have a parser of their own and a `main`: here they are listed, described, and completed for a shell."""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from trunkline.cli.arguments import Parser


class ProgramCommand(click.Command):
    """A command that has a parser of its own. It is made for those who ask about it, and not to run the command."""

    described_in = ""
    """The module in this folder that has `make_parser`."""

    def parser(self) -> Parser:
        """What the command understands."""
        made: Parser = import_module(f"trunkline.cli.{self.described_in}").make_parser()
        return made

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its options."""
        from trunkline.cli import agentproc_completion

        return agentproc_completion.options(self.parser(), incomplete)


def program_command(name: str, summary: str, module: str, described_in: str | None = None) -> click.Command:
    """The command that runs the `main` of a module in this folder. Its parser may be in another one."""

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

    run.described_in = described_in or module
    return run


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.cli import agentproc_completion

    if not isinstance(context.command, ProgramCommand):
        return []
    return agentproc_completion.words(context.command.parser(), context.params.get("arguments") or (), incomplete)
