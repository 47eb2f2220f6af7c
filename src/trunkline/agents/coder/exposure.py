"""What a turn has been shown that others wrote, and which of its calls have to be confirmed because of that.

A file, a page or the output of a program may hold words that are meant for the agent. Once it has read any, a call that
would send data out or touch credentials could be theirs and not the user's: somebody is asked, even where a rule or a
grant allows it. A turn and its sub-agents are one: what one of them has read, it tells the others. The next message of
the user begins with nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.agents.coder.history import History
from trunkline.base.vocabulary import Mode
from trunkline.core.events import ToolRequested
from trunkline.models.messages import ToolResultBlock

#: Tools whose every result counts, also an error: what can be read from it was others' to decide.
OTHERS_WORDS = frozenset(("Read", "Bash", "WebFetch"))
#: Of what was read, for people.
_SHOWN_CHARS = 80


class Exposure:
    """Of one conversation's turn, and of its sub-agents."""

    def __init__(self, workspace: str, mode: Callable[[], Mode] | None = None) -> None:
        self._workspace = workspace
        self._mode = mode
        self._read = ""

    def begin(self) -> None:
        """A turn begins."""
        self._read = ""

    def go_on(self, history: History) -> None:
        """A turn goes on of which an earlier process has seen a part. What came of its calls by then may have been
        anything; so may what a compaction has taken away."""
        began = max(history.turns.values(), default=None)
        since = history.messages[began:] if began is not None else ()
        if began is None or any(isinstance(block, ToolResultBlock) for each in since for block in each.content):
            self._read = "what it read before a restart"

    def shown(self, described: str) -> None:
        """The model is shown what a call gave, which others wrote; `described` is the call in words."""
        self._read = described

    def is_wary(self) -> bool:
        """Whether a search leaves out credentials that it does not name, where nobody would be asked about it."""
        return bool(self._read) and (self._mode is None or self._mode() != "yolo")

    def why_confirm(self, request: ToolRequested) -> str:
        """Why a call has to be confirmed; empty if it has not."""
        if not self._read:
            return ""
        from trunkline.base.visible import inline
        from trunkline.core.risks import risk_of

        risk = risk_of(request, self._workspace)
        read = inline(self._read, _SHOWN_CHARS)
        return f"this {risk} after `{read}`, which may have told the agent to do so" if risk else ""
