"""`trunkline agent --json-stream`: an agent that a host program spawns and talks to in JSON lines.

Standard output carries protocol lines and nothing else, from the first byte: a start that fails is one `config_error`
line there, the same in words on standard error, and a non-zero exit (2 for wrong usage, 1 for the rest).
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from trunkline.agents import registry
from trunkline.base.claim import claim
from trunkline.base.paths import unusable
from trunkline.base.writing import EXIT_BROKEN_PIPE, write_all
from trunkline.cli import agent_options, log_format, opening
from trunkline.cli.agent_options import EXIT_FAILED, EXIT_USAGE
from trunkline.cli.arguments import HelpFormatter, Parser, UsageError, count
from trunkline.cli.session_start import SessionStart
from trunkline.core.faults import Fault
from trunkline.store.waiting import when_free
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.greeting import greeting

if TYPE_CHECKING:
    from trunkline.core.session import Session

logger = logging.getLogger(__name__)

#: No variable stands for these. A session is one process's own: its name must not reach children by accident.
FLAGS_ONLY = ("help", "json_stream", "session_id", "resume", "anyway", "attach")

#: What is heeded with `--attach`: the rest is for the exchange to say.
ATTACHED = ("json_stream", "agent", "session_id", "resume", "workspace", "max_line", "attach", "log_format")


def _parser() -> Parser:
    parser = Parser(
        prog="trunkline agent",
        description="Be an agent for a host program: JSON lines on standard input and output.",
        epilog="""examples:
  trunkline agent --json-stream --provider anthropic --model claude-sonnet-5-5
  trunkline agent --json-stream --agent echo
  trunkline agent --json-stream --script tour --session-id my-conv-123
  trunkline agent --json-stream --resume latest
  trunkline agent --json-stream --agent helper --attach

All options but --json-stream, --session-id and --resume can also be given as
environment variables: --max-turns is TRUNKLINE_MAX_TURNS, --auto-approve is
TRUNKLINE_AUTO_APPROVE=1.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--json-stream", action="store_true", help="speak the JSON stream protocol (the only way, for now)")
    agents = ", ".join((*registry.names(), *registry.FORMS))
    add("--agent", metavar="NAME", help=f"who answers: {agents} (default: coder)")
    agent_options.add_agent_options(parser)
    add("--session-id", metavar="ID", help="start a session with this id, which must be new")
    add("--resume", metavar="ID", help="continue a session; `latest` is the one used last in this workspace")
    add(
        "--anyway",
        action="store_true",
        help="with --resume: also from another directory, and, in a new session, with another agent",
    )
    agent_options.add_session_options(parser)
    agent_options.add_log_options(parser)
    agent_options.add_attach(parser)
    add(
        "--max-line",
        type=count,
        default=codec.MAX_LINE,
        metavar="BYTES",
        help="the longest command that is accepted",
    )
    return parser


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Flags first, `TRUNKLINE_*` where there is none.

    Raises:
        Usage: they cannot be understood.
    """
    options = agent_options.parse(_parser(), arguments, FLAGS_ONLY, ATTACHED)
    if not options.json_stream:
        raise UsageError("say how to talk: `--json-stream`")
    if options.session_id is not None and options.resume is not None:
        raise UsageError("Cannot use --resume and --session-id together")
    if options.no_session and (options.session_id is not None or options.resume is not None):
        raise UsageError("Cannot use --no-session with --session-id or --resume")
    return options


def main(arguments: list[str]) -> NoReturn:
    """Run until the host closes its end. Exits 0 then, 143 after SIGTERM, 130 after SIGINT, else see the module."""
    streaming = "--json-stream" in arguments
    try:
        reading, writing = claim() if streaming else (0, 1)
    except OSError:
        _fail(1, streaming, "Standard input and output must both be open.", EXIT_FAILED)
    redactor = opening.redactor()
    agent_options.log_to_stderr(redactor, "jsonstream")
    try:
        options = _parse(arguments)
        if options.attach:
            sys.exit(_attach(options, reading, writing))
        sys.exit(_serve(_Start(options), reading, writing))
    except UsageError as error:
        _fail(writing, streaming, redactor.text(str(error)), EXIT_USAGE)
    except Fault as fault:
        _fail(writing, streaming, redactor.text(str(fault)), EXIT_FAILED, retryable=fault.retryable)
    except OSError as error:
        _fail(writing, streaming, redactor.text(unusable(error)), EXIT_FAILED)
    except Exception as error:
        logger.exception("the agent could not be started, or failed badly")
        _fail(writing, streaming, redactor.text(f"{type(error).__name__}: {error}"), EXIT_FAILED)


def _fail(writing: int, streaming: bool, text: str, code: int, *, retryable: bool = False) -> NoReturn:
    # Whatever kept the agent from starting, to the host it is a matter of configuration.
    if streaming:
        body = messages.ErrorBody("config_error", text, retryable)
        with suppress(OSError):
            os.write(writing, codec.encode(messages.Error(None, body)))
    log_format.complain(text, "" if streaming else "Try `trunkline agent --help`.")
    sys.exit(code)


def _attach(options: argparse.Namespace, reading: int, writing: int) -> int:
    from trunkline.base.attach import AttachHeader
    from trunkline.cli import attaching

    header = AttachHeader(
        "jsonstream",
        options.agent,
        options.session_id,
        options.resume,
        attaching.workspace(options.workspace),
        options.max_line,
    )
    return attaching.relay(header, reading, writing)


class _Start(SessionStart):
    """One that a host may know of before it has begun."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.greeted = False
        """Whether the host knows that we are ready."""
        self._session: Session | None = None
        self.kept = when_free(self.log)

    def greet(self, writing: int) -> None:
        """Say that we are ready if that is so: if nothing can keep the session from beginning.

        The event loop takes longer to load than all that this depends on. What is resumed must be read first.

        Raises:
            OSError: the host is gone.
        """
        if self.options.resume is not None or getattr(self.agent, "checked", False) is not True:
            return
        named = self.kept.log.session if self.named else None
        lines = greeting(self.agent.capabilities, self.mode or self.policy.mode, named)
        # From the first byte on: a signal may come before the call returns.
        self.greeted = True
        try:
            write_all(writing, lines)
        except OSError:
            self.greeted = False
            raise

    async def begin(self) -> Session:
        """Let the agent begin."""
        self._session = await self.open(self.kept)
        return self._session

    def give_up(self) -> None:
        """A start that failed leaves nothing behind: the host may try the same id again, also after `ready`.

        A session in which something was said is kept.
        """
        if self._session is None or not self._session.state.was_used:
            self.kept.give_up()


def _serve(start: _Start, reading: int, writing: int) -> int:
    try:
        try:
            start.greet(writing)
        except BrokenPipeError:
            start.give_up()
            return EXIT_BROKEN_PIPE
        return agent_options.run(lambda: _talk(start, reading, writing))
    except BaseException:
        start.give_up()
        raise


async def _talk(start: _Start, reading: int, writing: int) -> int:
    from trunkline.wires.jsonstream.stdio import StdioServer

    session = await start.begin()
    # What is loaded by now stays: no need to look through it again and again for what can be thrown away.
    gc.freeze()
    gc.enable()
    server = StdioServer(
        session,
        (reading, writing),
        named=start.named,
        max_line=start.options.max_line,
    )
    return await server.run(greeted=start.greeted)
