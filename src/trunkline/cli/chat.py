"""`trunkline chat`: talk to an agent in the terminal, or ask it one thing from a script.

Exit codes: 0 when the answer came (or they left the conversation), 1 when it failed, 2 for wrong usage, 3 when it
failed and a tool had been refused because nobody could be asked, 130 after Ctrl-C, 143 after SIGTERM, 141 when nobody
reads the answer any more.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import stat
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.agents import registry
from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable_line
from trunkline.base.vocabulary import DEFAULT_ALLOW, EFFORTS
from trunkline.cli.chat_files import mentioned, unfound
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.opening import LATEST
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, Fault, SessionNotFound
from trunkline.models.providers import NAMES

#: After so long without the end of the input, we say what we are waiting for.
PATIENCE_SECONDS = 3.0
#: More than any model reads; less than would trouble this machine.
LONGEST_INPUT = 16 * 1024 * 1024

EXIT_INTERRUPTED = 130


def _variable(name: str) -> str:
    return f"TRUNKLINE_{name.upper().replace('-', '_')}"


def _option(name: str, **how: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option that `trunkline agent` has, too, with the variable that stands for it."""
    return click.option(f"--{name}", envvar=_variable(name), **how)


def _complete_agent(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.agents.graph import bundled

    known = (*registry.names(), *(f"{registry.GRAPH_FORM}{name}" for name in bundled.names()))
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


def _complete_provider(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


def _complete_session(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.cli.shelf import completions

    return [CompletionItem(name) for name in completions(incomplete)]


@click.command("chat")
@click.argument("agent", required=False, metavar="[AGENT]", shell_complete=_complete_agent)
@click.option("-p", "--print", "text", metavar="TEXT", help="Ask this, print the answer, and end.")
@click.option("--json", "as_json", is_flag=True, help="With -p: print one JSON object at the end.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="With -p: print every event as one line of JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answer, and what went wrong.")
@_option("script", metavar="FILE", help="What the scripted agent plays: a file, or the name of a bundled script.")
@_option(
    "provider",
    metavar="NAME",
    shell_complete=_complete_provider,
    help=f"Whose model answers: {', '.join(NAMES)}, or one of the configuration file.",
)
@_option("model", metavar="ID", help="The model.")
@_option("base-url", metavar="URL", help="Where the provider is reached.")
@_option("profile", metavar="NAME", help="A profile of the configuration file.")
@_option("max-tokens", type=click.IntRange(1), metavar="N", help="The longest answer of the model, in tokens.")
@_option(
    "max-turns",
    type=click.IntRange(0),
    metavar="N",
    help="How often the model may use tools for one message; 0 for no limit.",
)
@_option("thinking-budget", type=click.IntRange(0), metavar="N", help="Tokens that the model may think; 0 for none.")
@_option(
    "effort",
    type=click.Choice(EFFORTS),
    help="How hard the model is to think, where it knows that.",
)
@_option("system-prompt", metavar="TEXT", help="Instructions for the agent.")
@_option("workspace", metavar="PATH", help="The directory to work in; the default is the current one.")
@click.option("--session-id", metavar="ID", help="Begin a session under this id; an error if it exists.")
@click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=LATEST,
    shell_complete=_complete_session,
    help="Go on with a session; without an id, or with `latest`, with the one used last in this workspace.",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="With --resume: also from another directory, and, in a new session, with another agent.",
)
@_option("no-session", is_flag=True, help="Keep nothing.")
@_option("mode", type=click.Choice(["default", "auto_edit", "yolo"]), help="The approval mode to begin with.")
@_option(
    "allow",
    metavar="TOOLS",
    help=f"Tools that need no approval besides those that do not anyway (usually {', '.join(DEFAULT_ALLOW)}), "
    "separated by commas.",
)
@_option("auto-approve", is_flag=True, help="Begin in the mode `yolo`: approve every tool until the mode is changed.")
def command(text: str | None, as_json: bool, as_jsonl: bool, **given: Any) -> None:
    """Talk to AGENT in the terminal: `coder`, any other that comes with Trunkline, or one of yours as MODULE:NAME,
    jsonstream:COMMAND, agentproc:PROFILE, scripted:SCRIPT, graph:GRAPH or tryll:HOST:PORT.

    With -p, or with something piped into it, it answers once, on standard output, and needs no terminal.

    \b
    Examples:
      trunkline chat
      trunkline chat echo
      trunkline chat --resume
      trunkline chat -p "what does this project do?"
      git diff | trunkline chat -p "write a commit message" > message
    """
    options = ChatOptions(**given)
    _check(options, as_json, as_jsonl)
    try:
        options = _resumed(options)
        _check_agent(options.agent, asks=text is not None)
        if text is None and sys.stdin.isatty():
            if as_json or as_jsonl or not sys.stdout.isatty():
                raise click.UsageError("There is no terminal to talk in. Ask with `-p TEXT`, or pipe the text in.")
            from trunkline.cli.terminal.conversation import converse

            sys.exit(_run(converse(options)))
        from trunkline.cli.chat_once import once

        message = _message(text, options)
        sys.exit(_run(once(options, message, "json" if as_json else "jsonl" if as_jsonl else "text")))
    except Fault as fault:
        raise click.ClickException(printable_line(str(fault))) from fault
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _check(options: ChatOptions, as_json: bool, as_jsonl: bool) -> None:
    if options.session_id is not None and options.resume is not None:
        raise click.UsageError("Cannot use --resume and --session-id together")
    if options.no_session and (options.session_id is not None or options.resume is not None):
        raise click.UsageError("Cannot use --no-session with --session-id or --resume")
    if as_json and as_jsonl:
        raise click.UsageError("Cannot use --json and --jsonl together")


def _check_agent(name: str | None, *, asks: bool) -> None:
    """Tell `chat "what is this?"` from `chat coder`: what they wanted to ask is no agent's name.

    Raises:
        ConfigError: it is none, and nothing else is asked.
    """
    if asks or name is None or name in registry.names() or ":" in name.partition(" ")[0]:
        return
    known = f"{suggestion(name, registry.names())} The agents are {', '.join(registry.names())}."
    hint = f"`trunkline chat -p {shlex.quote(name)}` asks that; `trunkline chat` alone begins a conversation."
    raise ConfigError(f"There is no agent `{name}`.{known}", hint=hint)


def _resumed(options: ChatOptions) -> ChatOptions:
    """The options with the whole id of the session to resume.

    Raises:
        SessionNotFound: there is none, or there are several; or it is the name of an agent, put behind `--resume`.
    """
    name = options.resume
    if name is None or name == LATEST:
        return options
    from trunkline.cli import shelf

    try:
        return options.replace(resume=shelf.named(name))
    except SessionNotFound:
        if options.agent is not None or name not in registry.names():
            raise
        hint = f"Put the agent before `--resume`: `trunkline chat {name} --resume`."
        raise SessionNotFound(f"There is no session `{name}`; that is the name of an agent.", hint=hint) from None


def _run(work: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(work)
    if any(not task.done() for task in asyncio.all_tasks(loop)):
        # An agent that ignores even its cancellation does not keep us here.
        os._exit(code)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    return code


def _message(text: str | None, options: ChatOptions) -> UserMessage:
    """What to ask: the text, and behind it what was piped in."""
    piped = _piped(waiting_for_text=text is None)
    files = mentioned(text, options.directory) if text else ()
    for note in unfound(text or "", options.directory) if not options.quiet else ():
        click.echo(printable_line(note), err=True)
    asked = "\n\n".join(part for part in (text, piped) if part and part.strip())
    if not asked:
        raise click.UsageError("There is nothing to ask. Say it with `-p TEXT`, or pipe it in.")
    return UserMessage(asked, files)


def _piped(*, waiting_for_text: bool) -> str:
    """Standard input, if there is one that is not a terminal."""
    try:
        if sys.stdin is None or sys.stdin.isatty() or not _is_source(sys.stdin.fileno()):
            return ""
    except (OSError, ValueError):
        return ""
    hint = "Waiting for the end of standard input" + ("" if waiting_for_text else "; `< /dev/null` says there is none")
    waiting = threading.Timer(PATIENCE_SECONDS, click.echo, (f"{hint} ...",), {"err": True})
    waiting.daemon = True
    waiting.start()
    try:
        data = sys.stdin.buffer.read(LONGEST_INPUT + 1)
    finally:
        waiting.cancel()
    if len(data) > LONGEST_INPUT:
        raise click.UsageError(f"Standard input is longer than {LONGEST_INPUT} bytes.")
    return data.decode("utf-8", "replace")


def _is_source(fd: int) -> bool:
    """Whether something can be read there: a pipe, a socket or a file, but not `/dev/null` and its like."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
