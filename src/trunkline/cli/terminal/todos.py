"""What an agent means to do, as one list: it changes in place while the agent works, and stays when that is over."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from trunkline.cli.terminal.calls import one_line
from trunkline.core.events import Plan, PlanEntry, PlanStatus

#: The tool with which the coding agent tells its plan.
TODO_TOOL = "TodoWrite"

#: Things to do that are shown at most; the terminal's height may allow fewer.
MOST_SHOWN = 30

#: For each state: the mark, its style, and that of the words.
_LOOKS: dict[PlanStatus, tuple[str, str, str]] = {
    "completed": ("✓", "green", "dim strike"),
    "in_progress": ("▸", "bold cyan", "bold"),
    "pending": ("○", "dim", ""),
}


class TodoList:
    """The plan of a conversation."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        """The one that counts; None where there is none."""
        self.is_known = False
        """Whether the agent tells its plans at all."""
        self._is_kept = True
        """Whether it stands on the screen for good."""

    def take(self, plan: Plan) -> list[Plan]:
        """Put a plan in the place of the one before it; gives those that are to stay on the screen.

        The one before it is, where the new one has nothing of it: else it is the same plan, further on. The new one is
        if all of it is done: what follows is the answer.
        """
        self.is_known = True
        if plan == self.plan:
            return []
        before = self.close()
        self.plan, self._is_kept = plan if plan.entries else None, not plan.entries
        is_over = all(entry.status == "completed" for entry in plan.entries)
        kept = [] if before is None or _contents(before) & _contents(plan) else [before]
        last = self.close() if is_over else None
        return kept if last is None else [*kept, last]

    def close(self) -> Plan | None:
        """The plan, if it is to stay on the screen from now on and did not so far."""
        found, self._is_kept = (None if self._is_kept else self.plan), True
        return found

    def live(self, rows: int) -> list[Text]:
        """The list while it moves, in so many rows: those around what is being done."""
        return [] if self._is_kept or self.plan is None else _lines(self.plan.entries, rows)


def listed(plan: Plan) -> list[Text]:
    """The list, with a line above that says how far it has come. (A plan is what plan mode makes.)"""
    done = sum(entry.status == "completed" for entry in plan.entries)
    head = Text.assemble(("To-dos", "bold"), (f" · {done} of {len(plan.entries)} done", "dim"))
    return [head, *_lines(plan.entries, MOST_SHOWN)]


def _contents(plan: Plan) -> set[str]:
    return {entry.content for entry in plan.entries}


def _lines(entries: Sequence[PlanEntry], rows: int) -> list[Text]:
    rows = max(1, min(rows, MOST_SHOWN))
    if len(entries) <= rows:
        return [_line(entry) for entry in entries]
    current = next((at for at, entry in enumerate(entries) if entry.status == "in_progress"), None)
    if current is None:
        current = next((at for at, entry in enumerate(entries) if entry.status == "pending"), len(entries) - 1)
    if rows == 1:
        return [_line(entries[current]).append(f" · {len(entries) - 1} more", "dim")]
    # With the one before it, which has just been done, and a line that says how many are not shown.
    room = rows - 1
    start = max(0, min(current - 1, len(entries) - room)) if room > 1 else current
    shown = entries[start : start + room]
    hidden = [*entries[:start], *entries[start + room :]]
    done = sum(entry.status == "completed" for entry in hidden)
    told = f"  … {len(hidden)} more" + (f", {done} of them done" if done else "")
    return [*map(_line, shown), Text(told, "dim")]


def _line(entry: PlanEntry) -> Text:
    mark, style, words = _LOOKS[entry.status]
    return Text.assemble("  ", (mark, style), " ", (one_line(entry.content) or "…", words))
