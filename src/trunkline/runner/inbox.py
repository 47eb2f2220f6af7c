"""What the agent is to be told in its next prompt, and is told once.

Feedback is kept on disk, and then written to the log. It is in every prompt until a model has answered one; a prompt
takes the ten that have waited longest, and the others wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from trunkline.runner.commlog import CommunicationLog
from trunkline.runner.finishing import on_disk
from trunkline.runner.state import RunnerMemory, StateRow

#: Told in one prompt.
MOST_TOLD = 10
#: Characters of one piece of feedback. The source of a large contract has a few hundred thousand.
MAX_FEEDBACK_CHARS = 200_000
#: Characters of each text in feedback that was too long.
SHORT_TEXT = 200


class Inbox:
    """The feedback for one agent."""

    def __init__(self, state: RunnerMemory, log: CommunicationLog, redact: Callable[[Any], Any]) -> None:
        self._state = state
        self._log = log
        self._redact = redact

    async def tell(self, payload: dict[str, Any], action_types: Sequence[str]) -> None:
        """Keep this for the next prompt, and log that the agent is told. Secrets are masked in both.

        Raises:
            ConfigError: it cannot be kept. Then it is not logged either.
        """
        await on_disk(lambda: self._tell(payload, action_types))

    async def waiting(self) -> list[StateRow]:
        """What the next prompt is to tell."""
        return await on_disk(lambda: self._state.oldest_feedback(MOST_TOLD))

    async def told(self, items: Sequence[StateRow]) -> None:
        """A model has answered a prompt with these."""
        await on_disk(lambda: self._state.remove_feedback(item.key for item in items))

    def _tell(self, payload: dict[str, Any], action_types: Sequence[str]) -> None:
        clean = self._redact(payload)
        text = json.dumps(clean, indent=2, ensure_ascii=False)
        if len(text) > MAX_FEEDBACK_CHARS:
            error = f"The answer has {len(text)} characters, which is too long."
            clean = {**_short(clean), "result": {"ok": False, "error": error}}
            text = json.dumps(clean, indent=2, ensure_ascii=False)
        self._state.add_feedback(clean)
        self._log.append("runner_to_agent", action_types, text)


def _short(payload: dict[str, Any]) -> dict[str, Any]:
    """The same members with little in them."""
    return {name: _little(value) for name, value in payload.items()}


def _little(value: Any) -> Any:
    if isinstance(value, str):
        return value[:SHORT_TEXT]
    return type(value)() if isinstance(value, list | dict) else value
