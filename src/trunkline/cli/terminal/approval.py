"""Asking a person about a tool call: one key is the answer, and a no may have a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.text import Text

from trunkline.cli.terminal.keys import Key, Line
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import ToolRequested
from trunkline.core.preview import Preview


class Question:
    """One call that waits for an answer.

    `press` takes keys and gives the decision once there is one, `"stop"` to stop the turn, `"all"` to see what was
    left out of the preview, or None.
    """

    def __init__(self, request: ToolRequested, shown: Preview, lines: Sequence[str] = ()) -> None:
        self.request = request
        self.shown = shown
        self.lines = lines
        """What is asked about, as it stands on the screen."""
        self.is_put = False
        """Whether it has its lasting place on the screen."""
        self._reason: Line | None = None

    def press(self, key: Key) -> Decision | Literal["stop", "all"] | None:
        """Take a key."""
        if self._reason is not None:
            return self._type_reason(self._reason, key)
        if key.name == "escape":
            return "stop"
        match key.text.lower():
            case "y":
                return Approve()
            case "a" if not self.request.outside:
                return Approve("always")
            case "n":
                self._reason = Line()
            case "v" if self.shown.is_cut:
                return "all"
        return None

    def _type_reason(self, reason: Line, key: Key) -> Decision | None:
        if key.name == "enter":
            return Deny(reason.text.strip())
        if key.name == "escape":
            # A slip of the finger: back to the question.
            self._reason = None
        else:
            reason.press(key)
        return None

    def prompt(self, waiting: int) -> Text:
        """The line to answer at; `waiting` more calls are behind this one."""
        if self._reason is not None:
            hint = "  Enter sends · Esc back"
            return Text.assemble(("  Why not? ", "bold"), self._reason.text, ("▏", "cyan"), (hint, "dim"))
        keys = [("y", "yes"), ("n", "no"), ("Esc", "stop")]
        if not self.request.outside:
            keys.insert(1, ("a", f"always for {self.request.category}"))
        if self.shown.is_cut:
            keys.append(("v", "view all"))
        where = " outside the workspace" if self.request.outside else ""
        line = Text.assemble((f"  Allow{where}? ", "bold yellow"))
        for key, meaning in keys:
            line.append(f" {key} ", "reverse")
            line.append(f" {meaning}  ")
        if waiting:
            line.append(f"({waiting} more wait)", "dim")
        return line


def told(decision: Decision, category: str) -> tuple[str, str]:
    """A decision in words, and their style."""
    if isinstance(decision, Approve):
        later = "" if decision.scope == "once" else f", as is every later `{category}` tool of this session"
        return f"✓ allowed{later}", "green"
    reason = decision.reason if isinstance(decision, Deny) else ""
    return (f"✗ refused: {reason}" if reason else "✗ refused"), "red"
