"""The model of provider `mock`: needs no weights, network or key, is deterministic, and says what it was told.

    hello there                     it says `hello there`, word by word
    tool: Read {"file_path": "x"}   it calls that tool, then says `Result: ` and the first line of what came back

Of what is asked of an answer it honours the longest one, in words, what ends it, that it calls a tool, and its schema:
then it makes up what fits, with the message for each text.

For the nodes of a graph: `mock_language`, `embedding_mock`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

from trunkline.base import jsontext
from trunkline.core.usage import Usage
from trunkline.models.answers import tool_input
from trunkline.models.messages import Message, Text, ToolResultBlock, ToolUse
from trunkline.models.mock_values import fitting, fitting_arguments
from trunkline.models.model import Answer, AnswerOptions, Chunk, Request, Stop, TextChunk
from trunkline.models.providers import ModelSettings

_DIRECTIVE = "tool:"
#: What says of a result that others wrote it.
_MARK = re.compile(r"<untrusted_data\w*>")
#: A word with the spaces before it. Spaces at the end belong to the last one: a message of nothing else is no million
#: words.
_WORD = re.compile(r" *[^ ]+(?: +\Z)?| +")
#: A plausible one, so that conversations with it are compacted like others.
CONTEXT_WINDOW = 200_000


class MockModel:
    """The `Model` of provider `mock`."""

    provider = "mock"
    context_window = CONTEXT_WINDOW

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.model or "mock"
        self.images = settings.compat.get("image_input") != "unsupported"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Say it. `usage` counts words."""
        read = sum(_word_count(message) for message in request.messages)
        last = request.messages[-1] if request.messages else Message("user", ())
        call = _directed(last, len(request.messages)) if request.tools or not request.options else None
        if call is None and request.tools and request.options and request.options.must_call:
            tool = request.tools[0]
            call = ToolUse(f"call_{len(request.messages)}", tool.name, fitting_arguments(tool.schema, _said(last)))
        if call is not None:
            yield Answer((call,), "tool_use", Usage(read, 1))
            return
        pieces = _WORD.findall(_answer(last, request.options)) or [""]
        most = request.max_tokens or len(pieces)
        stop: Stop = "end" if len(pieces) <= most else "max_tokens"
        for piece in pieces[:most]:
            yield TextChunk(piece)
        yield Answer((Text("".join(pieces[:most])),), stop, Usage(read, len(pieces[:most])))

    async def close(self) -> None:
        """There is nothing to let go of."""


def _said(message: Message) -> str:
    """What the user said; not what an agent notes beside it, in brackets."""
    texts = [block.text for block in message.content if isinstance(block, Text)]
    said = [text for text in texts if not (text.startswith("[") and text.endswith("]"))]
    return "\n".join(said or texts)


def _word_count(message: Message) -> int:
    return len(_said(message).split())


def _directed(message: Message, number: int) -> ToolUse | None:
    text = _said(message).strip()
    if message.role != "user" or not text.startswith(_DIRECTIVE) or "\n" in text:
        return None
    name, _, arguments = text.removeprefix(_DIRECTIVE).strip().partition(" ")
    given, raw = tool_input(arguments)
    return ToolUse(f"call_{number}", name, given, raw)


def _answer(message: Message, options: AnswerOptions | None) -> str:
    if options is None:
        return _reply(message)
    if options.schema is not None:
        return jsontext.dumps(fitting(options.schema, _said(message))).decode()
    text = _reply(message)
    return text[: min([place for each in options.stop if (place := text.find(each)) >= 0], default=len(text))]


def _reply(message: Message) -> str:
    results = [block.text for block in message.content if isinstance(block, ToolResultBlock)]
    if results:
        lines = [line for line in results[0].splitlines() if not _MARK.fullmatch(line)]
        return f"Result: {lines[0] if lines else ''}"
    return _said(message) or "(nothing)"
