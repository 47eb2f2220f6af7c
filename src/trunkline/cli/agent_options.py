"""What the commands share that are an agent for another program: their options, their log, their event loop.

Every option is a flag and, where there is none, a `TRUNKLINE_*` variable.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from trunkline.base import log_context
from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.base.vocabulary import DEFAULT_ALLOW, EFFORTS, SANDBOX_MODES
from trunkline.base.writing import write_or_drop
from trunkline.cli import log_format, opening, traced
from trunkline.cli.arguments import Parser, UsageError, count, count_or_none, joined
from trunkline.models.providers import NAMES, PROVIDERS

#: What a variable may say for a flag without a value.
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")

EXIT_FAILED = 1
EXIT_USAGE = 2


def add_agent_options(parser: Parser) -> None:
    """What the agent is, and where it works."""
    add = parser.add_argument
    add("--script", metavar="FILE", help="what the scripted agent plays: a file, or the name of a bundled script")
    add(
        "--provider",
        metavar="NAME",
        help=f"whose model answers: {', '.join(NAMES)} (mock needs neither model nor key), or one of the "
        "configuration file",
    )
    add("--model", metavar="ID", help="the model")
    add("--max-tokens", type=count, metavar="N", help="the model's longest answer, in tokens")
    add(
        "--max-turns",
        type=count_or_none,
        metavar="N",
        help="how often the model may use tools for one message; 0 for no limit",
    )
    add("--base-url", metavar="URL", help="the provider's base URL")
    add("--profile", metavar="NAME", help="a profile from the configuration file")
    add(
        "--thinking-budget",
        type=count_or_none,
        metavar="N",
        help="tokens that the model may spend on thinking; 0 for none",
    )
    add("--effort", choices=EFFORTS, help="how hard the model thinks, if it supports that")
    add("--sandbox", choices=SANDBOX_MODES, help="whether commands run in a sandbox; `auto`: where it can be had")
    add("--system-prompt", metavar="TEXT", help="instructions for the agent")
    add("--workspace", metavar="PATH", help="the directory to work in (default: the current one)")


def add_session_options(parser: Parser) -> None:
    """What is kept, and what may be done unasked."""
    add = parser.add_argument
    add("--no-session", action="store_true", help="keep nothing: no session id, no log")
    add(
        "--auto-approve",
        action="store_true",
        help="begin in the mode `yolo`: approve every tool until the mode is changed",
    )
    add("--mode", choices=("default", "auto_edit", "yolo", "plan"), help="the approval mode to begin with")
    add(
        "--allow",
        metavar="TOOLS",
        help=f"more tools that need no approval (besides, usually, {', '.join(DEFAULT_ALLOW)}), separated by commas",
    )


def add_log_options(parser: Parser) -> None:
    """How the log looks."""
    parser.add_argument(
        "--log-format",
        choices=log_format.FORMATS,
        help="lines for people, or one JSON object per line, on standard error (default: text)",
    )


def add_attach(parser: Parser) -> None:
    """Be no agent, and join one."""
    parser.add_argument(
        "--attach",
        action="store_true",
        help="relay to the exchange that runs here: the agent is one of its agents, and the session lives there",
    )


def parse(
    parser: Parser, arguments: list[str], flags_only: tuple[str, ...], attached: tuple[str, ...] = ()
) -> argparse.Namespace:
    """Flags first, `TRUNKLINE_*` where there is none. No variable stands for those named in `flags_only`.

    With `--attach` only those named in `attached` count, and no variables: hosts give others whatever the agent is, so
    that is told and no error.

    Raises:
        Usage: they cannot be understood.
    """
    if "--attach" in arguments:
        options = _heard(parser.parse_args(joined(parser, arguments)))
        _tell_what_is_not_heeded(parser, options, attached)
        return options
    for action in parser.actions:
        name = "TRUNKLINE_" + action.dest.upper()
        if action.dest not in flags_only and name in os.environ:
            parser.set_defaults(**{action.dest: _checked(action, os.environ[name], name)})
    return _heard(parser.parse_args(joined(parser, arguments)))


def _heard(options: argparse.Namespace) -> argparse.Namespace:
    """The same: what they say of the log holds at once."""
    log_format.choose(getattr(options, "log_format", None))
    return options


def _tell_what_is_not_heeded(parser: Parser, options: argparse.Namespace, attached: tuple[str, ...]) -> None:
    from trunkline.cli.attaching import not_heeded

    given = (name for name in vars(options) if getattr(options, name) != parser.get_default(name))
    not_heeded(name for name in given if name not in attached)


def _checked(action: argparse.Action, text: str, name: str) -> Any:
    if action.nargs == 0:
        if text.lower() not in (*_ON, *_OFF):
            raise UsageError(f"{name}: must be one of {', '.join(filter(None, (*_ON, *_OFF)))}, not `{text}`")
        return text.lower() in _ON
    if action.choices is not None and text not in action.choices:
        raise UsageError(f"{name}: must be one of {', '.join(action.choices)}, not `{text}`")
    try:
        return action.type(text) if callable(action.type) else text
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{name}: {error}") from None


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """What only an agent with a model understands."""
    return {name: getattr(options, name) for name in opening.MODEL_OPTIONS}


def with_variables(options: dict[str, Any]) -> dict[str, Any]:
    """For agents that have no configuration of their own: what no flag said, as the provider's own variables say it."""
    provider = PROVIDERS.get(options["provider"] or "")
    for name, variable in provider.variables.items() if provider is not None else ():
        if options.get(name) is None:
            options[name] = os.environ.get(variable) or None
    return options


class StderrHandler(logging.Handler):
    """Writes to standard error without ever waiting for its reader: a host that does not read it loses lines."""

    def __init__(self) -> None:
        super().__init__()
        self._write = write_or_drop(2)

    def emit(self, record: logging.LogRecord) -> None:
        self._write(self.format(record).encode(errors="backslashreplace") + b"\n")


class EnvironmentFilter:
    """Masks the secrets of the environment in a log; it learns them when there is something to log."""

    _known: RedactingFilter | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        self._known = self._known or RedactingFilter(opening.redactor())
        return self._known.filter(record)


def guard_log() -> None:
    """Mask secrets also where a command sets up no log: Python prints its warnings nevertheless."""
    last = logging.lastResort
    if last is not None and not any(isinstance(each, EnvironmentFilter) for each in last.filters):
        last.addFilter(EnvironmentFilter())


class PlainFormatter(logging.Formatter):
    """A record among words for people: what it is, and what it says, without a time or the name of a module."""

    def format(self, record: logging.LogRecord) -> str:
        """`Warning: MESSAGE`, with the traceback of what is a defect."""
        return f"{record.levelname.capitalize()}: {super().format(record)}"


def log_to_stderr(redactor: Redactor, wire: str = "") -> None:
    """Log there, without secrets; on a screen, in words for people; for programs, as JSON, if that is asked for.

    `wire`: the one that all is about.
    """
    if wire:
        log_context.of_process["wire"] = wire
    handler = StderrHandler()
    log_format.prepare(handler, PlainFormatter() if os.isatty(2) else logging.Formatter(log_format.TEXT))
    handler.addFilter(RedactingFilter(redactor))
    logging.getLogger().addHandler(handler)


def run(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run the command to its exit code, which nothing changes any more.

    `work` is called when there is a loop to run it: a signal that comes before leaves no coroutine that nobody awaited.
    """
    with traced.by_environment():
        return _run(work)


def _run(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    import asyncio

    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(work())
    # The exit code is decided: a signal that comes now must not change it.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    if any(not task.done() for task in asyncio.all_tasks(loop)):
        # An agent that ignores even its cancellation does not keep us here.
        os._exit(code)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    return code
