"""What thinks for a conversation: a model, and how it is asked. Changes between turns, by `SetOptions`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from trunkline.agents.coder.history import CHARS_PER_TOKEN
from trunkline.base import jsontext
from trunkline.core.agent import Meter
from trunkline.core.usage import Usage
from trunkline.models.asking import asked
from trunkline.models.messages import Message
from trunkline.models.model import Chunk, Model, Request, ToolSpec

#: Left free for what nobody has counted: the tools, and the error of an estimate.
RESERVE_TOKENS = 4000
#: Where nobody said how long an answer may be: without room for this much there is no use in asking; the service will
#: say so.
LEAST_ANSWER_TOKENS = 1024
#: An answer that was said to be long keeps at most this part of the window from the conversation.
ANSWER_SHARE = 0.5


def tool_tokens(tool: ToolSpec) -> int:
    """About how many tokens it takes to tell a model of a tool."""
    return len(jsontext.dumps([tool.name, tool.description, tool.schema])) // CHARS_PER_TOKEN


class ModelClient:
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
        meter: Meter | None = None,
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
        self._meter = meter

    @property
    def context_window(self) -> int:
        """Tokens that fit into a request with its answer."""
        return self._context_window or self.model.context_window

    @property
    def origin(self) -> str:
        """Who alone can read the reasoning that this model sends along, encrypted or signed."""
        return str(getattr(self.model, "origin", f"{self.model.provider}/{self.model.name}"))

    @property
    def room(self) -> float:
        """Tokens of a conversation behind which the longest answer fits, if it was said how long that is."""
        window = self.context_window
        if self.max_tokens is None:
            return window
        return window - min(self.max_tokens + RESERVE_TOKENS, ANSWER_SHARE * window)

    def for_subagents(self, system: Callable[[], str], model: Model | None = None) -> ModelClient:
        """The same model as it is now, with other standing instructions; or another `model`, of which it is not known
        how hard it can be told to think."""
        same = model is None
        return ModelClient(
            model or self.model,
            system,
            max_tokens=self.max_tokens if same else None,
            max_rounds=self.max_rounds,
            thinking_budget=self.thinking_budget if same else None,
            effort=self.effort if same else None,
            context_window=self._context_window if same else None,
            meter=self._meter,
        )

    def beside(self, tools: Sequence[ToolSpec]) -> int:
        """About how many tokens are sent with every request beside its messages."""
        return len(self.system()) // CHARS_PER_TOKEN + sum(map(tool_tokens, tools))

    def spent(self, usage: Usage) -> None:
        """Count what a request has used."""
        if self._meter is not None:
            self._meter.spent(usage, self.model.name)

    def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        used: int,
        *,
        most: int | None = None,
        on_spent: Callable[[Usage], None] | None = None,
    ) -> AsyncGenerator[Chunk, None]:
        """Ask the model. See `Model.stream`.

        Args:
            used: how many tokens the messages have. Some services refuse a request whose longest answer would not fit
                into the window behind them; so that is shortened, unless somebody said how long it may be.
            most: the longest answer, if it is to be shorter than usual.
            on_spent: see `Request`.

        Raises:
            BudgetExceeded: it may not cost any more.
        """
        if self._meter is not None:
            self._meter.check()
        system = self.system()
        longest = self.max_tokens
        if longest is None and (possible := getattr(self.model, "longest_answer", None)) is not None:
            room = self.context_window - used - len(system) // CHARS_PER_TOKEN - RESERVE_TOKENS
            longest = max(LEAST_ANSWER_TOKENS, min(possible, room))
        if most is not None:
            longest = min(longest or most, most)
        request = Request(messages, system, tools, longest, self.thinking_budget, self.effort, on_spent)
        return asked(self.model, request)
