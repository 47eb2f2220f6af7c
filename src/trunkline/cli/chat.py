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
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.shell_completion import CompletionItem

from trunkline.agents import registry
from trunkline.base.attach import ATTACH_SOCKET
from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable_line
from trunkline.base.vocabulary import EFFORTS, SANDBOX_MODES
from trunkline.cli import chat_options, local_exchange, trace, traced, value_completion
from trunkline.cli.attaching import not_heeded
from trunkline.cli.chat_files import mentioned, unfound
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.opening import LATEST, MODEL_OPTIONS
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, Fault, SessionNotFound
from trunkline.models.providers import NAMES

if TYPE_CHECKING:
    from trunkline.cli.chat_once import Form
    from trunkline.cli.talk_voice import TerminalVoice

#: After so long without the end of the input, we say what we are waiting for.
PATIENCE_SECONDS = 3.0
#: What is read of standard input at a time, and how many such pieces may wait to be said.
PIECE_BYTES = 64 * 1024
MAX_PIECES = 16
#: More than any model reads; less than would trouble this machine.
LONGEST_INPUT = 16 * 1024 * 1024

#: What the exchange's file says, and no flag.
NOT_ATTACHED = (*MODEL_OPTIONS, "script", "system_prompt", "mode", "allow", "auto_approve", "no_session", "anyway")

EXIT_INTERRUPTED = 130


def complete_agent(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Everybody who can be named; with `--attach`, the agents of the exchange."""
    if context.params.get("attach"):
        return value_completion.agents(context, parameter, incomplete)
    from trunkline.cli.agentproc_completion import agents

    return agents(incomplete)


def _complete_model(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.models.offered import known_here

    provider = context.params.get("provider") or ""
    return value_completion.beginning(known_here(provider), incomplete)


def _complete_provider(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


@click.command("chat")
@click.argument("agent", required=False, metavar="[AGENT]", shell_complete=complete_agent)
@chat_options.asking
@chat_options.option(
    "script", metavar="FILE", help="What the scripted agent plays: a file, or the name of a bundled script."
)
@chat_options.option(
    "provider",
    metavar="NAME",
    shell_complete=_complete_provider,
    help=f"Whose model answers: {', '.join(NAMES)}, or one from the configuration file.",
)
@chat_options.option("model", metavar="ID", help="The model.", shell_complete=_complete_model)
@chat_options.option("base-url", metavar="URL", help="The provider's base URL.")
@chat_options.option("profile", metavar="NAME", help="A profile from the configuration file.")
@chat_options.option("max-tokens", type=click.IntRange(1), metavar="N", help="The model's longest answer, in tokens.")
@chat_options.option(
    "max-turns",
    type=click.IntRange(0),
    metavar="N",
    help="How often the model may use tools for one message; 0 for no limit.",
)
@chat_options.option(
    "thinking-budget",
    type=click.IntRange(0),
    metavar="N",
    help="Tokens that the model may spend on thinking; 0 for none.",
)
@chat_options.option(
    "sandbox",
    type=click.Choice(SANDBOX_MODES),
    help="Whether commands run in a sandbox; `auto`: where it can be had.",
)
@chat_options.option("effort", type=click.Choice(EFFORTS), help="How hard the model thinks, if it supports that.")
@chat_options.option("system-prompt", metavar="TEXT", help="Instructions for the agent.")
@chat_options.keeping
@click.option(
    "--attach", is_flag=True, help="AGENT is one of the exchange that runs here, and the session lives there."
)
@chat_options.approving
@chat_options.tracing
def command(texts: tuple[str, ...], as_json: bool, as_jsonl: bool, **given: Any) -> None:
    """Talk to AGENT in the terminal: `coder`, any other that comes with Trunkline, or one of yours as MODULE:NAME,
    jsonstream:COMMAND, acp:COMMAND, agentproc:PROFILE, scripted:SCRIPT, graph:GRAPH, tryll:HOST:PORT or model:NAME.

    With -p, or with something piped into it, it answers on standard output, ends, and needs no terminal.

    \b
    Examples:
      trunkline chat
      trunkline chat echo
      trunkline chat --resume
      trunkline chat helper --attach
      trunkline chat -p "what does this project do?"
      git diff | trunkline chat -p "write a commit message" > message
    """
    options = ChatOptions(**given)
    start(options, texts, as_json=as_json, as_jsonl=as_jsonl)


def start(
    options: ChatOptions,
    texts: Sequence[str],
    *,
    as_json: bool,
    as_jsonl: bool,
    why_mute: str = "nothing was said aloud.",
) -> NoReturn:
    """Talk, in the terminal or without one, and exit: the one way of every command that talks to an agent.

    `texts` are what it is asked, one after the other, and then it ends; none for what is typed or piped in.
    `why_mute` is told where there is no sound to keep.
    """
    _check(options, as_json, as_jsonl)
    try:
        if options.attach:
            # Before anything else is complained about: without an exchange nothing of it would help.
            local_exchange.connect(ATTACH_SOCKET).close()
            not_heeded(name for name in NOT_ATTACHED if getattr(options, name))
        else:
            options = resumed(options)
        if options.given is None and not options.attach:
            _check_agent(options.agent, asks=bool(texts))
        keeper = trace.TraceFiles(options.record, options.sound)
        options = options.replace(sinks=(keeper,))
        try:
            code = _talked(options, texts, "json" if as_json else "jsonl" if as_jsonl else "text")
        finally:
            keeper.close(why_mute)
        sys.exit(code)
    except Fault as fault:
        raise click.ClickException(printable_line(str(fault))) from fault
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _talked(options: ChatOptions, texts: Sequence[str], form: Form) -> int:
    voice = options.voice
    if voice is not None and not texts and (voice.recording is not None or not is_piped()):
        if voice.recording is None and form == "text" and sys.stdin.isatty() and sys.stdout.isatty():
            from trunkline.cli.terminal.sitting import converse

            return _run(_aloud(voice, lambda: converse(options)))
        if voice.recording is None and voice.push_to_talk:
            raise click.UsageError("`--push-to-talk` needs a terminal: there is no key to press.")
        from trunkline.cli.chat_once import once

        return _run(_aloud(voice, lambda: once(options, voice.messages(), form)))
    if not texts and sys.stdin.isatty():
        if form != "text" or not sys.stdout.isatty():
            raise click.UsageError("There is no terminal to talk in. Ask with `-p TEXT`, or pipe the text in.")
        from trunkline.cli.terminal.sitting import converse

        return _run(converse(options))
    from trunkline.cli.chat_once import once

    if not texts and options.lines:
        return _run(once(options, _lines(sys.stdin.fileno()), form))
    return _run(once(options, _each(_messages(texts, options)), form))


async def _aloud(voice: TerminalVoice, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    async with voice.devices():
        return await work()


async def _each(messages: Sequence[UserMessage]) -> AsyncIterator[UserMessage]:
    for message in messages:
        yield message


async def _lines(fd: int) -> AsyncIterator[UserMessage]:
    """A message for each line, as they come. A line without an end is said in pieces."""
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(MAX_PIECES)

    def read() -> None:
        # The loop may be gone: somebody stopped it.
        with suppress(RuntimeError):
            data = b"-"
            while data:
                room.acquire()
                try:
                    data = os.read(fd, PIECE_BYTES)
                except OSError:
                    data = b""
                loop.call_soon_threadsafe(found.put_nowait, data)

    # Nobody waits for it at the end: it may wait for a line that never comes. It shares no buffer with `sys.stdin`,
    # which Python could not take leave of then.
    threading.Thread(target=read, name="standard input", daemon=True).start()
    rest, are_any = b"", False
    while data := await found.get():
        room.release()
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > LONGEST_INPUT:
            lines, rest = [*lines, rest], b""
        for line in lines:
            if message := _said(line):
                are_any = True
                yield message
    if message := _said(rest):
        yield message
    elif not are_any:
        click.echo("Nothing was said: standard input is at its end. Pipe in what to say, a message a line.", err=True)


def _said(line: bytes) -> UserMessage | None:
    text = line.decode("utf-8", "replace").rstrip("\r")
    return UserMessage(text) if text.strip() else None


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


def resumed(options: ChatOptions) -> ChatOptions:
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
    with traced.by_environment():
        return _run_in_loop(work)


def _run_in_loop(work: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.new_event_loop()
    try:
        code = loop.run_until_complete(work)
        if any(not task.done() for task in asyncio.all_tasks(loop)):
            # An agent that ignores even its cancellation does not keep us here.
            os._exit(code)
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
    return code


def _messages(texts: Sequence[str], options: ChatOptions) -> list[UserMessage]:
    """What to ask: the texts, and behind the first one what was piped in."""
    piped = _piped(waiting_for_text=not texts)
    first, *more = texts or ("",)
    return [_message(first, piped, options), *(_message(text, "", options) for text in more)]


def _message(text: str, piped: str, options: ChatOptions) -> UserMessage:
    files = mentioned(text, options.directory) if text else ()
    for note in unfound(text, options.directory) if not options.quiet else ():
        click.echo(printable_line(note), err=True)
    asked = "\n\n".join(part for part in (text, piped) if part.strip())
    if not asked:
        raise click.UsageError("There is nothing to ask. Say it with `-p TEXT`, or pipe it in.")
    return UserMessage(asked, files)


def _piped(*, waiting_for_text: bool) -> str:
    """Standard input, if there is one that is not a terminal."""
    if not is_piped():
        return ""
    hint = "Waiting for the end of standard input" + ("" if waiting_for_text else "; `< /dev/null` says there is none")
    waiting = threading.Timer(PATIENCE_SECONDS, click.echo, (f"{hint} ...",), {"err": True})
    waiting.daemon = True
    waiting.start()
    try:
        data = sys.stdin.buffer.read(LONGEST_INPUT + 1)
    except OSError as error:
        raise click.ClickException(f"Standard input cannot be read: {error.strerror}.") from None
    finally:
        waiting.cancel()
    if len(data) > LONGEST_INPUT:
        raise click.UsageError(f"Standard input is longer than {LONGEST_INPUT} bytes.")
    return data.decode("utf-8", "replace")


def is_piped() -> bool:
    """Whether something can be read there: a pipe, a socket or a file, but not `/dev/null` and its like."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return False
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
