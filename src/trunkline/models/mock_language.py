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
from itertools import chain
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
#: Characters of a token in which words are looked for that are not to be said: none of those is longer.
_LONGEST = 256
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
        calls = await _calls(prompt) if prompt.tools else ""
        if not stream and not self._seconds and sampling is DEFAULT_SAMPLING:
            text = calls or _said(prompt, sampling)
            if len(text) <= _AT_ONCE:
                yield Piece(text, len(_TOKEN.findall(text)), _cost(prompt))
                return
        number = 0
        # The built-in limit is there for models that do not come to an end. This one does, so only another limit holds.
        limit = sampling.max_tokens if sampling.max_tokens != DEFAULT_SAMPLING.max_tokens else None
        for looked, token in enumerate(_tokens(calls) if calls else await _answer(prompt, sampling), 1):
            if number == limit:
                return
            if self._seconds or not looked % _SHARE:
                await asyncio.sleep(self._seconds)
            if token:
                number += 1
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


async def _answer(prompt: Prompt, sampling: SamplingParams) -> Iterator[str]:
    """The tokens of what it says, each looked at when it is asked for. Those that are not to be said are empty."""
    if sampling.json_schema:
        return _tokens(await asyncio.to_thread(_formed, sampling.json_schema, prompt.last_user_text))
    text = _said(prompt, sampling)
    adapters = "".join(f" [{each.name} {each.scale:g}]" for each in sampling.lora)
    if not sampling.logit_bias:
        return _tokens(text + adapters)
    unsaid = {each.token.strip().casefold() for each in sampling.logit_bias if each.bias < 0}
    added = "".join(f" {each.token.strip()}" for each in sampling.logit_bias if each.bias > 0)
    said = (token if unsaid.isdisjoint(_words(token.lstrip()[:_LONGEST])) else "" for token in _tokens(text))
    return chain(said, _tokens(added + adapters))


def _said(prompt: Prompt, sampling: SamplingParams) -> str:
    # As with any model: where the likeliest word is taken, nothing is left to chance.
    return f"{OPENINGS[sampling.seed % len(OPENINGS) if sampling.temperature else 0]} {prompt.last_user_text}"


def _formed(schema: str, text: str) -> str:
    """JSON that fits."""
    return to_json(fitting(jsontext.loads(schema.encode("utf-8", "replace")), text))


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


def _tokens(text: str) -> Iterator[str]:
    """The words of a text, each with the blanks before it; joined they are the text."""
    return (match[0] for match in _TOKEN.finditer(text))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
