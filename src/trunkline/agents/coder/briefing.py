"""What the model is told before every conversation: the system prompt, and what the host said came before.

The same words as long as nothing changes: providers keep what they have seen, and charge a tenth for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trunkline.agents.coder import instructions
from trunkline.agents.coder.prompt import surroundings, system_prompt
from trunkline.models.model import Model

_BEFORE = "# From before this conversation"


class Briefing:
    """The standing words of one conversation."""

    def __init__(self, workspace: str, own: Sequence[str | None], history: Sequence[str], shell: str | None) -> None:
        project = instructions.load(workspace)
        self.notices = project.notices
        self._workspace = workspace
        self._shell = shell
        self._project = project.text
        self._own = "\n\n".join(text.strip() for text in own if text and text.strip())
        self._history = list(history)

    def add_history(self, text: str) -> None:
        """The host says what was said, or agreed, before."""
        self._history.append(text)

    def text(self, model: Model, tools: Collection[str], *, before: bool = True) -> str:
        """All of it, for a model with some tools; without what came `before`, for somebody who was not there."""
        prompt = system_prompt(
            surroundings(self._workspace, self._shell),
            model=model.name,
            tools=tools,
            instructions=self._own,
            project=self._project,
            compact=getattr(model, "compact_prompt", False),
        )
        if not self._history or not before:
            return prompt
        return "\n\n".join([prompt, _BEFORE, *self._history])
