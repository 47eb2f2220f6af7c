"""Sub-agents that have done their work, and can be asked to go on: what was said to them, in the session's journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.agents.coder.history import History
from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.models.messages import Message, Text, to_json

#: Those that can be asked to go on, in one session. The oldest are forgotten.
MOST_KEPT = 16
#: Of what was said to one. Of more, the task and the last words are kept.
MOST_CHARS = 400_000


class KeptAgent(Value):
    """One of them."""

    id: str
    name: str
    agent: str
    """Which of the user's own it is; empty: none."""
    messages: Sequence[Any]
    """What was said, as the journal has it."""


class KeptAgents:
    """Those of one session. Its history carries them."""

    def __init__(self, history: History) -> None:
        self._history = history
        for old in list(history.aside)[:-MOST_KEPT]:
            del history.aside[old]

    @property
    def ids(self) -> tuple[str, ...]:
        """The latest last."""
        return tuple(self._history.aside)

    def find(self, agent_id: str) -> KeptAgent | None:
        """One of them."""
        found = self._history.aside.get(agent_id)
        return None if found is None else KeptAgent(**found)

    def keep(self, agent_id: str, name: str, agent: str, history: History) -> None:
        """Remember how one stands now, for good."""
        messages = [to_json(message) for message in history.messages]
        if len(jsontext.dumps(messages)) > MOST_CHARS:
            messages = [to_json(message) for message in _shortened(history.messages)]
        self._history.keep_aside({"id": agent_id, "name": name, "agent": agent, "messages": messages}, MOST_KEPT)


def _shortened(messages: Sequence[Message]) -> list[Message]:
    """The task, and what came of it."""
    words = [block.text for block in messages[-1].content if isinstance(block, Text)]
    first = Message("user", messages[0].content)
    if messages[-1].role != "assistant" or not words:
        return [first]
    return [first, Message("assistant", (Text("\n".join(words)),))]
