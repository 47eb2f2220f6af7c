"""`trunkline agent --json-stream`: an agent that a host program spawns and talks to in JSON lines.

Standard output carries protocol lines and nothing else, from the first byte: a start that fails is one `config_error`
line there, the same in words on standard error, and a non-zero exit (2 for wrong usage, 1 for the rest).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn

from trunkline.agents import registry
from trunkline.base import stdio
from trunkline.base.claim import claim
from trunkline.cli import agent_options, opening
from trunkline.cli.agent_options import EXIT_FAILED, EXIT_USAGE
from trunkline.cli.arguments import HelpFormatter, Parser, Usage, count
from trunkline.core.faults import Fault
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.stdio import StdioServer

logger = logging.getLogger(__name__)

#: No variable stands for these. A session is one process's own: its name must not reach children by accident.
FLAGS_ONLY = ("help", "json_stream", "session_id", "resume")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="trunkline agent",
        description="Be an agent for a host program: JSON lines on standard input and output.",
        epilog="""examples:
  trunkline agent --json-stream --provider anthropic --model claude-sonnet-5-5
  trunkline agent --json-stream --agent echo
  trunkline agent --json-stream --script tour --session-id my-conv-123
  trunkline agent --json-stream --resume latest

Options can also be given as environment variables: --max-turns is
TRUNKLINE_MAX_TURNS, --auto-approve is TRUNKLINE_AUTO_APPROVE=1. Not so
--json-stream, --session-id and --resume.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--json-stream", action="store_true", help="speak the JSON stream protocol (the only way, for now)")
    agents = ", ".join((*registry.names(), *registry.FORMS))
    add("--agent", metavar="NAME", help=f"who answers: {agents} (default: coder)")
    agent_options.add_agent_options(parser)
    add("--session-id", metavar="ID", help="begin a session under this id; an error if it exists")
    add("--resume", metavar="ID", help="go on with a session; `latest` is the one used last in this workspace")
    agent_options.add_session_options(parser)
    add(
        "--max-line",
        type=count,
        default=codec.MAX_LINE,
        metavar="BYTES",
        help="the longest command that is read",
    )
    return parser


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Flags first, `TRUNKLINE_*` where there is none.

    Raises:
        Usage: they cannot be understood.
    """
    options = agent_options.parse(_parser(), arguments, FLAGS_ONLY)
    if not options.json_stream:
        raise Usage("say how to talk: `--json-stream`")
    if options.session_id is not None and options.resume is not None:
        raise Usage("Cannot use --resume and --session-id together")
    if options.no_session and (options.session_id is not None or options.resume is not None):
        raise Usage("Cannot use --no-session with --session-id or --resume")
    return options


def main(arguments: list[str]) -> NoReturn:
    """Run until the host closes its end. Exits 0 then, 143 after SIGTERM, 130 after SIGINT, else see the module."""
    streaming = "--json-stream" in arguments
    try:
        reading, writing = claim() if streaming else (0, 1)
    except OSError:
        _fail(1, streaming, "Standard input and output must both be open.", EXIT_FAILED)
    redactor = opening.redactor()
    agent_options.log_to_stderr(redactor)
    try:
        options = _parse(arguments)
        sys.exit(agent_options.run(_serve(options, reading, writing)))
    except Usage as error:
        _fail(writing, streaming, redactor.text(str(error)), EXIT_USAGE)
    except Fault as fault:
        _fail(writing, streaming, redactor.text(str(fault)), EXIT_FAILED, retryable=fault.retryable)
    except Exception as error:
        if not isinstance(error, OSError):
            logger.exception("the agent could not be started, or failed badly")
        _fail(writing, streaming, redactor.text(f"{type(error).__name__}: {error}"), EXIT_FAILED)


def _fail(writing: int, streaming: bool, text: str, code: int, *, retryable: bool = False) -> NoReturn:
    # Whatever kept the agent from starting, to the host it is a matter of configuration.
    if streaming:
        body = messages.ErrorBody("config_error", text, retryable)
        with suppress(OSError):
            os.write(writing, codec.encode(messages.Error(None, body)))
    advice = "" if streaming else "Try `trunkline agent --help`.\n"
    stdio.write_or_drop(2)(f"trunkline agent: {text}\n{advice}".encode(errors="backslashreplace"))
    sys.exit(code)


async def _serve(options: argparse.Namespace, reading: int, writing: int) -> int:
    workspace = opening.directory(options.workspace)
    log = opening.session_log(
        workspace, session_id=options.session_id, resume=options.resume, kept=not options.no_session
    )
    try:
        model_options = agent_options.model_options(options)
        agent = opening.make_agent(options.agent, options.script, workspace, model_options)
        redactor = opening.redactor(agent)
        session = await Session.open(
            agent,
            log,
            opening.policy(options.allow, auto_approve=options.auto_approve, agent=agent),
            resume=options.resume is not None,
            mode=options.mode,
            workspace=workspace,
            instructions=options.system_prompt,
            options=agent_options.with_variables(model_options),
            redact=Redaction(redactor),
        )
    except BaseException:
        # A start that failed leaves nothing behind: the host may try the same id again.
        log.discard() if options.resume is None else log.close()
        raise
    server = StdioServer(
        session,
        agent.capabilities,
        (reading, writing),
        named=not options.no_session,
        max_line=options.max_line,
    )
    return await server.run()
