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
from trunkline.base import paths, stdio
from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.core.agent import Agent
from trunkline.core.approvals import DEFAULT_ALLOW, Policy
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.ids import new_id
from trunkline.core.log import EventLog, MemoryLog
from trunkline.core.redaction import redacting
from trunkline.core.session import Session
from trunkline.store.files import FileStore
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.stdio import StdioServer

logger = logging.getLogger(__name__)

#: The variables that a host sets for each provider, by the option that they stand for. The first is needed.
PROVIDERS: dict[str, dict[str, str]] = {
    "anthropic": {"api_key": "ANTHROPIC_API_KEY", "base_url": "ANTHROPIC_BASE_URL"},
    "openai": {"api_key": "OPENAI_API_KEY", "base_url": "OPENAI_BASE_URL"},
    "bedrock": {
        "region": "AWS_REGION",
        "access_key_id": "AWS_ACCESS_KEY_ID",
        "secret_access_key": "AWS_SECRET_ACCESS_KEY",
        "profile": "AWS_PROFILE",
    },
    "vertex": {
        "project": "VERTEX_PROJECT_ID",
        "region": "VERTEX_REGION",
        "credentials": "GOOGLE_APPLICATION_CREDENTIALS",
    },
    "local": {},
    "mock": {},
}

#: What only an agent with a model understands.
_MODEL_OPTIONS = ("provider", "model", "max_tokens", "max_turns", "base_url")

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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="trunkline agent",
        description="Be an agent for a host program: JSON lines on standard input and output.",
        epilog="""examples:
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
    add("--agent", metavar="NAME", help=f"who answers: {', '.join((*registry.names(), *registry.FORMS))}")
    add("--script", metavar="FILE", help="what the scripted agent plays: a file, or the name of a bundled script")
    add("--provider", choices=sorted(PROVIDERS), help="whose model answers; `mock` needs neither model nor key")
    add("--model", metavar="ID", help="the model")
    add("--max-tokens", type=_count, metavar="N", help="the longest answer of the model, in tokens")
    add("--max-turns", type=_count, metavar="N", help="how often the model may use tools for one message")
    add("--base-url", metavar="URL", help="where the provider is reached")
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
    redactor = Redactor.from_environ(os.environ)
    _log_to_stderr(redactor)
    try:
        options = _parse(arguments)
        sys.exit(_run(options, reading, writing, redactor))
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


def _run(options: argparse.Namespace, reading: int, writing: int, redactor: Redactor) -> int:
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_serve(options, reading, writing, redactor))
    # The exit code is decided: a signal that comes now must not change it.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    if any(not task.done() for task in asyncio.all_tasks(loop)):
        # An agent that ignores even its cancellation does not keep us here.
        os._exit(code)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    return code


async def _serve(options: argparse.Namespace, reading: int, writing: int, redactor: Redactor) -> int:
    workspace = _workspace(options)
    agent = _agent(options)
    allow = DEFAULT_ALLOW if options.allow is None else tuple(filter(None, options.allow.split(",")))
    policy = Policy(auto_approve=options.auto_approve, allow=allow)
    log = _session_log(options, workspace)
    try:
        session = await Session.open(
            agent,
            log,
            policy,
            resume=options.resume is not None,
            mode=options.mode,
            workspace=workspace,
            instructions=options.system_prompt,
            options=_model_options(options),
            redact=redacting(redactor) if redactor else None,
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


def _workspace(options: argparse.Namespace) -> str:
    workspace = os.path.realpath(options.workspace or ".")
    if not os.path.isdir(workspace):
        raise ConfigError(f"`--workspace`: `{workspace}` is not a directory.")
    return workspace


def _agent(options: argparse.Namespace) -> Agent:
    """Who answers.

    Raises:
        ConfigError: nobody can, as configured.
    """
    if options.agent is not None or options.script is not None:
        return registry.make(options.agent or "scripted", {"script": options.script})
    if options.provider in (None, "mock"):
        return registry.make("echo", {})
    needed = next(iter(PROVIDERS[options.provider].values()), None)
    if needed is not None and not os.environ.get(needed):
        raise ConfigError(f"{needed} not set")
    raise ConfigError(
        f"Provider `{options.provider}` needs the coding agent, which this version does not have yet.",
        hint="Use `--provider mock`, `--agent echo` or `--agent scripted`.",
    )


def _model_options(options: argparse.Namespace) -> dict[str, Any]:
    """What only an agent with a model understands: from flags, else from the provider's own variables."""
    found = {name: getattr(options, name) for name in _MODEL_OPTIONS}
    for name, variable in PROVIDERS.get(options.provider or "", {}).items():
        if found.get(name) is None:
            found[name] = os.environ.get(variable) or None
    return found


def _session_log(options: argparse.Namespace, workspace: str) -> EventLog:
    """The log to write, held by this process from here on."""
    if options.no_session:
        return MemoryLog(new_id(), keep=0)
    store = FileStore(paths.sessions_dir())
    if options.resume is not None:
        return store.open(store.latest(workspace) if options.resume == "latest" else options.resume)
    return store.create(new_id() if options.session_id is None else options.session_id, workspace)
