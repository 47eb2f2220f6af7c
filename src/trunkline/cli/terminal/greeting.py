"""What a conversation begins with on the screen: who answers, and what was said before."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from trunkline import __version__
from trunkline.base import paths
from trunkline.base.printable import printable_line
from trunkline.cli import shelf
from trunkline.cli.chat_session import TerminalSession
from trunkline.cli.terminal.view import View
from trunkline.core.events import Envelope, Event, Steered, TurnStarted

#: How the names of models begin that need no weights, and what people should know of them.
MOCK = "mock"
MOCK_NOTE = "The model is a mock: it repeats what you say."


def welcome(view: View, talk: TerminalSession, workspace: str, notes: Sequence[str]) -> None:
    """Say who answers, with which model and where, and how to find out more."""
    # Anybody may have given these names: whoever made the directory, or runs the server with the model.
    models = getattr(talk.agent, "models", None) or ([talk.model] if talk.model else [])
    about = map(printable_line, [talk.agent.name, *models, paths.homely(workspace)])
    view.plain(Text.assemble((f"trunkline {__version__}", "bold"), (" · " + " · ".join(about), "dim")))
    for note in notes:
        view.note(note)
    if talk.model is not None and talk.model.startswith(MOCK):
        view.note(MOCK_NOTE)
    view.note("/help lists commands · Shift-Tab: mode · Ctrl-C stops an answer · Ctrl-D leaves")


def recall(view: View, talk: TerminalSession, place: str | None) -> None:
    """Show the last turn of a session that is resumed. `place` is where it is kept, if not with our own."""
    state = talk.session.state
    if talk.told is not None:
        view.note(talk.told)
        if not state.turns:
            return
    view.note(f"Session {talk.session.id}, {state.turns} turn{'' if state.turns == 1 else 's'} so far.")
    if talk.joined:
        # Others see it in progress, and so is it shown here.
        return
    turn: list[Event] = []
    for record in shelf.read(talk.session.id, place).records:
        if isinstance(record, Envelope) and record.turn <= state.turns:
            if isinstance(record.event, TurnStarted):
                turn.clear()
            turn.append(record.event)
    for event in turn:
        if isinstance(event, TurnStarted | Steered):
            view.steered(event.message.text)
        view.show(event)
