"""`trunkline acp`: an agent in any editor that speaks the Agent Client Protocol, which starts this program.

Standard output carries messages of the protocol and nothing else. A start that fails is told on standard error, with a
non-zero exit: 2 for wrong usage, 1 for the rest. The coding agent is not looked at before the editor has been answered
once, since that takes longer than the answer; what is wrong with it then is told to whoever wants a session.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from trunkline.agents import registry
from trunkline.base.claim import claim
from trunkline.base.paths import unusable
from trunkline.cli import agent_options, log_format, opening
from trunkline.cli.agent_options import EXIT_FAILED, EXIT_USAGE
from trunkline.cli.arguments import HelpFormatter, Parser, UsageError, count
from trunkline.cli.session_start import SessionStart
from trunkline.core.faults import Fault, MissingKey, NoModel
from trunkline.models.providers import PROVIDERS
from trunkline.wires.acp.codec import MAX_LINE

if TYPE_CHECKING:
    from trunkline.wires.acp.login import LoginMethod
    from trunkline.wires.acp.stdio import AcpStdio

logger = logging.getLogger(__name__)

#: No variable stands for these.
FLAGS_ONLY = ("help", "named", "attach")

#: What is heeded with `--attach`: the rest is for the exchange to say.
ATTACHED = ("named", "agent", "workspace", "max_line", "attach", "log_format")

#: How long an editor may be silent before the agent is looked at all the same.
SILENT_SECONDS = 0.3


def make_parser() -> Parser:
    """What it understands."""
    parser = Parser(
        prog="trunkline acp",
        description="Be an agent for an editor: the Agent Client Protocol on standard input and output.",
        epilog="""examples:
  trunkline acp
  trunkline acp echo
  trunkline acp --provider anthropic --model claude-sonnet-5-5
  trunkline acp scripted --script tour
  trunkline acp helper --attach

Options can also be given as environment variables: --mode is TRUNKLINE_MODE,
--auto-approve is TRUNKLINE_AUTO_APPROVE=1.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    agents = ", ".join((*registry.names(), *registry.FORMS))
    add("agent", nargs="?", metavar="AGENT", help=f"who answers: {agents} (default: coder)")
    add("--agent", dest="named", metavar="NAME", help="the same, as an option")
    agent_options.add_agent_options(parser)
    agent_options.add_session_options(parser)
    agent_options.add_log_options(parser)
    agent_options.add_attach(parser)
    add("--max-line", type=count, default=MAX_LINE, metavar="BYTES", help="the longest message that is accepted")
    return parser


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Flags first, `TRUNKLINE_*` where there is none.

    Raises:
        UsageError: they cannot be understood.
    """
    parser = make_parser()
    options = agent_options.parse(parser, arguments, FLAGS_ONLY, ATTACHED)
    if options.named is not None:
        if options.agent not in (parser.get_default("agent"), options.named):
            raise UsageError(f"name one agent: `{options.agent}` or `{options.named}`")
        options.agent = options.named
    return options


def main(arguments: list[str]) -> NoReturn:
    """Run until the editor closes its end. Exits 0 then, 143 after SIGTERM, 130 after SIGINT, else see the module."""
    redactor = opening.redactor()
    agent_options.log_to_stderr(redactor, "acp")
    try:
        options = _parse(arguments)
        reading, writing = claim()
        if options.attach:
            sys.exit(_attach(options, reading, writing))
        if _agent(options) != opening.DEFAULT_AGENT:
            _check(options)
        else:
            opening.directory(options.workspace)
        sys.exit(agent_options.run(lambda: _serve(options, reading, writing)))
    except UsageError as error:
        _fail(redactor.text(str(error)), EXIT_USAGE)
    except Fault as fault:
        _fail(redactor.text(str(fault)), EXIT_FAILED)
    except OSError as error:
        _fail(redactor.text(unusable(error)), EXIT_FAILED)
    except Exception as error:
        logger.exception("the agent could not be started, or failed badly")
        _fail(redactor.text(f"{type(error).__name__}: {error}"), EXIT_FAILED)


def _tell(text: str, code: int) -> None:
    log_format.complain(text, "Try `trunkline acp --help`." if code == EXIT_USAGE else "")


def _fail(text: str, code: int) -> NoReturn:
    _tell(text, code)
    sys.exit(code)


def _attach(options: argparse.Namespace, reading: int, writing: int) -> int:
    from trunkline.base.attach import AttachHeader
    from trunkline.cli import attaching

    workspace = attaching.workspace(options.workspace)
    header = AttachHeader("acp", options.agent, workspace=workspace, max_line=options.max_line)
    return attaching.relay(header, reading, writing)


def _agent(options: argparse.Namespace) -> str:
    """Who answers."""
    named: str | None = options.agent
    return named or (opening.DEFAULT_AGENT if options.script is None else "scripted")


def _check(options: argparse.Namespace) -> None:
    """See that the agent can be made. That a key is missing is for the editor to be told, who may ask for it.

    Raises:
        ConfigError: it cannot.
    """
    given = {"agent": _agent(options), "session_id": None, "resume": None, "anyway": False}
    try:
        SessionStart(argparse.Namespace(**vars(options) | given))
    except (MissingKey, NoModel) as fault:
        logger.warning("%s", fault)


def _logins(options: argparse.Namespace) -> list[LoginMethod]:
    """How the model's service is opened: by the variable of the provider that was named, or of any."""
    if _agent(options) != opening.DEFAULT_AGENT:
        return []
    named = [options.provider] if options.provider else list(PROVIDERS)
    found = [(name, PROVIDERS[name].variables["api_key"]) for name in named if _has_key(name)]
    return [_login(name, variable) for name, variable in found]


def _has_key(provider: str) -> bool:
    return provider in PROVIDERS and PROVIDERS[provider].has_key


def _login(provider: str, variable: str) -> LoginMethod:
    from trunkline.wires.acp.login import LoginMethod
    from trunkline.wires.acp.messages_start import AuthVariable, EnvVarAuthMethod

    told = EnvVarAuthMethod(
        f"env:{variable}",
        f"API key for {provider}",
        (AuthVariable(variable, f"API key for {provider}"),),
        f"Set {variable} in the environment of `trunkline acp`, and start it again.",
    )
    return LoginMethod(told, lambda: None if os.environ.get(variable) else f"{variable} is not set. {told.description}")


async def _serve(options: argparse.Namespace, reading: int, writing: int) -> int:
    import asyncio

    from trunkline import __version__
    from trunkline.cli.own_sessions import OwnSessions
    from trunkline.wires.acp.serve import AcpServer
    from trunkline.wires.acp.stdio import AcpStdio

    agent = _agent(options)
    sessions = OwnSessions(options, [agent])
    served = AcpStdio(
        (reading, writing),
        lambda output: AcpServer(
            sessions,
            output,
            agent=agent,
            version=__version__,
            logins=_logins(options),
            is_local=True,
            max_line=options.max_line,
        ),
    )
    # What is loaded by now stays: no need to look through it again and again for what can be thrown away.
    gc.freeze()
    gc.enable()
    looking = asyncio.get_running_loop().call_later(SILENT_SECONDS, _look_at, options, served)
    try:
        code = await served.run()
        if code == 0 and not served.was_spoken_to:
            _check(options)
        return code
    finally:
        looking.cancel()
        await sessions.close()


def _look_at(options: argparse.Namespace, served: AcpStdio) -> None:
    """An agent that cannot be had is told before anybody speaks to it. Whoever has spoken already is told otherwise."""
    if served.was_spoken_to:
        return
    try:
        _check(options)
    except Fault as fault:
        if not served.was_spoken_to:
            _tell(opening.redactor().text(str(fault)), EXIT_FAILED)
            served.finish(EXIT_FAILED)
