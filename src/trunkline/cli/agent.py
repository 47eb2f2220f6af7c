"""`trunkline agent --json-stream`: an agent that a host program spawns and talks to in JSON lines.

Standard output carries protocol lines and nothing else, from the first byte: a start that fails is one `config_error`
line there, the same in words on standard error, and a non-zero exit (2 for wrong usage, 1 for the rest).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

from trunkline.agents import registry
from trunkline.base import stdio
from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.cli import opening
from trunkline.core.approvals import DEFAULT_ALLOW
from trunkline.core.faults import Fault
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.models.providers import VARIABLES
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.stdio import StdioServer

logger = logging.getLogger(__name__)

#: No variable stands for these. A session is one process's own: its name must not reach children by accident.
FLAGS_ONLY = ("help", "json_stream", "session_id", "resume")

DEFAULT_WIDTH, MIN_WIDTH = 80, 40

#: What a variable may say for a flag without a value.
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")

EXIT_FAILED = 1
EXIT_USAGE = 2


class _Usage(Exception):
    """The command line is wrong."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, without the imports that the standard library's way of asking would cost."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", "")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = DEFAULT_WIDTH
    return max(MIN_WIDTH, columns) - 2


class _Parser(argparse.ArgumentParser):
    """Leaves it to `main` to say what is wrong, and where."""

    def error(self, message: str) -> NoReturn:
        raise _Usage(message)


def _count(text: str) -> int:
    """A number from 1 on."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 on")
    return int(text)


def _count_or_none(text: str) -> int:
    """A number from 0 on."""
    return 0 if text.strip() == "0" else _count(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
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
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--json-stream", action="store_true", help="speak the JSON stream protocol (the only way, for now)")
    agents = ", ".join((*registry.names(), *registry.FORMS))
    add("--agent", metavar="NAME", help=f"who answers: {agents} (default: coder)")
    add("--script", metavar="FILE", help="what the scripted agent plays: a file, or the name of a bundled script")
    add(
        "--provider",
        metavar="NAME",
        help="whose model answers: anthropic, openai, bedrock, vertex, local, mock (which needs neither model nor "
        "key), or one of the configuration file",
    )
    add("--model", metavar="ID", help="the model")
    add("--max-tokens", type=_count, metavar="N", help="the longest answer of the model, in tokens")
    add("--max-turns", type=_count, metavar="N", help="how often the model may use tools for one message")
    add("--base-url", metavar="URL", help="where the provider is reached")
    add("--profile", metavar="NAME", help="a profile of the configuration file")
    add("--thinking-budget", type=_count_or_none, metavar="N", help="tokens that the model may think; 0 for none")
    add("--effort", choices=("low", "medium", "high"), help="how hard the model is to think, where it knows that")
    add("--system-prompt", metavar="TEXT", help="instructions for the agent")
    add("--workspace", metavar="PATH", help="the directory to work in (default: the current one)")
    add("--session-id", metavar="ID", help="begin a session under this id; an error if it exists")
    add("--resume", metavar="ID", help="go on with a session; `latest` is the one used last in this workspace")
    add("--no-session", action="store_true", help="keep nothing: no session id, no log")
    add("--auto-approve", action="store_true", help="approve every tool, whatever the mode")
    add("--mode", choices=("default", "auto_edit", "yolo"), help="the approval mode to begin with")
    add(
        "--allow",
        metavar="TOOLS",
        help=f"tools that need no approval, separated by commas (default: {','.join(DEFAULT_ALLOW)}; '' for none)",
    )
    add("--max-line", type=_count, default=codec.MAX_LINE, metavar="BYTES", help="the longest command that is read")
    return parser


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Flags first, `TRUNKLINE_*` where there is none.

    Raises:
        _Usage: they cannot be understood.
    """
    parser = _parser()
    for action in parser._actions:
        name = "TRUNKLINE_" + action.dest.upper()
        if action.dest not in FLAGS_ONLY and name in os.environ:
            parser.set_defaults(**{action.dest: _checked(parser, action, os.environ[name], name)})
    options = parser.parse_args(_joined(parser, arguments))
    if not options.json_stream:
        raise _Usage("say how to talk: `--json-stream`")
    if options.session_id is not None and options.resume is not None:
        raise _Usage("Cannot use --resume and --session-id together")
    if options.no_session and (options.session_id is not None or options.resume is not None):
        raise _Usage("Cannot use --no-session with --session-id or --resume")
    return options


def _joined(parser: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    """`--session-id -abc` as `--session-id=-abc`: a value may begin with anything."""
    takes_value = {name for action in parser._actions if action.nargs is None for name in action.option_strings}
    joined: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        value = next(rest, None) if argument in takes_value else None
        joined.append(argument if value is None else f"{argument}={value}")
    return joined


def _checked(parser: argparse.ArgumentParser, action: argparse.Action, text: str, name: str) -> Any:
    if action.nargs == 0:
        if text.lower() not in (*_ON, *_OFF):
            raise _Usage(f"{name}: must be one of {', '.join(filter(None, (*_ON, *_OFF)))}, not `{text}`")
        return text.lower() in _ON
    try:
        value = parser._get_value(action, text)
        parser._check_value(action, value)
    except argparse.ArgumentError as error:
        raise _Usage(f"{name}: {error.message}") from None
    return value


def main(arguments: list[str]) -> NoReturn:
    """Run until the host closes its end. Exits 0 then, 143 after SIGTERM, 130 after SIGINT, else see the module."""
    streaming = "--json-stream" in arguments
    try:
        reading, writing = stdio.claim() if streaming else (0, 1)
    except OSError:
        _fail(1, streaming, "Standard input and output must both be open.", EXIT_FAILED)
    redactor = opening.redactor()
    _log_to_stderr(redactor)
    try:
        options = _parse(arguments)
        sys.exit(_run(options, reading, writing))
    except _Usage as error:
        _fail(writing, streaming, redactor.text(str(error)), EXIT_USAGE)
    except Fault as fault:
        _fail(writing, streaming, redactor.text(str(fault)), EXIT_FAILED, retryable=fault.retryable)
    except Exception as error:
        if not isinstance(error, OSError):
            logger.exception("the agent could not be started, or failed badly")
        _fail(writing, streaming, redactor.text(f"{type(error).__name__}: {error}"), EXIT_FAILED)


class _StderrHandler(logging.Handler):
    """Writes to standard error without ever waiting for its reader: a host that does not read it loses lines."""

    def __init__(self) -> None:
        super().__init__()
        self._write = stdio.write_or_drop(2)

    def emit(self, record: logging.LogRecord) -> None:
        self._write(self.format(record).encode(errors="backslashreplace") + b"\n")


def _log_to_stderr(redactor: Redactor) -> None:
    handler = _StderrHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(RedactingFilter(redactor))
    logging.getLogger().addHandler(handler)


def _fail(writing: int, streaming: bool, text: str, code: int, *, retryable: bool = False) -> NoReturn:
    # Whatever kept the agent from starting, to the host it is a matter of configuration.
    if streaming:
        body = messages.ErrorBody("config_error", text, retryable)
        with suppress(OSError):
            os.write(writing, codec.encode(messages.Error(None, body)))
    advice = "" if streaming else "Try `trunkline agent --help`.\n"
    stdio.write_or_drop(2)(f"trunkline agent: {text}\n{advice}".encode(errors="backslashreplace"))
    sys.exit(code)


def _run(options: argparse.Namespace, reading: int, writing: int) -> int:
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_serve(options, reading, writing))
    # The exit code is decided: a signal that comes now must not change it.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    if any(not task.done() for task in asyncio.all_tasks(loop)):
        # An agent that ignores even its cancellation does not keep us here.
        os._exit(code)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    return code


async def _serve(options: argparse.Namespace, reading: int, writing: int) -> int:
    workspace = opening.directory(options.workspace)
    log = opening.session_log(
        workspace, session_id=options.session_id, resume=options.resume, kept=not options.no_session
    )
    try:
        model_options = {name: getattr(options, name) for name in opening.MODEL_OPTIONS}
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
            options=_with_variables(model_options),
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


def _with_variables(options: dict[str, Any]) -> dict[str, Any]:
    """For agents that have no configuration of their own: what no flag said, as the provider's own variables say it."""
    for name, variable in VARIABLES.get(options["provider"] or "", {}).items():
        if options.get(name) is None:
            options[name] = os.environ.get(variable) or None
    return options
