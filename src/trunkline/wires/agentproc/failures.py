"""What a user is told when an agent failed without a word: what was seen, and what to do where that is known."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping

from trunkline.base.escapes import without_escapes
from trunkline.base.process import exit_code
from trunkline.base.redact import Redactor
from trunkline.wires.agentproc.profile import Profile

#: How much of standard error is shown to a user: the last lines, where programs say what was wrong.
STDERR_CHARS = 1000

#: What programs say when a file that the profile names is missing, and what that means.
_HINTS = (
    (r"can't open file '(?P<file>[^']+)': \[Errno 2\]", "Python found no file `{file}`: check the profile's `args`."),
    (r"Cannot find module '(?P<file>[^']+)'", "Node found no module `{file}`: check the profile's `args` and `cwd`."),
    (r": (?:line )?\d+: (?P<file>[^:\n]+): (?:command )?not found", "The script needs `{file}`, which is not here."),
    (r"ModuleNotFoundError: No module named '(?P<file>[^']+)'", "The agent needs the Python module `{file}`."),
)

_SIGNAL_EXIT = exit_code(-1) - 1


def describe(profile: Profile, code: int, timed_out: bool, stderr: str) -> str:
    """One text about a turn that ended with `code`."""
    if timed_out:
        return f"The agent did not answer within {_seconds(profile.timeout_secs)}, so it was stopped."
    hint = _hint(stderr)
    return f"{_what(code)} {hint}" if hint else _what(code)


def with_stderr(error: str, stderr: str, environ: Mapping[str, str]) -> str:
    """The text with the end of what the agent wrote to its standard error, without colours and without secrets."""
    shown = Redactor.from_environ(environ).text(without_escapes(stderr)).strip()
    if not shown:
        return error
    tail = shown if len(shown) <= STDERR_CHARS else f"...{shown[-STDERR_CHARS:]}"
    return f"{error}\n\n{tail}"


def _what(code: int) -> str:
    if code > _SIGNAL_EXIT:
        try:
            name = signal.Signals(code - _SIGNAL_EXIT).name
        except ValueError:
            return f"The agent failed (exit code {code})."
        return f"The agent was ended by {name} (exit code {code})."
    return f"The agent failed (exit code {code})."


def _hint(stderr: str) -> str:
    for pattern, hint in _HINTS:
        if found := re.search(pattern, stderr):
            return hint.format(file=found["file"][-200:])
    return ""


def _seconds(seconds: float | None) -> str:
    count = f"{seconds:g}" if seconds is not None else "?"
    return f"{count} second" if count == "1" else f"{count} seconds"
