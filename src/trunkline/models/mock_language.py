"""The mock for the nodes of a graph: needs no weights, is deterministic and quick.

It says `You said: ` and the last message of the user word for word, one token per word. With tools it calls each one
whose name occurs in that message, with the message's beginning for each text, and says nothing else unless there is
none. It chooses the intent that shares the most words with the message.

What is asked of an answer shows. A `seed` chooses how it begins, out of `OPENINGS`, unless the `temperature` is 0. With
a `json_schema` it is a value that fits, with the message for each text. A word whose bias is less than 0 is not said,
and one with more comes once more at the end. An adapter is named there, with its scale; any name will do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.core.graph.description import ToolDefinition
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import Piece, Prompt, Slot
from trunkline.models.grammar import to_json
from trunkline.models.mock_values import fitting
from trunkline.models.sampling import DEFAULT_SAMPLING
from trunkline.models.tool_calls import MAX_ARGUMENT, Call, write_calls

#: A model whose name begins like this takes its time.
SLOW = "mock-slow"
#: For each token.
SLOW_SECONDS = 0.02
#: Larger than any message that fits into a frame: what was said can be said back.
CONTEXT_SIZE = 1 << 20
#: Tokens after which others have their turn.
_SHARE = 256
#: Characters of an answer that is said at once, if nobody wants to hear its tokens.
_AT_ONCE = 1024
#: Characters of a message that all calls of an answer repeat together. A hundred tools with many texts each would make
#: a gigabyte of a long one.
MAX_REPEATED = 64 * 1024
#: Characters of a message in which one name is looked for before others have their turn.
_LONG_MESSAGE = 16 * 1024
#: How an answer begins; the first is that of the seed 0.
OPENINGS = ("You said:", "I heard:", "That was:", "So you say:", "In your words:", "As you put it:", "Well:")
_TOKEN = re.compile(r"\s*\S+(?:\s+\Z)?|\s+")
_WORD = re.compile(r"\w+")


class MockLanguage:
    """A `LanguageEngine` for any model name."""

    provider = "mock"
    context_size = CONTEXT_SIZE
    tool_call_format = ""
    default_sampling: SamplingParams | None = None

    def __init__(self, name: str = "mock") -> None:
        self.name = name
        self._seconds = SLOW_SECONDS if name.startswith(SLOW) else 0.0

    def refusal(self, sampling: SamplingParams) -> str | None:
        """It does all that can be asked."""
        return None

    async def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        """Say it: token by token, or at once if nobody wants to hear the tokens and they take no time."""
        text = (await _calls(prompt) if prompt.tools else "") or _answer(prompt, sampling)
        if not stream and not self._seconds and len(text) <= _AT_ONCE and sampling is DEFAULT_SAMPLING:
            yield Piece(text, len(_TOKEN.findall(text)), _cost(prompt))
            return
        for number, token in enumerate(_tokens(text, sampling.max_tokens), 1):
            if self._seconds or not number % _SHARE:
                await asyncio.sleep(self._seconds)
            # The first one brings what the prompt has cost.
            yield token if number > 1 else Piece(token, 1, _cost(prompt))

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """One more for each word that the user's message shares with the line that describes the continuation."""
        if self._seconds:
            await asyncio.sleep(self._seconds)
        said = _words(prompt.last_user_text)
        lines = [line for message in prompt.messages if message.role == "system" for line in message.text.splitlines()]
        described = {choice: text for line in lines for choice, mark, text in [line.partition(") ")] if mark}
        # Steep enough that one shared word decides, whatever the thresholds.
        return [4.0 * len(said & _words(described.get(choice, ""))) for choice in continuations]

    def count(self, text: str) -> int:
        """Its words."""
        return len(text.split())

    def release(self, slot: Slot) -> None:
        """There is nothing to let go of."""


async def _calls(prompt: Prompt) -> str:
    """The calls of all tools whose names occur in the message; "" without any."""
    said = prompt.last_user_text
    called = []
    for tool in prompt.tools:
        if tool.name in said:
            called.append(tool)
        if len(said) > _LONG_MESSAGE:
            await asyncio.sleep(0)
    texts = sum(len(tool.parameters) for tool in called)
    value = said[: min(MAX_ARGUMENT, MAX_REPEATED // max(texts, 1))]
    calls = [Call(tool.name, _arguments(tool, value)) for tool in called]
    return write_calls(calls, prompt.tool_format) if calls else ""


def _answer(prompt: Prompt, sampling: SamplingParams) -> str:
    said = prompt.last_user_text
    if sampling.json_schema:
        return to_json(fitting(jsontext.loads(sampling.json_schema.encode("utf-8", "replace")), said))
    # As with any model: where the likeliest word is taken, nothing is left to chance.
    opening = OPENINGS[sampling.seed % len(OPENINGS) if sampling.temperature else 0]
    text = f"{opening} {said}"
    if sampling.logit_bias:
        unsaid = {each.token.strip().casefold() for each in sampling.logit_bias if each.bias < 0}
        text = "".join(token for token in _TOKEN.findall(text) if unsaid.isdisjoint(_words(token)))
        text += "".join(f" {each.token.strip()}" for each in sampling.logit_bias if each.bias > 0)
    return text + "".join(f" [{each.name} {each.scale:g}]" for each in sampling.lora)


def _cost(prompt: Prompt) -> int:
    """The words of a prompt."""
    words = 0
    for message in prompt.messages:
        words += len(message.text.split())
    return words


def _arguments(tool: ToolDefinition, text: str) -> dict[str, Any]:
    """A value for each parameter that is of its type."""
    simple = {"integer": 1, "int": 1, "number": 1, "float": 1, "boolean": True, "bool": True}
    return {parameter.name: simple.get(parameter.type.lower(), text) for parameter in tool.parameters}


def _tokens(text: str, limit: int) -> Iterator[str]:
    """The words of a text, each with the blanks before it; joined they are the text.

    The built-in limit is there for models that do not come to an end. This one does, so only another limit holds.
    """
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number >= limit and limit != DEFAULT_SAMPLING.max_tokens:
            return
        yield match[0]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
