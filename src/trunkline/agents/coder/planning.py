"""The mode `plan`, as the model knows it.

The session decides what is done in it (`core.approvals`). The model is offered the tools that read alone, and told on
the user's side when it begins and when it is over: the system prompt stays as it is. What it knows is read from the
conversation, so that it is right after a resume, a compaction and a rewind.
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.agents.coder.history import History
from trunkline.agents.coder.words import PLAN_LEFT, PLANNING
from trunkline.base.vocabulary import Mode
from trunkline.core.approvals import changes_something
from trunkline.models.messages import Block, Text, ToolResultBlock
from trunkline.tools.exit_plan import APPROVED
from trunkline.tools.tool import Tool


class Planning:
    """Of one conversation. See `tools.exit_plan.Planner`."""

    def __init__(self, history: History, mode: Callable[[], Mode] | None) -> None:
        self._history = history
        self._mode = mode
        self.is_known = False
        self.look()

    @property
    def is_on(self) -> bool:
        """Whether the session is in the mode `plan`."""
        return self._mode is not None and self._mode() == "plan"

    def allows(self, tool: Tool) -> bool:
        """Whether a tool may be used now, as far as the mode goes: the model is not told of others."""
        return not self.is_on or not changes_something(tool.name, tool.category)

    def look(self) -> None:
        """Read from the conversation what the model has been told. Once it was read or replaced, and not each turn."""
        blocks = (block for message in reversed(self._history.messages) for block in reversed(message.content))
        self.is_known = next((told for block in blocks if (told := _told(block)) is not None), False)

    def news(self) -> tuple[Text, ...]:
        """What the model has to be told before it is asked again. It is by whoever asks for this."""
        if self.is_on == self.is_known:
            return ()
        self.is_known = self.is_on
        return (Text(PLANNING if self.is_known else PLAN_LEFT),)

    def approved(self) -> None:
        """The model is about to be told that its plan was approved."""
        self.is_known = False


def _told(block: Block) -> bool | None:
    """Whether a block says that the session plans, or that it no longer does; None: neither."""
    match block:
        case Text(text=text) if text in (PLANNING, PLAN_LEFT):
            return text == PLANNING
        case ToolResultBlock(text=text) if text.startswith(APPROVED):
            return False
        case _:
            return None
