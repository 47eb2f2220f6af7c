"""`trunkline mcp serve`: agents as the tools of an MCP server, for the host that spawns it.

Standard output carries messages of the protocol and nothing else. A start that fails is told on standard error, with a
non-zero exit: 2 for wrong usage, 1 for the rest.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import NoReturn

from trunkline.agents import registry
from trunkline.base.claim import claim
from trunkline.base.paths import unusable
from trunkline.base.signals import exit_on_signals
from trunkline.cli import agent_options, log_format, opening
from trunkline.cli.agent_options import EXIT_FAILED, EXIT_USAGE
from trunkline.cli.arguments import HelpFormatter, Parser, UsageError
from trunkline.cli.session_start import SessionStart
from trunkline.core.faults import Fault

logger = logging.getLogger(__name__)

#: No variable stands for these: `TRUNKLINE_AGENT` is one agent's name, and counts where no flag names any.
FLAGS_ONLY = ("help", "agents", "attach")

#: What is heeded with `--attach`: the rest is for the exchange to say.
ATTACHED = ("agents", "attach", "log_format")


def make_parser() -> Parser:
    """What it understands."""
    parser = Parser(
        prog="trunkline mcp serve",
        description="Be an MCP server whose tools are agents: messages on standard input and output.",
        epilog="""examples:
  trunkline mcp serve
  trunkline mcp serve --agent echo --agent scripted:tour
  trunkline mcp serve --provider anthropic --model claude-sonnet-5-5 --workspace ~/project
  trunkline mcp serve --agent helper --attach

Options can also be given as environment variables: --mode is TRUNKLINE_MODE,
--auto-approve is TRUNKLINE_AUTO_APPROVE=1.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    agents = ", ".join((*registry.names(), *registry.FORMS))
    parser.add_argument(
        "--agent",
        action="append",
        dest="agents",
        default=[],
        metavar="NAME",
        help=f"who can be asked, once for each: {agents} (default: coder)",
    )
    agent_options.add_agent_options(parser)
    agent_options.add_session_options(parser)
    agent_options.add_log_options(parser)
    agent_options.add_attach(parser)
    return parser


def main(arguments: list[str]) -> NoReturn:
    """Run until the host closes its end. Exits 0 then, 143 after SIGTERM, 130 after SIGINT, else see the module."""
    exit_on_signals()
    redactor = opening.redactor()
    agent_options.log_to_stderr(redactor, "mcp")
    try:
        options = agent_options.parse(make_parser(), arguments, FLAGS_ONLY, ATTACHED)
        reading, writing = claim()
        if options.attach:
            sys.exit(_attach(options, reading, writing))
        _check(options)
        sys.exit(agent_options.run(lambda: _serve(options, reading, writing)))
    except UsageError as error:
        _fail(redactor.text(f"{error}."), EXIT_USAGE)
    except Fault as fault:
        _fail(redactor.text(str(fault)), EXIT_FAILED)
    except OSError as error:
        _fail(redactor.text(unusable(error)), EXIT_FAILED)


def _attach(options: argparse.Namespace, reading: int, writing: int) -> int:
    from trunkline.base.attach import AttachHeader
    from trunkline.cli import attaching

    return attaching.relay(AttachHeader("mcp", agents=tuple(options.agents)), reading, writing)


def _fail(text: str, code: int) -> NoReturn:
    log_format.complain(text, "Try `trunkline mcp serve --help`." if code == EXIT_USAGE else "")
    sys.exit(code)


def _agents(options: argparse.Namespace) -> list[str]:
    named = os.environ.get("TRUNKLINE_AGENT")
    return list(options.agents) or ([named] if named else [])


def _check(options: argparse.Namespace) -> None:
    """See that the agents can be made, before a host lists tools that nobody would answer.

    Raises:
        ConfigError: one cannot.
    """
    agents: list[str | None] = [*_agents(options)]
    for agent in agents or [None]:
        given = {"agent": agent, "session_id": None, "resume": None, "anyway": False}
        SessionStart(argparse.Namespace(**vars(options) | given))


async def _serve(options: argparse.Namespace, reading: int, writing: int) -> int:
    from trunkline.cli.own_sessions import OwnSessions
    from trunkline.wires.mcp.agents import AgentsOffer
    from trunkline.wires.mcp.stdio import McpStdio

    sessions = OwnSessions(options, _agents(options))
    try:
        return await McpStdio(sessions, AgentsOffer(), (reading, writing)).run()
    finally:
        await sessions.close()
