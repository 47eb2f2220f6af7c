"""What thinks for a conversation: a model, and how it is asked. Changes between turns, by `SetOptions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from trunkline.models.messages import Message
from trunkline.models.model import Chunk, Model, Request, ToolSpec


class Mind:
    """A model with its standing instructions and limits."""

    def __init__(
        self,
        model: Model,
        system: Callable[[], str],
        *,
        max_tokens: int | None = None,
        max_rounds: int | None = None,
        thinking_budget: int | None = None,
        effort: str | None = None,
        context_window: int | None = None,
    ) -> None:
        self.model = model
        self.system = system
        """Asked anew for every request: the date, the model and what the host added may have changed."""
        self.max_tokens = max_tokens
        self.max_rounds = max_rounds
        """How often the model may use tools for one message; None: as often as it likes."""
        self.thinking_budget = thinking_budget
        self.effort = effort
        self._context_window = context_window

    @property
    def context_window(self) -> int:
        """Tokens that fit into a request with its answer."""
        return self._context_window or self.model.context_window

    def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> AsyncIterator[Chunk]:
        """Ask the model. See `Model.stream`."""
        return self.model.stream(
            Request(messages, self.system(), tools, self.max_tokens, self.thinking_budget, self.effort)
        )
