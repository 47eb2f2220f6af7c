"""The commands for people: a `click` group that imports a command when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from trunkline import __version__
from trunkline.base.nearest import nearest
from trunkline.base.paths import HomeUnknown
from trunkline.cli import log_format, standard_output
from trunkline.cli.explained import explanation

#: Command name -> module in this folder; each has a `click` command named `command`.
COMMANDS = {
    "up": "up",
    "acp": "acp_command",
    "agentproc": "agentproc",
    "approvals": "approvals",
    "bridge": "bridge",
    "chat": "chat",
    "cluster": "cluster",
    "config": "config",
    "conform": "conform",
    "console": "console",
    "doctor": "doctor",
    "explain": "explain",
    "graph": "graph",
    "init": "init",
    "ledger": "ledger",
    "mcp": "mcp",
    "models": "models",
    "network": "network",
    "node": "node",
    "openai": "openai",
    "permissions": "permissions",
    "record": "record",
    "replay": "replay",
    "runner": "runner",
    "schema": "schema",
    "sessions": "sessions",
    "shim": "shim",
    "skills": "skills",
    "tryll": "tryll",
    "usage": "usage",
}

#: What the list of commands says of each: short enough for 80 columns.
SUMMARIES = {
    "acp": "Be an agent for an editor that speaks ACP.",
    "agent": "Be an agent for a host program, over JSON lines.",
    "agentproc": "Run command-line agents, or be one.",
    "approvals": "See what agents ask for, and answer.",
    "bridge": "Put agents into chats such as Telegram, or a terminal.",
    "up": "Run an exchange, or a demonstration of everything.",
    "chat": "Talk to an agent in the terminal.",
    "cluster": "Show, back up and restore a cluster of exchanges.",
    "config": "Show and check what is configured, and by whom.",
    "conform": "Test any implementation of a wire.",
    "console": "Open the pages on which you see and steer agents.",
    "doctor": "Find problems with an exchange, and how to fix them.",
    "explain": "Explain what happened in a session, and why it ended.",
    "init": "Write the configuration file of an exchange.",
    "graph": "Check, run, test, watch, draw and export graph agents.",
    "ledger": "Show what each wire carries, degrades or refuses.",
    "mcp": "Serve agents to MCP hosts; log in to MCP servers.",
    "models": "List, pull, measure and remove models for this machine.",
    "network": "Run an agent social network.",
    "node": "Let a node of a cluster go.",
    "openai": "Serve agents to programs that talk to OpenAI.",
    "permissions": "Show and change what the coding agent may do unasked.",
    "record": "Write a session of the exchange as a script.",
    "replay": "Play a recorded session, without a model.",
    "runner": "Run agents on an agent social network.",
    "schema": "Print a wire's messages as a schema.",
    "sessions": "List, read, export and remove saved conversations.",
    "skills": "List, read and check the skills of the coding agent.",
    "tryll": "Serve graph agents on local models, and talk to them.",
    "usage": "Show what the agents of the exchange have used.",
    "shim": "Write an `aionrs` launcher that starts trunkline.",
}

COMPLETION = """\b
Completion in your shell, for bash (else zsh_source, fish_source):
  eval "$(_TRUNKLINE_COMPLETE=bash_source trunkline)"
"""

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """Knows its commands by name only, until one is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, `agent` included, which does not go through `click`."""
        return sorted([*COMMANDS, "agent"])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one."""
        if name == "agent":
            return _agent
        if name == "help":
            return _help
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"trunkline.cli.{COMMANDS[name]}").command
        command.short_help = SUMMARIES[name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the one that the arguments name; suggest another where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = nearest(args[0], self.list_commands(ctx))
            if meant is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{meant}'?", ctx) from None


@click.command(
    "agent", short_help=SUMMARIES["agent"], add_help_option=False, context_settings={"ignore_unknown_options": True}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def _agent(arguments: tuple[str, ...]) -> None:
    """Be an agent for a host program: JSON lines on standard input and output."""
    from trunkline.cli.agent import main

    main(list(arguments))


@click.command("help", hidden=True)
@click.argument("names", nargs=-1)
@click.pass_context
def _help(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Do what `--help` does, for the command that is named."""
    app.main([*names, "--help"], prog_name="trunkline", standalone_mode=False)


@click.group(cls=LazyGroup, epilog=COMPLETION, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="trunkline %(version)s")
def app() -> None:
    """Any agent, any wire.

    \b
    trunkline up                                          see it work
    trunkline chat                                        talk to a coding agent
    trunkline up --config trunkline.toml                  agents that people and programs share
    trunkline agent --json-stream --agent echo            an agent for a host program
    trunkline agentproc run --profile P --message M       any command-line agent
    trunkline bridge run telegram                         any agent in a chat
    trunkline acp                                         an agent in your editor
    trunkline openai serve --agent coder                  an agent as a model, for OpenAI's clients
    trunkline mcp serve --agent coder                     an agent as a tool, for MCP hosts
    trunkline conform jsonstream -- CMD ...               check any agent against the protocol
    """


def run() -> int:
    """Run the command that the arguments name; gives the exit code.

    Neither Ctrl-C nor a file or an output that cannot be used is worth a traceback.
    """
    try:
        code = _run()
        if code == 0:
            sys.stdout.flush()
    except OSError as error:
        if not (isinstance(error, HomeUnknown) or error.filename or standard_output.lost()):
            raise
        _complain(f"Error: {explanation(error)}")
        code = EXIT_FAILED
    finally:
        _forget_unwritten()
    return code


def _run() -> int:
    from trunkline.cli.agent_options import guard_log

    guard_log()
    if "_TRUNKLINE_COMPLETE" in os.environ:
        return _complete()
    try:
        result = app(prog_name="trunkline", standalone_mode=False)
    except click.Abort:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        from trunkline.base.printable import printable
        from trunkline.base.programs import as_typed_here
        from trunkline.cli.wrapping import fitted
        from trunkline.core.faults import AgentFailed

        # Names of files are in it, which anybody may have given. What an agent or a server says is of its own machine.
        told = printable(error.message if isinstance(error.__cause__, AgentFailed) else as_typed_here(error.message))
        vars(error)["message"] = fitted(told, sys.stderr, len("Error: "))
        if log_format.was_asked_for():
            log_format.complain(error.message)
        else:
            error.show()
        return error.exit_code
    return result if isinstance(result, int) else 0


def _complete() -> int:
    from trunkline.cli import bash_completion
    from trunkline.core.faults import Fault

    bash_completion.register()
    try:
        app(prog_name="trunkline", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except (Fault, OSError):
        # What cannot be read has nothing to offer, and the line that somebody is typing is no place to say why.
        return EXIT_FAILED
    return 0


def _complain(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:
        # Standard error is no better, and there is nowhere else to say it.
        return


def _forget_unwritten() -> None:
    """What could not be written so far will not be later: keep Python from trying it at its end, and complaining."""
    for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, fd)
            os.close(null)
