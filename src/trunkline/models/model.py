"""What every model looks like to an agent: a request goes in, chunks come out, an `Answer` last."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from trunkline.base.values import Value
from trunkline.core.usage import Usage
from trunkline.models.messages import Block, Message

#: Why a model stopped. `refusal`: it will not answer. `max_tokens`: it was cut off.
Stop = Literal["end", "tool_use", "max_tokens", "refusal"]


class ToolSpec(Value):
    """A tool as a model sees it. `schema` is the JSON Schema of its input."""

    name: str
    description: str
    schema: Mapping[str, Any]


class AnswerOptions(Value):
    """How an answer is to be made, where somebody says so. What is None is the model's own."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """The answer ends in front of the first of these that it would hold."""
    must_call: bool = False
    """It is a call of one of the tools."""
    schema: Any = None
    """It is JSON that fits this JSON Schema, unless it is a call of a tool."""


class Request(Value):
    """One question to a model: the whole conversation so far."""

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    thinking_budget: int | None = None
    """Tokens that the model may think; None: it is not asked to."""
    effort: str | None = None
    """`low`, `medium` or `high`, for models that know it."""
    on_spent: Callable[[Usage], None] | None = None
    """Told what was used by a try that gave no `Answer`, because it failed or was left, as far as that is known."""
    options: AnswerOptions | None = None
    """None: nobody says anything."""


class Chunk(Value):
    """Base of what a model says."""


class TextChunk(Chunk, hot=True):
    """A piece of the answer."""

    text: str


class ThinkingChunk(Chunk, hot=True):
    """A piece of the reasoning."""

    text: str


class Retrying(Chunk):
    """The request failed in a way that may pass, and is made again after some seconds. Never after text was shown."""

    reason: str
    seconds: float

    @property
    def told(self) -> str:
        """The same in one sentence for people."""
        return f"{self.reason.rstrip('.')}. Trying again in {self.seconds:.1f} s."


class Answer(Chunk):
    """The whole of it, once and last. Joined, its blocks say what the chunks said."""

    content: tuple[Block, ...]
    stop: Stop
    usage: Usage | None = None
    """`input_tokens` includes what was read from and written to the provider's cache."""


class ReplyState(Protocol):
    """How far an answer has come."""

    @property
    def done(self) -> bool:
        """Whether the provider has said that it is complete, so that nothing more is to be waited for."""

    @property
    def complete(self) -> bool:
        """Whether it is whole, so that it does not matter if what is left of the stream is lost."""

    @property
    def spent(self) -> Usage | None:
        """What the provider has said up to now that it uses."""


class Model(Protocol):
    """One model of one provider. Safe for several streams at once."""

    @property
    def provider(self) -> str:
        """Such as `anthropic`."""

    @property
    def name(self) -> str:
        """The provider's id of the model."""

    @property
    def context_window(self) -> int:
        """Tokens that request and answer may have together, as far as is known."""

    @property
    def images(self) -> bool:
        """Whether it can see pictures; when not known, yes."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Ask. Leaving the iterator cancels the request at once.

        Raises:
            ProviderError: it did not work; `retryable` says whether it may the next time.
        """

    async def close(self) -> None:
        """Let go of connections and memory. Idempotent."""
