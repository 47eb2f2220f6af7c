"""`trunkline agentproc check`: what a profile means, and whether it can work here.

Exit codes: 0, or 1 when every turn would fail, or 2 when the command is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from trunkline.base import jsontext
from trunkline.cli import table
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.streams import DIALOGUES

if TYPE_CHECKING:
    from trunkline.wires.agentproc.profile import Profile
    from trunkline.wires.agentproc.profile.check import ProfileReport

EXIT_PROBLEMS = 1

#: Wider lines are hard to read, however wide the terminal is.
WIDEST = 100
#: The width of the first column.
_LABEL = 11

_COLOURS = {"problem": "red", "warning": "yellow", "fine": "green"}

Row = tuple[str, str]


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trunkline.cli.agentproc_completion import profiles

    return profiles(incomplete)


@click.command("check")
@click.argument("profile", metavar="PROFILE", shell_complete=_complete)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(profile: str, as_json: bool) -> None:
    """Explain a profile, and say whether it can work here.

    PROFILE is the path of a file, or the name of a profile that comes with trunkline. Nothing is run. Exits with 1 if
    every turn would fail.

    \b
    Examples:
      trunkline agentproc check ./my-agent.yaml
      trunkline agentproc check claude-code --json
    """
    from trunkline.base.redact import Redactor
    from trunkline.wires.agentproc.profile.check import ProfileReport, examine
    from trunkline.wires.agentproc.profile.file import find

    found: Profile | None = None
    try:
        found = find(profile)
        report = examine(found, os.environ)
    except ConfigError as error:
        report = ProfileReport(problems=(str(error),))
    redactor = Redactor.from_environ(os.environ)
    if as_json:
        text = jsontext.dumps(redactor.data(_record(profile, found, report))).decode()
    else:
        rows = (*_rows(profile, found, report), *_findings(report))
        text = "\n".join(_lines([(label, redactor.text(text)) for label, text in rows]))
    _show(text)
    sys.exit(EXIT_PROBLEMS if report.problems else 0)


def _show(text: str) -> None:
    """Print it. Whether somebody reads it to its end does not change what it says of the profile."""
    try:
        click.echo(text)
    except BrokenPipeError:
        # Python would try again at its end, and complain.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def _record(name: str, profile: Profile | None, report: ProfileReport) -> dict[str, Any]:
    findings = {"problems": list(report.problems), "warnings": list(report.warnings)}
    if profile is None:
        return {"profile": name, "ok": False, **findings}
    return {
        "profile": name,
        "ok": not report.problems,
        "name": profile.name,
        "description": profile.description,
        "argv": list(report.argv),
        "resume_argv": list(report.resume_argv),
        "program": report.program,
        "cwd": report.cwd,
        "stdin": _input_kind(profile),
        "protocol": None if profile.stream is not None else profile.protocol,
        "stream": profile.stream,
        "streaming": profile.streaming,
        "permission": profile.permission,
        "allow_unsafe": profile.allow_unsafe,
        "timeout_secs": profile.timeout_secs,
        "kill_grace_secs": profile.kill_grace_secs,
        "max_reply_chars": profile.max_reply_chars,
        "truncation_suffix": profile.truncation_suffix,
        "send_error_reply": profile.send_error_reply,
        "include_stderr_in_reply": profile.include_stderr_in_reply,
        "inherits": "all" if _inherits_all(profile) else "base",
        "env_allowlist": None if profile.env_allowlist is None else list(profile.env_allowlist),
        "env": {each.name: {"value": each.shown, "missing": list(each.missing)} for each in report.variables},
        **findings,
    }


def _input_kind(profile: Profile) -> str:
    if profile.stream is None and (
        profile.protocol == "0.4" or (profile.protocol == "auto" and profile.stdin == "none")
    ):
        return "turn"
    return "dialogue" if profile.stream in DIALOGUES else profile.stdin


def _inherits_all(profile: Profile) -> bool:
    return profile.env_allowlist is None and profile.protocol != "0.4"


def _rows(name: str, profile: Profile | None, report: ProfileReport) -> Iterator[Row]:
    """What is to be known about the profile: a label and a text each."""
    if profile is None:
        return
    import shlex

    yield "profile", f"{name} ({profile.name})" if profile.name not in ("", name) else name
    if profile.description:
        yield "", profile.description
    yield "runs", shlex.join(report.argv) if report.argv else "nothing"
    if report.resume_argv != report.argv:
        yield "to resume", shlex.join(report.resume_argv)
    if report.program is not None and report.program != report.argv[0]:
        yield "which is", report.program
    yield "in", report.cwd if report.cwd is not None else "the directory where the bridge runs"
    also = "; also in `AGENT_MESSAGE` and the other variables" if profile.protocol == "auto" else ""
    yield "input", _INPUTS[kind := _input_kind(profile)] + (also if kind == "turn" else "")
    yield "output", _output(profile)
    yield "partials", "are passed on as they come" if profile.streaming else "are left out (`streaming: false`)"
    yield "time", _time(profile)
    yield "reply", f"at most {profile.max_reply_chars} characters"
    yield "failures", _failures(profile)
    yield from _environment(profile, report)


_INPUTS = {
    "none": "none; the message is in `AGENT_MESSAGE`",
    "message": "the message, which is also in `AGENT_MESSAGE`",
    "turn": "the turn as one JSON line",
    "dialogue": "what the program's own protocol has: the message, and the answers to what it asks",
}


def _output(profile: Profile) -> str:
    if profile.stream is not None:
        asks = ", which may ask for permission" if profile.permission and profile.stream in DIALOGUES else ""
        return f"read as the `{profile.stream}` stream{asks}"
    lines = f"`{profile.session_line_prefix}`, `AGENT_PARTIAL:` and `AGENT_ERROR:` lines; the rest is the reply"
    events = "JSON events, one to a line" + (", which may ask for permission" if profile.permission else "")
    match profile.protocol:
        case "0.1":
            return f"AgentProc 0.1: {lines}"
        case "0.4":
            return f"AgentProc 0.4: {events}"
        case _:
            return "AgentProc 0.1 or 0.4, whichever the first line shows"


def _time(profile: Profile) -> str:
    end = f"SIGTERM, {profile.kill_grace_secs:g} s later SIGKILL"
    if profile.timeout_secs is None:
        return f"no limit; when it is stopped: {end}"
    return f"{profile.timeout_secs:g} s for a turn, then {end}"


def _failures(profile: Profile) -> str:
    told = "the user is told" if profile.send_error_reply else "the user is told only what the agent itself says"
    return f"{told}, with the end of standard error" if profile.include_stderr_in_reply else told


def _environment(profile: Profile, report: ProfileReport) -> Iterator[Row]:
    if _inherits_all(profile):
        yield "inherits", "the whole environment, without `AGENT_*`"
    else:
        names = ", ".join(("the basics (`PATH`, `HOME` ...)", *(f"`{name}`" for name in profile.env_allowlist or ())))
        yield "inherits", f"{names}, and nothing else"
    for index, each in enumerate(report.variables):
        yield "env" if index == 0 else "", f"{each.name}={each.shown}"


def _findings(report: ProfileReport) -> Iterator[Row]:
    if report.argv:
        yield "", ""
    for text in report.warnings:
        yield "warning", text
    for text in report.problems:
        yield "problem", text
    if not report.problems:
        yield "fine", "It can work here." if not report.warnings else "It can work here, with what is said above."


def _lines(rows: list[Row]) -> Iterator[str]:
    from textwrap import wrap

    from trunkline.base.printable import printable

    # Where there is no terminal, a program reads it: each text is one line then.
    room = table.room()
    width = sys.maxsize if room is None else min(room, WIDEST)
    for label, text in rows:
        pieces = wrap(printable(text), width - _LABEL, break_long_words=False, break_on_hyphens=False) or [""]
        yield f"{_coloured(label)}{pieces[0]}".rstrip()
        yield from (f"{'':{_LABEL}}{piece}" for piece in pieces[1:])


def _coloured(label: str) -> str:
    padded = f"{label:{_LABEL}}"
    if "NO_COLOR" in os.environ or not label:
        return padded
    return click.style(padded, fg=_COLOURS.get(label), bold=True)
