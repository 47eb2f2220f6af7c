"""`trunkline sessions`: the conversations that were kept, to list, read, take along and remove; what they have changed
in files, to see and to put back; and two ways to go on with one.

Reading never takes a session from the process that is writing it. Exit codes: 0, or 1 when there is no such session, it
cannot be read, or not all of it can be undone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.base import exchange_home, jsontext, paths, shapes
from trunkline.base.printable import printable_line
from trunkline.cli import shelf, table, value_completion
from trunkline.cli.explained import explained
from trunkline.core import exporting, transcript
from trunkline.core.events import Envelope, Gap
from trunkline.core.faults import Fault, SessionNotFound
from trunkline.core.log import SessionInfo
from trunkline.core.state import SessionState
from trunkline.core.transcript import when

#: So much of each id is shown at least.
FEWEST_OF_ID = 8
#: Names of agents may be commands.
LONGEST_AGENT = 16
#: The end of a directory's name, on a terminal.
LONGEST_PLACE = 24

_COLOURS: dict[str, str] = {"you": "cyan", "agent": "green", "failed": "red"}


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name) for name in shelf.completions(incomplete, _place(context.params.get("exchange", False)))
    ]


def _place(exchange: bool) -> str | None:
    """Where the logs of the exchange are; None: those of this user are meant."""
    if not exchange:
        return None
    from trunkline.cli import local_exchange

    return exchange_home.sessions_dir(local_exchange.home())


def _read(session: str, exchange: bool) -> shelf.SessionView:
    try:
        return shelf.read(session, _place(exchange))
    except SessionNotFound as error:
        if exchange or session == shelf.LATEST or not _is_in_exchange(session):
            raise
        raise SessionNotFound(error.message, hint="It is a session of the exchange: add `--exchange`.") from None


def _is_in_exchange(session: str) -> bool:
    try:
        return bool(shelf.named(session, _place(True)))
    except Fault:
        return False


_of_exchange = click.option(
    "--exchange", is_flag=True, help="Of the exchange that belongs to this directory, whether it runs or not."
)
_session = click.argument("session", metavar="ID", shell_complete=_complete)


@click.group("sessions")
def command() -> None:
    """List, read, export, undo, fork and remove the conversations that were kept.

    They can be read while an agent is at work on them. Of an ID its beginning is enough, as long as no other has it.

    \b
    Examples:
      trunkline sessions list
      trunkline sessions show latest
      trunkline sessions list --exchange
      trunkline sessions export my-conv-123 --format md > my-conv-123.md
      trunkline sessions undo latest
    """


@command.command("list", short_help="List all sessions, the one used last first.")
@click.option("--workspace", metavar="PATH", help="Only the sessions of this directory.")
@_of_exchange
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@explained
def list_sessions(workspace: str | None, exchange: bool, wide: bool, as_json: bool) -> None:
    """List all sessions, the one used last first, with the first words of each."""
    place = _place(exchange)
    found = shelf.sessions(place)
    if workspace is not None:
        found = [info for info in found if info.workspace == os.path.abspath(workspace)]
    if as_json:
        click.echo(jsontext.dumps({"sessions": [_record(info, place) for info in found]}))
    elif found:
        _print_list(found, wide, place)
    else:
        others = "" if exchange or not _exchange_has_some() else f" {_OTHERS}"
        click.echo(f"No sessions are kept here yet.{others}", err=True)


_OTHERS = "Those of the exchange: `trunkline sessions list --exchange`."


def _exchange_has_some() -> bool:
    try:
        return bool(shelf.sessions(_place(True)))
    except Fault:
        return False


def _record(info: SessionInfo, place: str | None) -> dict[str, Any]:
    seen = shelf.glance(info, place)
    return {**shapes.encode(info), "agent": info.agent, "title": seen.title, "turns": seen.turns}


def _print_list(found: list[SessionInfo], wide: bool, place: str | None) -> None:
    is_whole = wide or table.room() is None
    short = {} if is_whole else _short_ids([info.id for info in shelf.sessions(place)])
    head = ("ID", "UPDATED", *(("CREATED",) if wide else ()), "AGENT", "DIRECTORY", "TURNS", "TITLE")
    rows: list[tuple[str, ...]] = []
    for info in found:
        seen = shelf.glance(info, place)
        name, agent, directory = (
            printable_line(info.id),
            printable_line(info.agent or "-"),
            printable_line(paths.homely(info.workspace)),
        )
        if not is_whole:
            # Not cut: it is there to be typed.
            name, agent = printable_line(short[info.id]), table.cut(agent, LONGEST_AGENT)
            directory = _end_of(directory, LONGEST_PLACE)
        times = (when(info.updated), when(info.created)) if wide else (_day(info.updated),)
        rows.append((name, *times, agent, directory, str(seen.turns), printable_line(seen.title)))
    table.show(head, rows, wide=wide)


def _short_ids(ids: list[str]) -> dict[str, str]:
    """As much of each id as tells it from all others, and a little more to recognise it by."""
    ordered = sorted(ids)
    shared = [_shared(one, other) for one, other in pairwise(ordered)]
    neighbours = zip(ordered, [0, *shared], [*shared, 0], strict=True)
    return {name: name[: max(FEWEST_OF_ID, before + 1, after + 1)] for name, before, after in neighbours}


def _shared(one: str, other: str) -> int:
    """How many characters two ids have in common before they differ."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _end_of(text: str, width: int) -> str:
    """The end of a path, which tells more than its beginning."""
    return text if len(text) <= width else f"...{text[3 - width :]}"


def _day(at: float) -> str:
    """A moment in few letters: the time if it is of today, else the day."""
    moment, now = time.localtime(at), time.localtime()
    return time.strftime("%H:%M" if moment[:3] == now[:3] else "%Y-%m-%d", moment)


@command.command("show")
@_session
@_of_exchange
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every event as the log has it.")
@explained
def show(session: str, exchange: bool, as_json: bool) -> None:
    """Print the transcript of the session ID.

    `latest` is the session that was used last in the current directory, or with `--exchange` in all of it. Control
    characters of what was said are shown, not obeyed. Signs of life and the details of a graph's turns are left out:
    `--json` has them.
    """
    kept = _read(session, exchange)
    if as_json:
        # Piece by piece: a session may be long.
        click.echo(b'{"session":' + jsontext.dumps(_record(kept.info, _place(exchange))) + b',"events":[', nl=False)
        for number, line in enumerate(exporting.event_lines(kept.records)):
            click.echo((b",\n" if number else b"\n") + line, nl=False)
        click.echo(b"\n]}")
        return
    for label, value in (
        ("session", kept.info.id),
        ("agent", kept.info.agent or "not known"),
        ("workspace", kept.info.workspace),
        ("created", when(kept.info.created)),
        ("updated", when(kept.info.updated)),
    ):
        click.echo(f"{label:9}  {printable_line(value)}")
    state = SessionState()
    for block in transcript.blocks(_watched(kept.records, state)):
        label, text = transcript.as_text(block)
        click.echo(f"{_coloured(label)}  {text}")
    click.echo("")
    click.echo(f"last turn  {transcript.tokens(state.last)}")
    click.echo(f"in total   {transcript.tokens(state.total)}; turns: {state.turns}")


def _watched(found: Iterator[Envelope | Gap], state: SessionState) -> Iterator[Envelope | Gap]:
    """The same records, each of them taken into account on its way."""
    for record in found:
        if isinstance(record, Envelope) and not record.event.private:
            state.apply(record)
        yield record


def _coloured(label: str) -> str:
    if "NO_COLOR" in os.environ:
        return label
    return click.style(label, fg=_COLOURS.get(label.strip()), bold=True)


@command.command("export")
@_session
@_of_exchange
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "md", "html"]),
    default="jsonl",
    show_default=True,
    help="One JSON object per event, Markdown to read, or a page for a browser.",
)
@click.option("--all", "everything", is_flag=True, help="With jsonl: also the records that the agent keeps for itself.")
@explained
def export(session: str, exchange: bool, form: exporting.ExportFormat, everything: bool) -> None:
    """Write the session ID to standard output.

    `jsonl` begins with a line about the session; each line after it is one event, as the log has it. What was damaged
    is told by a line with `gap`.
    """
    kept = _read(session, exchange)
    if form == "jsonl" and everything:
        lines = exporting.json_lines(kept.info, kept.records, everything=True)
    else:
        lines = exporting.exported(kept.info, kept.records, form)
    for line in lines:
        click.echo(line)


@command.command("rm")
@click.argument("sessions", metavar="ID...", nargs=-1, required=True, shell_complete=_complete)
@explained
def remove(sessions: tuple[str, ...]) -> None:
    """Remove the sessions ID... for good, each by its whole id.

    One that an agent is at work on stays.
    """
    from trunkline.cli import sessions_undo

    for session in sessions:
        gone = next((info for info in shelf.sessions() if info.id == session), None)
        shelf.remove(session)
        if gone is not None:
            sessions_undo.forget(gone)
        click.echo(f"Removed `{printable_line(session)}`.", err=True)


@command.command("undo")
@click.argument("session", metavar="SESSION", shell_complete=_complete)
@click.option(
    "--turns", type=click.IntRange(min=1), default=1, show_default=True, help="How many turns, from the last."
)
@_of_exchange
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@explained
def undo(session: str, turns: int, exchange: bool, as_json: bool) -> None:
    """Put the files back as they were before the last turns of SESSION.

    A turn is a message that the agent has answered. What Write and Edit have changed is put back wherever it is, what
    commands have changed if it is in the workspace: contents, permissions, links, and what was created or deleted. A
    file that somebody else has changed since is left as it is and named; the exit code is 1 then.

    What commands did elsewhere is not undone: other directories, services, databases, commits.
    """
    from trunkline.cli import sessions_undo

    found = _read(session, exchange).info
    if not sessions_undo.undo(found, _place(exchange), turns, as_json=as_json):
        raise click.exceptions.Exit(1)


@command.command("diff")
@click.argument("session", metavar="SESSION", shell_complete=_complete)
@click.option("--turns", type=click.IntRange(min=1), metavar="N", help="Only of the last N turns.")
@_of_exchange
@explained
def diff(session: str, turns: int | None, exchange: bool) -> None:
    """Print what SESSION has changed in files, as a unified diff; what was undone is left out."""
    from trunkline.cli import sessions_undo

    sessions_undo.show_diff(_read(session, exchange).info, turns)


_named = click.argument("session", metavar="SESSION", shell_complete=value_completion.sessions)
_as_json = click.option("--json", "as_json", is_flag=True, help='Print `{"id", "agent"}` of the new session.')


@command.command("fork")
@_named
@click.option("--at", type=click.IntRange(min=0), metavar="N", help="Keep the events through N (default: all).")
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Keep the turns through N; instead of `--at`.")
@_as_json
@explained
def fork(session: str, at: int | None, turn: int | None, as_json: bool) -> None:
    """Begin a new session with what was said in SESSION: your own, or one of the exchange that runs here.

    The agent remembers it, and goes on with either. A turn that was in progress at N ends there in the new one. Turns
    are counted as in the log, where a command of the agent is one, too; `trunkline sessions show` numbers them.
    """
    if at is not None and turn is not None:
        raise click.UsageError("`--at` and `--turn` cannot go together.")
    if shelf.has(session):
        return _fork_own(session, at, turn, as_json=as_json)
    try:
        if turn is not None:
            from trunkline.cli.own_fork import end_of_turn

            at = end_of_turn(shelf.read(session, _place(True)).records, session, turn)
        _made(session, "fork", {} if at is None else {"at": at}, as_json=as_json)
    except Fault as refused:
        # By the beginning of its id, or as the latest, it may be one of ours.
        try:
            shelf.read(session)
        except Fault as unknown:
            # Who never had to do with an exchange is not told of one.
            raise refused if _is_in_exchange(session) or not shelf.sessions() else unknown from None
        _fork_own(session, at, turn, as_json=as_json)


def _fork_own(session: str, at: int | None, turn: int | None, *, as_json: bool) -> None:
    import asyncio

    from trunkline.cli.own_fork import end_of_turn
    from trunkline.cli.own_fork import fork as fork_own
    from trunkline.store.files import FileStore

    kept = shelf.read(session)
    if turn is not None:
        at = end_of_turn(kept.records, kept.info.id, turn)
    agent = kept.info.agent or ""
    made = asyncio.run(fork_own(FileStore(paths.sessions_dir()), kept.info, at, agent))
    _tell_made(made, agent, kept.info, as_json=as_json)


@command.command("handover")
@_named
@click.option(
    "--to", metavar="AGENT", required=True, help="The agent that continues it.", shell_complete=value_completion.agents
)
@_as_json
@explained
def handover(session: str, to: str, as_json: bool) -> None:
    """Let another agent continue SESSION of the exchange that runs here.

    It gets what was said, what tools returned and which files were touched, in a new session; the old one stays.
    """
    _made(session, "handover", {"to": to}, as_json=as_json)


def _made(session: str, how: str, body: dict[str, Any], *, as_json: bool) -> None:
    from trunkline.cli import local_exchange

    made = local_exchange.of_session("POST", session, how, body)
    _tell_made(made["id"], made["agent"], None, as_json=as_json)


def _tell_made(session: str, agent: str, forked: SessionInfo | None, *, as_json: bool) -> None:
    """Print the new session, and how to go on with it. `forked`: the one of ours that it was made of; None: it is
    the exchange's."""
    if as_json:
        click.echo(jsontext.dumps({"id": session, "agent": agent}))
        return
    from trunkline.cli.chat_session import ChatOptions, resume_command
    from trunkline.cli.opening import RESUME_OPTIONS

    options = ChatOptions(agent=agent or None, attach=forked is None)
    if forked is not None:
        elsewhere = forked.workspace if forked.workspace != os.path.realpath(".") else None
        # The name of an agent is not all that was said of it: `scripted` was `scripted:FILE`.
        given = {name: value for name, value in (forked.given or {}).items() if name in ("agent", *RESUME_OPTIONS)}
        options = options.replace(workspace=elsewhere, **given)
    click.echo(f"The new session is {printable_line(session)}.")
    click.echo(f"Go on with: {printable_line(resume_command(options, session))}")
