"""`trunkline agentproc serve AGENT`: any agent as a process that a chat bridge spawns for every message.

Standard output carries protocol lines and nothing else. A start that fails is one error line there, for the person in
the chat, the same in words on standard error, and a non-zero exit: 2 for wrong usage, 1 for the rest.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from trunkline.agents import registry
from trunkline.agents.with_model import made
from trunkline.base import trace_context
from trunkline.base.claim import claim
from trunkline.base.redact import Redactor
from trunkline.base.signals import exit_on_signals
from trunkline.base.values import Value
from trunkline.cli import agent_options, log_format, opening
from trunkline.cli.agent_options import EXIT_FAILED, EXIT_USAGE
from trunkline.cli.arguments import HelpFormatter, Parser, UsageError
from trunkline.core.agent import Agent
from trunkline.core.faults import ConfigError, Fault, SessionNotFound
from trunkline.core.session import Session
from trunkline.store.waiting import until_free
from trunkline.wires.agentproc import codec, codec_ndjson, serve_files, serve_input
from trunkline.wires.agentproc.messages import DEFAULT_SESSION_NAME, DIALECTS, Dialect, TurnRequest
from trunkline.wires.agentproc.serve import Witness, user_message
from trunkline.wires.agentproc.serve_dialects import dialect_writer
from trunkline.wires.agentproc.serve_stdio import TurnServer

logger = logging.getLogger(__name__)

#: No variable stands for these.
FLAGS_ONLY = ("help", "attach")

#: What is heeded with `--attach`: the rest is for the exchange to say.
ATTACHED = ("agent", "workspace", "protocol", "no_fetch", "allow_private_urls", "verbose", "attach", "log_format")

#: What an exception says that nobody foresaw is for whoever reads the log.
_NOT_STARTED = "The agent could not be started, or failed badly. Its log says why."
NO_TURN = "There is no message."
NO_TURN_HINT = (
    "A bridge sets `AGENT_MESSAGE` (0.1) or writes a line (0.4). By hand: `AGENT_MESSAGE=hello trunkline ...`."
)


class _Told(Value):
    """What the bridge said at the start."""

    dialect: Dialect
    turn: TurnRequest
    rest: bytes = b""
    """What came behind the turn on standard input."""


def make_parser() -> Parser:
    """What it understands."""
    parser = Parser(
        prog="trunkline agentproc serve",
        description="Be an agent for a chat bridge: one message in, lines out, one process per message.",
        epilog="""examples:
  AGENT_MESSAGE=hello trunkline agentproc serve echo
  trunkline agentproc serve coder --workspace ~/project --mode auto_edit
  trunkline agentproc serve my_module:MyAgent
  trunkline agentproc serve scripted:tour
  trunkline agentproc serve helper --attach

Options can also be given as environment variables: --mode is TRUNKLINE_MODE,
--auto-approve is TRUNKLINE_AUTO_APPROVE=1.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    agents = ", ".join((*registry.names(), *registry.FORMS))
    add("agent", metavar="AGENT", nargs="?", help=f"who answers: {agents} (default: coder)")
    agent_options.add_agent_options(parser)
    agent_options.add_session_options(parser)
    agent_options.add_log_options(parser)
    agent_options.add_attach(parser)
    add(
        "--protocol",
        choices=(*DIALECTS, "auto"),
        default="auto",
        help="how the bridge talks: variables and lines (0.1), JSON lines (0.4), or what it begins with (default)",
    )
    add("--no-fetch", action="store_true", help="do not download attachments: pass their addresses to the agent")
    add(
        "--allow-private-urls",
        action="store_true",
        help="also fetch attachments from this machine and its network: anyone in the chat can name an address",
    )
    add("--verbose", action="store_true", help="log tools, notices and signs of life to standard error, too")
    return parser


def main(arguments: list[str]) -> NoReturn:
    """Answer one message. Exits 0 if that worked, 143 after SIGTERM, 130 after SIGINT, 141 if nobody reads us."""
    exit_on_signals()
    # The agent's own children have no business with the turn.
    told = {name: value for name in codec.VARIABLES if (value := os.environ.pop(name, None)) is not None}
    redactor = opening.redactor()
    agent_options.log_to_stderr(redactor, "agentproc")
    failing = _Failing(serve_input.dialect_of(told), redactor)
    try:
        options = agent_options.parse(make_parser(), arguments, FLAGS_ONLY, ATTACHED)
        if options.protocol != "auto":
            failing.dialect = options.protocol
        if options.verbose:
            logging.getLogger("trunkline").setLevel(logging.INFO)
        reading, failing.writing = _claim()
        heard = _listen(failing.dialect, told, reading, explicit=options.protocol != "auto")
        if options.attach:
            sys.exit(_attach(options, heard, (reading, failing.writing)))
        sys.exit(agent_options.run(lambda: _serve(options, heard, (reading, failing.writing))))
    except UsageError as error:
        failing.fail(f"{error}.", EXIT_USAGE)
    except Fault as fault:
        failing.fail(str(fault), EXIT_FAILED)
    except OSError as error:
        logger.error("%s", error)
        failing.fail(_NOT_STARTED, EXIT_FAILED)
    except Exception:
        logger.exception("the agent could not be started, or failed badly")
        failing.fail(_NOT_STARTED, EXIT_FAILED)


class _Failing:
    """How to say that nothing came of it: to the person in the chat and to the one who reads the log."""

    def __init__(self, dialect: Dialect, redactor: Redactor) -> None:
        self.dialect: Dialect = dialect
        self.writing = 1
        self._redactor = redactor

    def fail(self, text: str, code: int) -> NoReturn:
        text = self._redactor.text(text)
        # Somebody who tries it in a terminal reads standard error.
        if self.writing != 1 or not _is_terminal(1):
            line = codec.encode_error(text) if self.dialect == "0.1" else codec_ndjson.encode_error(text)
            with suppress(OSError):
                os.write(self.writing, line)
        log_format.complain(text, "Try `trunkline agentproc serve --help`." if code == EXIT_USAGE else "")
        sys.exit(code)


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _claim() -> tuple[int, int]:
    try:
        # In 0.1 nobody needs standard input.
        return claim(needs_input=False)
    except OSError:
        raise ConfigError("Standard output is closed.") from None


def _listen(dialect: Dialect, told: dict[str, str], reading: int, *, explicit: bool) -> _Told:
    """Hear the turn. In 0.1 standard input is not touched, unless the message was too long for a variable."""
    if dialect == "0.1":
        if (remark := serve_input.odd_version(told)) is not None:
            logger.warning("%s", remark)
        return _Told(dialect, serve_input.environment_turn(told, lambda: serve_input.whole_input(reading)))
    if not explicit and _is_terminal(reading):
        raise ConfigError(NO_TURN, hint=NO_TURN_HINT)
    try:
        line, rest = serve_input.first_line(reading)
    except serve_input.NoTurn:
        raise ConfigError(NO_TURN, hint=NO_TURN_HINT) from None
    return _Told(dialect, codec_ndjson.decode_turn(line), rest)


def _attach(options: argparse.Namespace, told: _Told, pipes: tuple[int, int]) -> int:
    from trunkline.base import shapes
    from trunkline.base.attach import AttachHeader
    from trunkline.cli import attaching

    user_message(told.turn)
    header = AttachHeader(
        "agentproc",
        options.agent,
        resume=codec.own_id(told.turn.session_id) if told.turn.session_id else None,
        workspace=attaching.workspace(options.workspace),
        dialect=told.dialect,
        turn=shapes.encode(told.turn),
        fetch=not options.no_fetch,
        private_urls=options.allow_private_urls,
    )
    reading = pipes[0] if told.turn.permission else None
    return attaching.relay(header, reading, pipes[1], told.rest, tells_end=False, stops=True)


async def _serve(options: argparse.Namespace, told: _Told, pipes: tuple[int, int]) -> int:
    turn = told.turn
    # That there is nothing to answer is found out before there is an agent.
    user_message(turn)
    workspace = opening.directory(options.workspace)
    with_model = agent_options.model_options(options)
    agent = await _agent(options, workspace, with_model)
    options.no_session = options.no_session or not opening.keeps_sessions(agent, workspace)
    fetching = serve_files.brought(
        turn,
        images=agent.capabilities.images is not False,
        private=options.allow_private_urls,
        enabled=not options.no_fetch,
    )
    async with fetching as message:
        session = await _session(options, turn, agent, with_model)
        named = "" if options.no_session else _portable(turn.session_id, session.id)
        # One message, one process: it belongs where whoever started us is.
        trace_context.enter(trace_context.from_environ(os.environ))
        server = TurnServer(session, dialect_writer(told.dialect, named, streaming=turn.streaming), pipes[1])
        if turn.permission:
            server.listen(pipes[0], told.rest)
        return await server.run(message)


async def _session(options: argparse.Namespace, turn: TurnRequest, agent: Agent, with_model: dict[str, Any]) -> Session:
    """The conversation that the turn belongs to.

    Raises:
        ConfigError: it cannot be opened.
    """
    workspace = opening.directory(options.workspace)
    take = partial(_session_log, turn, workspace, agent.name, kept=not options.no_session)
    opened = await until_free(take, tell=lambda text: logger.warning("%s", text))
    try:
        policy = opening.policy(options.allow, agent=agent, interactive=turn.permission)
        return await Session.open(
            agent,
            opened.log,
            policy,
            resume=opened.resumed,
            mode=opening.first_mode(options.mode, auto_approve=options.auto_approve),
            workspace=workspace,
            # One that says nothing leaves it to us: all conversations would have it.
            name="" if turn.session_name == DEFAULT_SESSION_NAME else turn.session_name,
            instructions=options.system_prompt,
            options=agent_options.with_variables(with_model),
            redact=Witness(opening.redactor(agent)),
        )
    except BaseException:
        opened.give_up()
        raise


async def _agent(options: argparse.Namespace, workspace: str, with_model: dict[str, Any]) -> Agent:
    """Who answers. If a model had to be found for it, that is told on standard error.

    Raises:
        ConfigError: nobody can, as configured.
    """
    make = partial(opening.make_agent, options.agent, options.script, workspace)
    agent, found = await made(make, with_model, os.environ)
    if found is not None:
        log_format.tell(found.told)
    return agent


def _session_log(turn: TurnRequest, workspace: str, agent: str, *, kept: bool) -> opening.OpenedLog:
    """The log of a new conversation, or of the one that the bridge names.

    Raises:
        ConfigError: it is not there, another process has it, or it is another agent's.
    """
    resume = codec.own_id(turn.session_id) if turn.session_id and kept else None
    try:
        if resume == opening.LATEST:
            # A word of ours, and no name that a bridge can have been given.
            raise SessionNotFound(resume)
        return opening.session_log(workspace, session_id=None, resume=resume, kept=kept, agent=agent, roams=True)
    except opening.OfAnotherAgent as error:
        text = f"This conversation is with `{error.agent}`, and here is `{agent}`."
        raise ConfigError(text, hint="Begin a new conversation.") from None
    except SessionNotFound:
        shown = turn.session_id[: codec.SHOWN_CHARS]
        raise SessionNotFound(
            f"Session not found: `{shown}` is not known here.", hint="Begin a new conversation."
        ) from None


def _portable(given: str, own: str) -> str:
    """The id for the bridge: the one that it has, if it can be one."""
    return given if codec.is_session_id(given) else codec.portable_id(own)
