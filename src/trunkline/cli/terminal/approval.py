"""Asking a person about a tool call: one key is the answer, and a no may have a reason."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Literal

from rich.text import Text

from trunkline.base.visible import visible
from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.cli.terminal.calls import one_line
from trunkline.cli.terminal.keys import EditedLine, Key
from trunkline.cli.terminal.paint import ANY_WIDTH
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import ToolRequested
from trunkline.core.grants import Grant, grant_for, may_last
from trunkline.core.guarded import beyond
from trunkline.core.preview import Preview

#: What a person means who allows a command for always: that command, and not all that can be run.
ALWAYS = Approve("always", narrow=True)
#: A longer command is not repeated at the line to answer at: it stands above.
_SHORT_CHARS = 40
#: Between two things that can be pressed, and where they go on in the next line: below the first of them.
_APART = "  "
_INDENT = 10


class Question:
    """One call that waits for an answer.

    `press` takes keys and gives the decision once there is one, `"stop"` to stop the turn, `"all"` to see what was
    left out of the preview, or None.
    """

    def __init__(
        self, request: ToolRequested, shown: Preview, lines: Sequence[str] = (), *, keeps: bool = False
    ) -> None:
        """`keeps`: what is allowed for always can be kept for later sessions."""
        self.request = request
        self.shown = shown
        self.lines = lines
        """What is asked about, as it stands on the screen."""
        self.is_plan = request.name == EXIT_PLAN
        """Whether it is a plan that is to be agreed to, and not something to be done: there is no "always" to it."""
        self.grant = grant_for(request, narrow=ALWAYS.narrow)
        """What "always" would cover."""
        self.is_kept = False
        """Whether "always" was meant for later sessions, too."""
        self._may_last = may_last(request)
        self._may_be_kept = self._may_last and keeps and not request.outside and bool(self.grant.rules)
        self.is_cut = shown.is_cut
        """Whether there is more to see than the screen shows."""
        self.is_put = False
        """Whether it has its lasting place on the screen."""
        self._reason: EditedLine | None = None
        self._why = one_line(visible(" ".join(request.why.split()), keep=""))
        """Why somebody is asked although nobody would be otherwise."""

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
            case "a" if self._may_last:
                return ALWAYS
            case "p" if self._may_be_kept:
                # The rule that is kept counts at once. A grant besides it would outlive its removal.
                self.is_kept = True
                return Approve()
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
            asked = "  What should be different? " if self.is_plan else "  Why not? "
            return Text.assemble((asked, "bold"), self._reason.text, ("▏", "cyan"), (hint, "dim"))
        if self.is_plan:
            keys = [("y", "yes, do it"), ("n", "no, keep planning"), ("Esc", "stop")]
        else:
            lasting = [("a", f"always: {self._always()}")] if self._may_last else []
            later = [("p", "always, in later sessions too")] if self._may_be_kept else []
            keys = [("y", "yes"), *lasting, *later, ("n", "no"), ("Esc", "stop")]
        if self.is_cut:
            keys.append(("v", "view all"))
        offers = [Text.assemble((f" {key} ", "reverse"), f" {meaning}") for key, meaning in keys]
        if waiting:
            offers.append(Text(f"({waiting} more wait)", "dim"))
        where = f" {beyond(self.request.category, self.request.args)}" if self.request.outside else ""
        line = Text("  Go on with this plan?" if self.is_plan else f"  Allow{where}?", "bold yellow")
        indent, reached = min(len(line) + len(_APART), _INDENT), len(line)
        for offer in offers:
            # A key and its meaning stay together.
            apart = _APART if reached + len(offer) + len(_APART) < width else "\n" + " " * indent
            reached = (reached + len(_APART) if apart == _APART else indent) + len(offer)
            line.append(apart, "default")
            line.append_text(offer)
        if not self._why:
            return line
        # Here, and not with what is asked about, of which a small screen does not show all.
        why = f"{self._why[:1].upper()}{self._why[1:]}."
        rows = wrap(why, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        return Text.assemble(("\n".join([*rows, ""]), "yellow"), line)


def told(decision: Decision, grant: Grant) -> tuple[str, str]:
    """A decision in words, and their style. `grant` is what "always" covers."""
    if isinstance(decision, Approve):
        later = "" if decision.scope == "once" else f" · from now on: {grant} (see /grants)"
        return f"✓ allowed{later}", "green"
    reason = decision.reason if isinstance(decision, Deny) else ""
    return (f"✗ refused: {reason}" if reason else "✗ refused"), "red"
