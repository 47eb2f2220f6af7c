"""`trunkline sessions undo` and `diff`: what the turns of a kept session have changed in files, put back or shown.

A process may have the session open, as long as it is not at work: it learns of the undo with its next message.
"""

from __future__ import annotations

from contextlib import suppress

import click

from trunkline.agents.coder.undo import diffs, recovering, telling, undoing
from trunkline.agents.coder.undo.checkpoints import Checkpoints
from trunkline.agents.coder.undo.turns import TurnChanges
from trunkline.base import jsontext, paths
from trunkline.core.events import Envelope
from trunkline.core.faults import SessionHeld
from trunkline.core.log import SessionInfo
from trunkline.core.state import SessionState
from trunkline.store.files import FileStore


def undo(info: SessionInfo, place: str | None, turns: int, *, as_json: bool) -> bool:
    """Undo the last turns of a session; whether all paths could be put back.

    Raises:
        SessionHeld: a turn of it is in progress.
        NoCheckpoint: what was changed is not kept, or cannot be read.
    """
    checkpoints = Checkpoints(info.workspace).last_of(info.id)
    store = FileStore(place or paths.sessions_dir())
    held: SessionHeld | None = None
    log = None
    try:
        # Nobody shall begin a turn meanwhile.
        log = store.open(info.id)
    except SessionHeld as error:
        held = error

    def choose(recorded: list[TurnChanges]) -> list[TurnChanges]:
        # A turn without an end in the record may be one that an earlier process was killed in.
        if held is not None and recorded and not recorded[-1].is_over and _is_at_work(store, info.id):
            raise SessionHeld(held.message, hint="A turn is in progress: stop it or wait for its end, then try again.")
        return undoing.last_turns(recorded, turns)

    try:
        outcome = undoing.undo(checkpoints, info.id, lambda recorded: choose(list(recorded)))
    finally:
        if log is not None:
            log.close()
    if as_json:
        click.echo(
            jsontext.dumps(
                {
                    "session": info.id,
                    "turns": outcome.turns,
                    # As they are: what is shown to people for a name may be that of another file.
                    "restored": list(outcome.restored),
                    "left": [{"path": left.path, "why": left.why} for left in outcome.left],
                    "uncovered": list(outcome.uncovered),
                }
            )
        )
    else:
        for line in telling.lines(outcome, turns):
            click.echo(line)
    return not outcome.left


def _is_at_work(store: FileStore, session: str) -> bool:
    """Whether a turn of a session that somebody has open has begun and not ended, as its log says."""
    state = SessionState()
    for item in store.peek(session).records:
        if isinstance(item, Envelope):
            state.apply(item)
    return bool(state.open_turns)


def show_diff(info: SessionInfo, turns: int | None) -> None:
    """Print what the turns of a session have changed.

    Raises:
        NoCheckpoint: it cannot be read.
    """
    checkpoints = Checkpoints(info.workspace).last_of(info.id)
    recorded = recovering.all_turns(checkpoints, info.id)
    found = diffs.diff(checkpoints, undoing.last_turns(recorded, len(recorded) if turns is None else turns))
    click.echo(found, nl=False)


def forget(info: SessionInfo) -> None:
    """The session was removed: what it has changed is not kept any longer."""
    with suppress(OSError):
        Checkpoints(info.workspace).last_of(info.id).record(info.id).remove()
