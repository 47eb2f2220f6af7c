"""Asking a person about a tool call: one key is the answer, and a no may have a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.text import Text

from trunkline.cli.terminal.keys import EditedLine, Key
from trunkline.cli.terminal.paint import ANY_WIDTH
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import ToolRequested
from trunkline.core.grants import Grant, grant_for
from trunkline.core.guarded import beyond
from trunkline.core.preview import Preview

#: What a person means who allows a command for always: that command, and not all that can be run.
ALWAYS = Approve("always", narrow=True)
#: A longer command is not repeated at the line to answer at: it stands above.
_SHORT_CHARS = 40
#: Where what can be pressed goes on in the next line.
_INDENT = 10


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
        self.grant = grant_for(request, narrow=ALWAYS.narrow)
        """What "always" would cover."""
        self.is_cut = shown.is_cut
        """Whether there is more to see than the screen shows."""
        self.is_put = False
        """Whether it has its lasting place on the screen."""
        self._reason: EditedLine | None = None

    def press(self, key: Key) -> Decision | Literal["stop", "all", "leave"] | None:
        """Take a key."""
        if self._reason is not None:
            return self._type_reason(self._reason, key)
        if key.name == "escape":
            return "stop"
        if key.name == "end":
            return "leave"
        match key.text.lower():
            case "y":
                return Approve()
            case "a":
                return ALWAYS
            case "n":
                self._reason = EditedLine()
            case "v" if self.is_cut:
                return "all"
        return None

    def _always(self) -> str:
        """What "always" would cover, in a few words."""
        covers = str(self.grant)
        return "exactly this" if self.grant.exact and len(covers) > _SHORT_CHARS else covers

    def _type_reason(self, reason: EditedLine, key: Key) -> Decision | None:
        if key.name == "enter":
            return Deny(reason.text.strip())
        if key.name == "escape":
            # A slip of the finger: back to the question.
            self._reason = None
        else:
            reason.press(key)
        return None

    def prompt(self, waiting: int, width: int = ANY_WIDTH) -> Text:
        """The lines to answer at; `waiting` more calls are behind this one."""
        if self._reason is not None:
            hint = "  Enter sends · Esc back"
            return Text.assemble(("  Why not? ", "bold"), self._reason.text, ("▏", "cyan"), (hint, "dim"))
        keys = [("y", "yes"), ("a", f"always: {self._always()}"), ("n", "no"), ("Esc", "stop")]
        if self.is_cut:
            keys.append(("v", "view all"))
        offers = [Text.assemble((f" {key} ", "reverse"), f" {meaning}") for key, meaning in keys]
        if waiting:
            offers.append(Text(f"({waiting} more wait)", "dim"))
        where = f" {beyond(self.request.args)}" if self.request.outside else ""
        line = Text(f"  Allow{where}?", "bold yellow")
        indent, reached = min(len(line), _INDENT), len(line)
        for offer in offers:
            # A key and its meaning stay together.
            apart = "  " if reached + len(offer) + 2 < width else "\n" + " " * indent
            reached = (reached + 2 if apart == "  " else indent) + len(offer)
            line.append(apart, "default")
            line.append_text(offer)
        return line


def told(decision: Decision, grant: Grant) -> tuple[str, str]:
    """A decision in words, and their style. `grant` is what "always" covers."""
    if isinstance(decision, Approve):
        later = "" if decision.scope == "once" else f" · from now on: {grant} (see /grants)"
        return f"✓ allowed{later}", "green"
    reason = decision.reason if isinstance(decision, Deny) else ""
    return (f"✗ refused: {reason}" if reason else "✗ refused"), "red"
