"""How a log looks: lines for people, or for programs one JSON object per line (`TRUNKLINE_LOG_FORMAT=json`).

    {"ts":"2026-11-18T09:30:00.125Z","level":"warning","logger":"trunkline.core.performer","message":"...","session":"s1"}

That goes for all that a command which runs for long says on standard error: its log, its first words, its last ones.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.base.writing import write_or_drop

if TYPE_CHECKING:
    from types import TracebackType

FORMATS = ("text", "json")
VARIABLE = "TRUNKLINE_LOG_FORMAT"
#: Lines of a log for people, where they are not on a screen.
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
#: Whose lines those are that no logger writes.
LOGGER = "trunkline.cli"

_LEVEL = re.compile(r"(Error|Warning): ", re.IGNORECASE)

_said: str | None = None


def choose(said: str | None) -> None:
    """Take what a flag says; None: the variable decides."""
    global _said
    _said = said
    logging.captureWarnings(was_asked_for())


def is_json() -> bool:
    """Whether lines are for programs. A variable that says anything else than `json` means lines for people."""
    return (_said or os.environ.get(VARIABLE, "")) == "json"


def was_asked_for() -> bool:
    """Whether a command that can write lines for programs was told to."""
    return _said == "json"


def tell(text: str) -> None:
    """Say something on standard error, if anybody hears it: as it is, or as a line of the log.

    What begins with `Error: ` or `Warning: ` has that level, and does not say so twice.
    """
    if is_json():
        found = _LEVEL.match(text)
        level = found[1].lower() if found is not None else "info"
        text = _line(time.time(), level, LOGGER, {"message": text[found.end() if found is not None else 0 :].strip()})
    write_or_drop(2)(f"{text}\n".encode(errors="backslashreplace"))


def complain(text: str, advice: str = "") -> None:
    """Say why nothing comes of it, and in a line of its own what to do about that."""
    tell("\n".join(filter(None, (f"Error: {text}", advice))))


class LogFormatter(logging.Formatter):
    """Writes lines for people by another formatter, and lines for programs itself."""

    def __init__(self, for_people: logging.Formatter) -> None:
        super().__init__()
        self._for_people = for_people

    def format(self, record: logging.LogRecord) -> str:
        """The line. Asked anew for each: a command may log before it has read its flags."""
        if not is_json():
            return self._for_people.format(record)
        rest: dict[str, Any] = {"message": record.getMessage(), **getattr(record, _MEMBERS, {})}
        # Made by the filter that takes out secrets, if it knows any.
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            rest["error"] = record.exc_text
        if record.stack_info:
            rest["stack"] = record.stack_info
        return _line(record.created, record.levelname, record.name, rest)


def prepare(handler: logging.Handler, for_people: logging.Formatter) -> None:
    """Let a handler write what is asked for. To be called before it is given filters that take out secrets."""
    handler.setFormatter(LogFormatter(for_people))
    handler.addFilter(_note)
    sys.excepthook = _uncaught


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What nobody caught is a line of the log, too, if that is for programs."""
    if is_json() and issubclass(kind, Exception):
        logging.getLogger(LOGGER).critical("It ended unexpectedly.", exc_info=(kind, error, trace))
    else:
        sys.__excepthook__(kind, error, trace)


#: Where a record has what is known of it.
_MEMBERS = "log_context"


def _note(record: logging.LogRecord) -> bool:
    """Note on a record what is known where it is made."""
    if is_json():
        from trunkline.base import log_context, trace_context

        found = log_context.known(record.name)
        found |= {name: vars(record)[name] for name in log_context.FIELDS if name in vars(record)}
        members = {name: found[name] for name in log_context.FIELDS if name in found}
        setattr(record, _MEMBERS, {**members, **trace_context.ids()})
    return True


def _line(at: float, level: str, logger: str, rest: dict[str, Any]) -> str:
    ts = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at % 1 * 1000):03d}Z"
    return jsontext.dumps({"ts": ts, "level": level.lower(), "logger": logger, **rest}).decode()
