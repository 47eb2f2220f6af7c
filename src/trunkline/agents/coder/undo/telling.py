"""What came of an undo, in words."""

from __future__ import annotations

from collections.abc import Iterator

from trunkline.agents.coder.undo.undoing import UndoOutcome
from trunkline.base.printable import printable_line
from trunkline.tools.workspace import printable

#: Paths that are listed. Those that were left are all named.
MOST_LISTED = 20

#: What an undo does not reach.
OUTSIDE = (
    "What commands did outside of the workspace is not undone: other directories, services, databases. Neither are "
    "commits and other things in `.git`."
)


def shown_path(path: str) -> str:
    """A path of a record in one line."""
    return printable_line(printable(path))


def lines(outcome: UndoOutcome, asked: int = 0) -> Iterator[str]:
    """What to tell people. `asked`: how many turns were to be undone."""
    if not outcome.turns:
        yield "There is nothing to undo: no changes of files are recorded in this session, or all were undone."
        return
    turns = "the last turn" if outcome.turns == 1 else f"the last {outcome.turns} turns"
    count = len(outcome.restored)
    if count:
        yield f"Undid {turns}: {count} {'path is' if count == 1 else 'paths are'} as before."
    else:
        yield f"Undid {turns}: there was nothing to put back."
    if 0 < outcome.turns < asked:
        yield f"{asked} turns were asked for. No more have changed files, or have not been undone yet."
    for path in outcome.restored[:MOST_LISTED]:
        yield f"  {shown_path(path)}"
    if count > MOST_LISTED:
        yield f"  and {count - MOST_LISTED} more"
    if outcome.left:
        yield "Left as they are:"
    for left in outcome.left:
        yield f"  {shown_path(left.path)}: {left.why}"
    for why in outcome.uncovered:
        yield f"Not all that commands changed is known: {why}"
    yield OUTSIDE
