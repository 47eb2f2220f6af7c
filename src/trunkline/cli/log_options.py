"""The log of a command that serves: how it looks, how much of it, and where it goes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from trunkline.base.config_services import LOG_LEVELS
from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.cli import log_format
from trunkline.cli.agent_options import StderrHandler
from trunkline.core.faults import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


def echo(text: str) -> None:
    """Say something on standard error; with a log for programs, as a line of it."""
    if log_format.is_json():
        log_format.tell(text)
    else:
        click.echo(text, err=True)


def format_option(command: F) -> F:
    """Give a command the option `--log-format`, which holds from then on."""

    def choose(context: click.Context, parameter: click.Parameter, said: str | None) -> None:
        log_format.choose(said)

    return click.option(
        "--log-format",
        type=click.Choice(log_format.FORMATS),
        envvar=log_format.VARIABLE,
        callback=choose,
        expose_value=False,
        # What is wrong with the others is to be told in the same way.
        is_eager=True,
        help="How the log looks: lines for people, or one JSON object per line (default: text).",
    )(command)


def log_options(command: F) -> F:
    """Give a command the options `--log-level`, `--log-file` and `--log-format`."""
    to_file = click.option(
        "--log-file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Append the log to this file, in place of standard error. It may be moved away while we write.",
    )
    level = click.option("--log-level", type=click.Choice(LOG_LEVELS), help="How much is logged (default: warning).")
    return level(to_file(format_option(command)))


def begin(level: str, file: str | None, redactor: Redactor, loggers: Sequence[str]) -> None:
    """Log so much of these loggers of ours, and of all else no more than warnings; without secrets.

    Raises:
        ConfigError: the file cannot be written.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    handler: logging.Handler
    try:
        handler = StderrHandler() if file is None else _to(file)
    except OSError as error:
        raise ConfigError(f"The log cannot be written to `{file}`: {error.strerror}.") from None
    handler.setLevel(number)
    log_format.prepare(handler, logging.Formatter(log_format.TEXT))
    handler.addFilter(RedactingFilter(redactor))
    logging.getLogger().addHandler(handler)
    for name in loggers:
        logging.getLogger(name).setLevel(number)


def _to(path: str) -> logging.Handler:
    from trunkline.cli.log_file import LogFile

    return LogFile(path)
