"""The log of a command that serves: how much of it, and where it goes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from typing import Any, TypeVar

import click

from trunkline.base.redact import RedactingFilter, Redactor
from trunkline.cli import serving
from trunkline.cli.agent_options import StderrHandler
from trunkline.core.faults import ConfigError

LEVELS = ("debug", "info", "warning", "error")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: F) -> F:
    """Give a command the options `--log-level` and `--log-file`."""
    to_file = click.option(
        "--log-file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Append the log to this file, in place of standard error. It may be moved away while we write.",
    )
    level = click.option(
        "--log-level", type=click.Choice(LEVELS), default="warning", show_default=True, help="How much is logged."
    )
    return level(to_file(command))


def begin(level: str, file: str | None, redactor: Redactor, loggers: Sequence[str]) -> None:
    """Log so much of these loggers of ours, and of all else no more than warnings; without secrets.

    Raises:
        ConfigError: the file cannot be written.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    handler: logging.Handler
    try:
        handler = StderrHandler() if file is None else _File(file)
    except OSError as error:
        raise ConfigError(f"The log cannot be written to `{file}`: {error.strerror}.") from None
    handler.setLevel(number)
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(RedactingFilter(redactor))
    logging.getLogger().addHandler(handler)
    for name in loggers:
        logging.getLogger(name).setLevel(number)


class _File(WatchedFileHandler):
    """A file that nobody else reads, and that others may move away. Without room for more, that is told once."""

    _told = False

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # its name in `logging`
        if not self._told:
            self._told = True
            serving.told(f"The log cannot be written to `{self.baseFilename}` any more.")
