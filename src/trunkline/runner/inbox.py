"""What the agent is to be told in its next prompt, and is told once.

Feedback is kept on disk and written to the log in one step. It is in every prompt until a model has answered one; a
prompt takes the newest ten, and the others wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from trunkline.runner.commlog import CommunicationLog
from trunkline.runner.state import AgentState, Kept

#: Told in one prompt.
MOST_TOLD = 10
#: Characters of one piece of feedback. The source of a large contract has a few hundred thousand.
MAX_FEEDBACK_CHARS = 200_000


class Inbox:
    """The feedback for one agent."""

    def __init__(self, state: AgentState, log: CommunicationLog, redact: Callable[[Any], Any]) -> None:
        self._state = state
        self._log = log
        self._redact = redact

    def tell(self, payload: dict[str, Any], action_types: Sequence[str]) -> None:
        """Keep this for the next prompt, and log that the agent is told. Secrets are masked in both."""
        clean = self._redact(payload)
        text = json.dumps(clean, indent=2, ensure_ascii=False)
        if len(text) > MAX_FEEDBACK_CHARS:
            error = f"The answer has {len(text)} characters, too many to be told."
            clean = {**_short(clean), "result": {"ok": False, "error": error}}
            text = json.dumps(clean, indent=2, ensure_ascii=False)
        self._state.add_feedback(clean)
        self._log.append("runner_to_agent", action_types, text)

    def waiting(self) -> list[Kept]:
        """What the next prompt is to tell."""
        return self._state.newest_feedback(MOST_TOLD)

    def told(self, items: Sequence[Kept]) -> None:
        """A model has answered a prompt with these."""
        self._state.remove_feedback(item.key for item in items)


def _short(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if isinstance(value, str) and len(value) <= 200}
