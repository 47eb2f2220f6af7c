"""`trunkline agentproc run`: one message to one AgentProc agent. Bridges spawn it, so it starts fast: no event loop.

Without `--json`, the answer appears on standard output as it comes, errors and the session's id on standard error. With
it, the last line of standard output is one JSON object. What the agent writes to its own standard error is shown when
it fails, and as it comes with `--verbose`. What an agent asks is asked at the terminal, or in lines with
`--permission`; where neither is there, it is denied.

Exit codes: the turn's own (0, 1, 124 after a timeout, 126 and 127 when the agent cannot be started, 128 + n after
signal n); 2 when the command line or the profile is wrong; 130 and 143 when this process was told to end by SIGINT or
SIGTERM, and 141 when nobody reads its output.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from trunkline.base import jsontext
from trunkline.base.printable import printable
from trunkline.base.signals import handled, waking
from trunkline.base.writing import EXIT_BROKEN_PIPE, Unread, write_all
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.codec import SESSION_ID_RULE, VARIABLES, is_session_id
from trunkline.wires.agentproc.drive import EXIT_TIMED_OUT, Outcome, Run
from trunkline.wires.agentproc.messages import (
    DEFAULT_SESSION_NAME,
    Attachment,
    Ignored,
    Partial,
    PermissionRequest,
    PermissionResponse,
    Said,
    TurnRequest,
    Withdrawn,
)
from trunkline.wires.agentproc.profile import LONGEST_TIMEOUT_SECS, Profile, cache

if TYPE_CHECKING:
    from trunkline.cli.agentproc_run_asking import Asker

EXIT_FAILED = 1
EXIT_USAGE = 2

#: The longest message that is read from standard input: as long as the longest line of an answer.
MAX_MESSAGE = 16 * 1024 * 1024

#: Warnings about one turn. More of them say nothing new.
MAX_WARNINGS = 20
#: How long somebody who does not read our output is waited for when the agent is being ended.
LAST_WRITE_SECONDS = 1.0
#: A second signal does not wait for the profile's grace.
_HURRY_SECONDS = 0.0


def main(arguments: list[str]) -> NoReturn:
    """Run one turn, and exit."""
    try:
        options = _parse(arguments)
        profile = _adjusted(cache.find(options.profile), options)
        turn = TurnRequest(
            message=_message(options.message),
            session_id=options.session,
            session_name=options.session_name,
            from_user=options.from_user,
            streaming=not options.no_stream,
            attachments=tuple(options.attachments),
            permission=profile.permission,
        )
        _check_session(profile, turn.session_id)
        if sys.stdout is None:
            raise ConfigError("Standard output is closed.")
        if options.permission and (options.message == "-" or not options.json):
            raise ConfigError(
                "`--permission` needs `--json`, and standard input for the answers.",
                hint="Add `--json`, and give the message itself with `--message`.",
            )
    except ConfigError as error:
        _fail(str(error))
        sys.exit(EXIT_USAGE)
    for warning in profile.warnings:
        _complain(f"warning: {warning}")
    with waking() as wake_up:
        code = _Command(profile, turn, options, wake_up).run()
    sys.exit(code)


def _adjusted(profile: Profile, options: _Options) -> Profile:
    """The profile as the command line wants it.

    Raises:
        ConfigError: it wants what cannot be.
    """
    if options.raw and options.json:
        raise ConfigError("`--raw` and `--json` do not go together.", hint="Leave one of them out.")
    if options.env:
        profile = profile.replace(plain_env=dict(map(_variable, options.env)))
    if options.timeout is not None:
        profile = profile.replace(timeout_secs=_seconds(options.timeout))
    if options.cwd is None:
        return profile
    if not options.cwd:
        raise ConfigError("`--cwd` is empty.", hint="Name a directory, or leave it out.")
    cwd = os.path.abspath(os.path.expanduser(options.cwd))
    if not os.path.isdir(cwd):
        raise ConfigError(f"`--cwd`: `{cwd}` is not a directory.")
    if "{{" in cwd:
        raise ConfigError(f"`--cwd`: `{cwd}` would be taken for a placeholder.", hint="Go there, and write `--cwd .`.")
    return profile.replace(cwd=cwd, strange_cwd=True)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"`--env`: `{name}` must be NAME=VALUE.")
    if not name or any(char.isspace() or not char.isprintable() for char in name):
        raise ConfigError(f"`--env`: {name!r} cannot be the name of a variable.", hint="Write NAME=VALUE.")
    if name in VARIABLES:
        raise ConfigError(f"`--env`: `{name}` belongs to the protocol.", hint="Leave it out.")
    return name, value


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    # Not a number is no number of seconds either.
    if not 0 <= seconds < float("inf"):
        raise ConfigError(f"`--timeout`: `{text}` must be a number of seconds; 0 is no limit.")
    return seconds if 0 < seconds <= LONGEST_TIMEOUT_SECS else None


def _check_session(profile: Profile, session_id: str) -> None:
    """An id that no agent of the protocol can have given is a mistake. What other programs give is their own affair."""
    if session_id and profile.stream is None and not is_session_id(session_id):
        raise ConfigError(
            f"`--session`: `{session_id}` cannot be the id of a session: {SESSION_ID_RULE}.",
            hint="Give it as the agent gave it, or leave it out to begin a new session.",
        )


class _Command:
    """One turn, and what is shown of it.

    Whoever reads us may take their time, and the agent waits for them. But that keeps neither the time limit nor a
    signal: when the agent is being ended, a reader that does not read is given up.
    """

    def __init__(self, profile: Profile, turn: TurnRequest, options: _Options, wake_up: int) -> None:
        self._profile = profile
        self._turn = turn
        self._run = Run(profile, turn, hear=self._hear, log=self._log, tap=self._tap, wake_up=wake_up)
        self._options = options
        self._as_json = options.json
        self._raw = options.raw
        self._verbose = options.verbose
        self._asker: Asker | None = None
        self._is_terminal = sys.stdout.isatty()
        self._last = "\n"
        self._warnings = 0
        self._signals: list[int] = []
        self._given_up_at: float | None = None

    def run(self) -> int:
        """Run the turn; gives the exit code."""
        for number in handled():
            signal.signal(number, self._end)
        code = EXIT_TIMED_OUT
        try:
            outcome = self._run.perform()
            code = outcome.exit_code
            self._conclude(outcome)
        except BrokenPipeError:
            _forget_stdout()
            code = EXIT_BROKEN_PIPE
        except Unread:
            _complain(self._cut())
            _forget_stdout()
        except OSError as error:
            _fail(f"Standard output cannot be written: {error.strerror}.")
            _forget_stdout()
            code = EXIT_FAILED
        return 128 + self._signals[0] if self._signals else code

    def _end(self, number: int, _: FrameType | None) -> None:
        """A signal takes the agent's tree with it."""
        # First: another one may come in the middle of this.
        self._signals.append(number)
        self._run.cancel(128 + number, _HURRY_SECONDS if len(self._signals) > 1 else None)

    def _cut(self) -> str:
        """What to say of a turn whose end nobody reads."""
        from trunkline.wires.agentproc import failures

        what = "" if self._signals else f"{failures.describe(self._profile, EXIT_TIMED_OUT, True, '')} "
        return f"{what}Standard output was not read for {LAST_WRITE_SECONDS:g} s then, so the rest of it is lost."

    def _hear(self, said: Said) -> None:
        if isinstance(said, Partial):
            if said.role == "output" and not (self._as_json or self._raw):
                self._show(said.text)
        elif isinstance(said, Ignored):
            self._warn(f"warning: {said.why}")
        elif isinstance(said, PermissionRequest):
            self._ask(said)
        elif isinstance(said, Withdrawn) and self._asker is not None:
            self._asker.withdraw(said.request_id)

    def _ask(self, request: PermissionRequest) -> None:
        """Ask whoever is there: a program that said so, or a person at the terminal."""
        if self._asker is None and (self._options.permission or self._is_attended()):
            # Most agents never ask.
            from trunkline.cli import agentproc_run_asking as asking

            if self._options.permission:
                self._asker = asking.InLines(self._run.respond, self._write, self._warn)
            else:
                self._asker = asking.AtTerminal(self._run.respond, _write_log)
        if self._asker is not None:
            self._asker.ask(request)
            return
        self._warn(f"denied: the agent wants to use `{request.tool_name}`, and there is nobody to ask")
        self._run.respond(PermissionResponse(request.request_id, "deny", "there is nobody to ask"))

    def _is_attended(self) -> bool:
        """Whether there is a person who sees a question and can answer it."""
        if self._as_json or self._options.message == "-" or sys.stdin is None or sys.stderr is None:
            return False
        return sys.stdin.isatty() and sys.stderr.isatty()

    def _warn(self, text: str) -> None:
        self._warnings += 1
        if self._warnings <= MAX_WARNINGS:
            _complain(text)
        elif self._warnings == MAX_WARNINGS + 1:
            _complain("more warnings are not shown")

    def _log(self, data: bytes) -> None:
        """What the agent writes to its standard error."""
        if self._verbose:
            _write_log(data.decode("utf-8", "replace"))

    def _tap(self, data: bytes) -> None:
        """What the agent writes to its standard output."""
        if self._raw:
            self._write(data)

    def _conclude(self, outcome: Outcome) -> None:
        if self._as_json:
            self._write(jsontext.dumps(_record(outcome)) + b"\n")
        else:
            if not self._last.endswith("\n"):
                self._show("\n")
            if outcome.reply and not self._raw:
                self._show(outcome.reply if outcome.reply.endswith("\n") else f"{outcome.reply}\n")
            if outcome.session_id and outcome.session_id != self._turn.session_id:
                _complain(f"session: {outcome.session_id}")
        if outcome.failure:
            _fail(outcome.error or outcome.failure)
            if outcome.stderr and not self._verbose and outcome.stderr not in outcome.error:
                _write_log(f"Its standard error:\n{outcome.stderr}\n")
        elif not outcome.reply and not outcome.partials:
            _complain(outcome.remark or "the agent said nothing")

    def _show(self, text: str) -> None:
        self._last = text
        self._write((printable(text) if self._is_terminal else text).encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        write_all(1, data, waits=self._waits)

    def _waits(self) -> bool:
        """Whether a reader that does not read is still waited for."""
        if not self._run.ending:
            return True
        if self._given_up_at is None:
            self._given_up_at = time.monotonic() + LAST_WRITE_SECONDS
        return time.monotonic() < self._given_up_at


def _record(outcome: Outcome) -> dict[str, object]:
    return {
        "reply": outcome.reply,
        "partials": list(outcome.partials),
        "session_id": outcome.session_id,
        "error": outcome.error,
        "exit_code": outcome.exit_code,
        "timed_out": outcome.timed_out,
        "truncated": outcome.truncated,
    }


def _fail(text: str) -> None:
    """What went wrong, as every command says it."""
    from trunkline.cli.wrapping import commands_apart

    _write_log(f"Error: {commands_apart(text)}\n")


def _complain(text: str) -> None:
    """Something else, told from what the agent itself writes there."""
    from trunkline.cli.wrapping import commands_apart

    _write_log(f"trunkline agentproc: {commands_apart(text)}\n")


def _write_log(text: str) -> None:
    """For people, without the secrets of the environment, and without what a terminal would obey."""
    if sys.stderr is None:
        return
    from trunkline.base.escapes import without_escapes
    from trunkline.base.redact import Redactor

    clean = printable(Redactor.from_environ(os.environ).text(without_escapes(text.replace("\r\n", "\n"))))
    try:
        # Nobody waits for somebody who does not read logs.
        write_all(2, clean.encode("utf-8", "backslashreplace"), waits=lambda: False)
    except OSError:
        # There is nowhere else to say it.
        return


def _forget_stdout() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _message(text: str | None) -> str:
    if text != "-":
        return text or ""
    try:
        if sys.stdin is not None and sys.stdin.isatty():
            _write_log("Type the message, and end it with Ctrl-D on a line of its own.\n")
        data = sys.stdin.buffer.read(MAX_MESSAGE + 1) if sys.stdin is not None else b""
    except OSError as error:
        raise ConfigError(f"The message cannot be read from standard input: {error.strerror}.") from None
    if len(data) > MAX_MESSAGE:
        raise ConfigError(f"The message on standard input is longer than {MAX_MESSAGE} bytes.")
    # The line feed at the end belongs to the line, not to the message: `echo` puts it there.
    return data.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


class _Options:
    """What was asked for."""

    def __init__(self) -> None:
        self.profile = ""
        self.message: str | None = None
        self.session = ""
        self.session_name = DEFAULT_SESSION_NAME
        self.from_user = ""
        self.attachments: list[Attachment] = []
        self.cwd: str | None = None
        self.env: list[str] = []
        self.timeout: str | None = None
        self.no_stream = False
        self.raw = False
        self.json = False
        self.verbose = False
        self.permission = False


#: Where the value of an option goes.
_VALUES = {
    "--profile": "profile",
    "--message": "message",
    "--session": "session",
    "--session-name": "session_name",
    "--from": "from_user",
    "--cwd": "cwd",
    "--timeout": "timeout",
}
#: Options that may come several times.
_LISTS = {"--env": "env"}
_FLAGS = {
    "--no-stream": "no_stream",
    "--raw": "raw",
    "--json": "json",
    "--verbose": "verbose",
    "-v": "verbose",
    "--permission": "permission",
}


def _parse(arguments: list[str]) -> _Options:
    """The options as programs give them. What is not as simple as that, `argparse` reads: it costs 10 ms.

    Raises:
        ConfigError: they are wrong.
    """
    options = _Options()
    rest = iter(arguments)
    for argument in rest:
        value = next(rest, None) if argument in _VALUES or argument in _LISTS else None
        if value is not None and argument in _LISTS:
            getattr(options, _LISTS[argument]).append(value)
        elif value is not None:
            setattr(options, _VALUES[argument], value)
        elif argument in _FLAGS:
            setattr(options, _FLAGS[argument], True)
        else:
            return _parse_all(arguments)
    return options if options.profile and options.message is not None else _parse_all(arguments)


def _parse_all(arguments: list[str]) -> _Options:
    from trunkline.cli import agentproc_run_options
    from trunkline.cli.arguments import UsageError

    options = _Options()
    try:
        vars(options).update(vars(agentproc_run_options.parse(arguments)))
    except UsageError as error:
        raise ConfigError(f"{error}.", hint="Try `trunkline agentproc run --help`.") from None
    return options
