"""`trunkline agentproc hub`: the profiles that come with us, and whether their programs are here.

Exit codes: 0; 1 when a file to install is there already or cannot be written, or when `doctor` was asked about one that
cannot be run; 2 when there is no profile of that name; those of `run` are the turn's.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.base import jsontext
from trunkline.base.own_python import module_command
from trunkline.base.process import SpawnError, spawn
from trunkline.base.process_pump import pump
from trunkline.base.programs import find_program
from trunkline.base.values import Value
from trunkline.cli import table
from trunkline.core.faults import Fault
from trunkline.wires.agentproc import hub

#: How long a program may take to tell its version. Some of them start slowly, and all are asked at once.
VERSION_SECONDS = 20.0
#: More than this is no version.
VERSION_CHARS = 40
#: So much of a program's output is looked at.
_OUTPUT_BYTES = 4096

EXIT_MISSING = 1


class ProfileFinding(Value):
    """What `doctor` found out about one profile."""

    name: str
    program: str
    path: str | None
    version: str
    keys: tuple[str, ...]
    """Those of its variables that are set; never their values."""
    advice: str
    """What to do next; empty when nothing is missing."""
    asks: bool = False
    """Whether it asks in the chat before it acts."""


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in hub.names() if name.startswith(incomplete)]


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("hub", short_help="Profiles for the agents you may have.")
def command() -> None:
    """Profiles for the agents you may have: list, run, install as your own, and find out what is missing.

    \b
    Examples:
      trunkline agentproc hub doctor
      trunkline agentproc hub run codex --message "What is in this directory?"
      trunkline agentproc hub install codex
    """


@command.command("list", short_help="List the bundled profiles.")
@_json
def list_profiles(as_json: bool) -> None:
    """List the bundled profiles, and whether their programs are installed."""
    records = [_record(name) for name in hub.names()]
    if as_json:
        click.echo(jsontext.dumps({"profiles": records}))
        return
    rows = [[record["name"], "yes" if record["path"] else "no", record["description"]] for record in records]
    table.show(["NAME", "HERE", "DESCRIPTION"], rows)


@command.command("show", short_help="Print a profile as YAML.")
@click.argument("name", metavar="NAME", shell_complete=_complete)
def show(name: str) -> None:
    """Print the profile NAME as YAML, to be changed and used as your own.

    \b
    Example:
      trunkline agentproc hub show codex > my-codex.yaml
    """
    click.echo(_text(name), nl=False)


@command.command("install", short_help="Write a profile into a file of your own.")
@click.argument("name", metavar="NAME", shell_complete=_complete)
@click.option(
    "--to",
    "directory",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    help="The directory (default: here).",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def install(name: str, directory: str, force: bool) -> None:
    """Write the profile NAME into the file NAME.yaml, to be changed and run as your own.

    The program that it starts is not installed: `hub doctor` says how.

    \b
    Example:
      trunkline agentproc hub install codex
      trunkline agentproc run --profile ./codex.yaml --message "What is in this directory?"
    """
    text = _text(name)
    path = os.path.join(directory, f"{name}.yaml")
    try:
        _write(path, text, force=force)
    except FileExistsError:
        raise click.ClickException(f"`{path}` already exists. Use `--force` to replace it, or `--to DIR`.") from None
    except OSError as error:
        raise click.ClickException(f"`{path}` cannot be written: {error.strerror}.") from None
    click.echo(path)


@command.command(
    "run",
    short_help="Send one message to an agent and show its answer.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("profile", metavar="NAME", shell_complete=_complete)
@click.argument("arguments", metavar="--message M [OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def run(profile: str, arguments: tuple[str, ...]) -> None:
    """Send one message to the agent of the profile NAME and show its answer.

    This is `trunkline agentproc run --profile NAME` for a bundled profile, and its options are the same.

    \b
    Example:
      trunkline agentproc hub run codex --message "What is in this directory?" --cwd ~/project
    """
    from trunkline.cli import agentproc_run

    _text(profile)
    if any(each.partition("=")[0] == "--profile" for each in arguments):
        raise click.UsageError(
            "NAME is the profile, so `--profile` cannot be given as well. For a file: `trunkline agentproc run`."
        )
    agentproc_run.main(["--profile", profile, *arguments])


@command.command("doctor", short_help="Say which programs are here, and what is missing.")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete)
@_json
@click.pass_context
def doctor(context: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Look for the programs of all profiles, or of those named, and say what is missing.

    Variables are named and never shown. A program may be logged in without any of them: that is its own affair, and
    cannot be seen from here. Those that ask do so in the chat, before they change a file or run a command; the others
    do without, unless their profile lets them.
    """
    for name in names:
        _text(name)
    findings = examine(names or hub.names())
    if as_json:
        click.echo(jsontext.dumps({"profiles": [_finding_record(finding) for finding in findings]}))
    else:
        _print(findings)
    if names and any(finding.path is None for finding in findings):
        context.exit(EXIT_MISSING)


def _text(name: str) -> str:
    """The YAML of a bundled profile. That there is none of that name is a mistake of the command line."""
    try:
        return hub.text(name)
    except Fault as error:
        raise click.UsageError(str(error)) from error


def _write(path: str, text: str, *, force: bool) -> None:
    """Write a new file, or put one in the place of a file that is there. Nothing else that has its name is touched."""
    if not force:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
        return
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise click.ClickException(f"`{path}` is not a regular file, and is left as it is. Use `--to DIR`.")
    unfinished = f"{path}.{os.getpid()}.new"
    try:
        with open(unfinished, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, path)
    except OSError:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def examine(names: Sequence[str]) -> list[ProfileFinding]:
    """Look at the programs of some profiles, all at once."""
    paths = {name: _path(name) for name in names}
    versions: dict[str, str] = {}

    def ask(name: str, path: str) -> None:
        own = hub.PROGRAMS[name].command == hub.OWN_PROGRAM
        versions[name] = _version(module_command(hub.OWN_PROGRAM) if own else (path,))

    threads = [threading.Thread(target=ask, args=(name, path)) for name, path in paths.items() if path]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [_finding(name, paths[name], versions.get(name, "")) for name in names]


def _record(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": hub.load(name).description,
        "program": hub.PROGRAMS[name].command,
        "path": _path(name),
    }


def _path(name: str) -> str | None:
    command = hub.PROGRAMS[name].command
    # Ours is what runs here, on the `PATH` or not.
    return sys.executable if command == hub.OWN_PROGRAM else find_program(command)


def _finding(name: str, path: str | None, version: str) -> ProfileFinding:
    program = hub.PROGRAMS[name]
    keys = tuple(key for key in program.keys if os.environ.get(key))
    advice = _advice(program, path, version, keys)
    return ProfileFinding(name, program.command, path, version, keys, advice, hub.load(name).permission)


def _advice(program: hub.ProfileProgram, path: str | None, version: str, keys: tuple[str, ...]) -> str:
    if path is None:
        return hub.how_to_install(program.command) or ""
    if not version:
        return f"It does not start: try `{program.command} --version`."
    if keys:
        return ""
    names = " or ".join(program.keys[:2])
    if program.login:
        # Whether somebody has logged in is not to be seen from here.
        return f"Log in ({program.login}) unless you have{f', or set {names}' if names else ''}."
    local = ", or start Ollama on this machine" if program.command == hub.OWN_PROGRAM else ""
    return f"Set {names}{local}." if names else ""


def _version(program: Sequence[str]) -> str:
    """What a program says of its version; empty when it does not start or says nothing in time."""
    outputs = {"stdout": b"", "stderr": b""}
    try:
        with spawn([*program, "--version"]) as child:
            for name, data in pump(child, timeout=VERSION_SECONDS):
                outputs[name] = (outputs[name] + data)[:_OUTPUT_BYTES]
            if child.wait(VERSION_SECONDS) != 0:
                return ""
    except (SpawnError, TimeoutError):
        return ""
    # Not all of them say it where it belongs.
    lines = (outputs["stdout"] + b"\n" + outputs["stderr"]).decode("utf-8", "replace").splitlines()
    numbered = [line.strip() for line in lines if any(char.isdigit() for char in line)]
    return "".join(char for char in numbered[0] if char.isprintable())[:VERSION_CHARS] if numbered else ""


def _finding_record(finding: ProfileFinding) -> dict[str, Any]:
    record = {field: getattr(finding, field) for field in finding.__fields__}
    return {**record, "keys": list(finding.keys), "installed": finding.path is not None}


def _print(findings: list[ProfileFinding]) -> None:
    here = [finding for finding in findings if finding.path is not None]
    if here:
        rows = [
            [each.name, each.version or "?", "in the chat" if each.asks else "no", ", ".join(each.keys) or "-"]
            for each in here
        ]
        table.show(["HERE", "VERSION", "ASKS", "KEYS SET"], rows)
    for finding in here:
        if finding.advice:
            click.echo(f"\n{finding.name}: {finding.path}\n  {finding.advice}")
    missing = [[finding.name, hub.PROGRAMS[finding.name].install] for finding in findings if not finding.path]
    if missing:
        click.echo("" if here else None, nl=bool(here))
        table.show(["NOT HERE", "HOW TO GET IT"], missing, wide=True)
