"""`trunkline openai serve`: agents as models over HTTP, for one user, without an exchange.

Exit codes: 1 when it could not start, 2 for wrong usage, 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import NoReturn

from trunkline.agents import registry
from trunkline.base.hosts import Hosts, is_loopback
from trunkline.base.printable import printable_line
from trunkline.cli import agent_options, log_format, opening, serving
from trunkline.cli.agent_options import EXIT_FAILED, EXIT_USAGE
from trunkline.cli.arguments import HelpFormatter, Parser, UsageError
from trunkline.cli.explained import explanation
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.starting import callers_secret, cannot_listen, require

DEFAULT_LISTEN = "127.0.0.1:4319"
WIRE = "openai"
TOKEN_VARIABLE = "TRUNKLINE_OPENAI_TOKEN"  # noqa: S105  (a name)

#: No variable stands for these. An agent's name is read below: several may be given.
FLAGS_ONLY = ("help", "listen", "token_file", "agents")
_AGENT_VARIABLE = "TRUNKLINE_AGENT"


def make_parser() -> Parser:
    """What it understands."""
    parser = Parser(
        prog="trunkline openai serve",
        description="Serve agents as models of OpenAI's Chat Completions and Responses, until stopped.",
        epilog="""examples:
  trunkline openai serve --agent coder --workspace ~/project
  trunkline openai serve --agent echo --agent scripted:tour
  trunkline openai serve --listen 0.0.0.0:4319 --token-file token

Options can also be given as environment variables: --mode is TRUNKLINE_MODE,
--auto-approve is TRUNKLINE_AUTO_APPROVE=1. TRUNKLINE_OPENAI_TOKEN is what
clients must send as their API key; on this machine none is needed.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    agents = ", ".join((*registry.names(), *registry.FORMS))
    add(
        "--agent",
        dest="agents",
        metavar="NAME",
        action="append",
        default=[],
        help=f"who answers, as the model of that name; can be given several times: {agents} (default: coder)",
    )
    add(
        "--listen",
        metavar="HOST:PORT",
        default=DEFAULT_LISTEN,
        help=f"the address to listen on; port 0 picks a free one (default: {DEFAULT_LISTEN})",
    )
    add("--token-file", metavar="FILE", help="a file with what clients must send as their API key")
    agent_options.add_agent_options(parser)
    agent_options.add_session_options(parser)
    agent_options.add_log_options(parser)
    return parser


def main(arguments: list[str]) -> NoReturn:
    """Serve until a signal comes."""
    try:
        options = agent_options.parse(make_parser(), arguments, FLAGS_ONLY)
    except UsageError as error:
        _fail(f"{error}. Try `trunkline openai serve --help`.", EXIT_USAGE)
    try:
        require("The OpenAI server", "exchange")
        host, port = serving.address(options.listen, public=True)
        token = _token(options.token_file, host)
        agents = options.agents or list(filter(None, [os.environ.get(_AGENT_VARIABLE)]))
        _check(options, agents)
        agent_options.log_to_stderr(opening.redactor(None, *([token] if token else [])), WIRE)
    except (Fault, OSError) as error:
        _fail(explanation(error), EXIT_FAILED)
    serving.serve(lambda stop: _serve(options, agents, host, port, token, stop))


async def _serve(
    options: argparse.Namespace, agents: list[str], host: str, port: int, token: str, stop: asyncio.Event
) -> None:
    from trunkline.agents.machine import CatalogModels
    from trunkline.base import asgi
    from trunkline.base.asgi_whence import Whence
    from trunkline.base.posting_kept import keeping_posters
    from trunkline.cli.own_sessions import OwnSessions
    from trunkline.core import tracing
    from trunkline.wires.openai.errors import refusal
    from trunkline.wires.openai.gate import TokenGate
    from trunkline.wires.openai.machine import MachineRoutes
    from trunkline.wires.openai.serve import OpenAIApplication

    keeper = OwnSessions(options, agents, models=True)
    machine = CatalogModels()
    app = OpenAIApplication(lambda scope: keeper, MachineRoutes(machine, lambda scope: keeper).routes)
    gate = TokenGate(app, Hosts.of(host), token)
    outermost = Whence(gate, wire=lambda path: WIRE, is_traced=tracing.is_on)
    async with keeping_posters():
        try:
            with asgi.listening(host, port) as listener:
                address = serving.shown(host, listener.getsockname()[1])
                ready = f"The OpenAI server is ready: {address}/v1 (Ctrl-C ends it.)"
                await asgi.serve_on(
                    outermost, listener, stop, lambda: serving.told(ready), stopping=app.close, refusal=refusal
                )
        except asgi.CannotListen as error:
            raise cannot_listen(host, port, error) from None
        finally:
            app.close()
            await app.closed()
            await keeper.close()
            await machine.close()


def _token(path: str | None, host: str) -> str:
    """What clients must send.

    Raises:
        ConfigError: there is none, and other machines can reach the address.
    """
    token = callers_secret(os.environ.get(TOKEN_VARIABLE) if path is None else None, path)
    if not token and not is_loopback(host):
        hint = f"Set {TOKEN_VARIABLE}, or say `--token-file FILE`, and give the token to clients as their API key."
        raise ConfigError(f"Other machines can reach `{host}`: a token is required.", hint=hint)
    return token


def _check(options: argparse.Namespace, agents: list[str]) -> None:
    """Find out now what is wrong with the agents and the options, and not when the first client asks.

    Raises:
        ConfigError: something is.
    """
    from trunkline.cli.session_start import SessionStart

    begins = {"session_id": None, "resume": None, "anyway": False}
    named: list[str | None] = [*agents] or [None]
    for name in named:
        SessionStart(argparse.Namespace(**{**vars(options), **begins, "agent": name}))


def _fail(text: str, code: int) -> NoReturn:
    log_format.complain(printable_line(text))
    sys.exit(code)
