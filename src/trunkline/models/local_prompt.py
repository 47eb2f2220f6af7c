"""What is said to a local model, and what it says, between our blocks and plain text.

Chat templates of small models know three roles and no tools. So tools are described in the system prompt, and calls and
their results are text in the messages, between the marks that larger models were taught.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.core.ids import new_id
from trunkline.models.grammar import CALL_BEGIN, CALL_END, to_json, unmarked_beginnings
from trunkline.models.messages import Block, Document, Image, Text, ToolResultBlock, ToolUse
from trunkline.models.model import Request, ToolSpec

RESULT_BEGIN = "<tool_response>"
RESULT_END = "</tool_response>"

#: The longest description of a tool. Each token in front of a conversation is read at some hundred per second.
MAX_DESCRIPTION = 120

#: What chat templates are made of. In a message it is text, and must not become a mark of the template.
_TEMPLATE_MARK = re.compile(r"<(?=\|\w{1,40}\|>)")

_NAME = re.compile(r'\{\s*"name": ("(?:[^"\\]|\\.)*")')


def messages(request: Request) -> list[dict[str, str]]:
    """A request as messages with the roles `system`, `user` and `assistant`, the latter two in turn."""
    system = "\n\n".join(part for part in (_harmless(request.system), tools_prompt(request.tools)) if part)
    said = [{"role": "system", "content": system}] if system else []
    for message in request.messages:
        text = _harmless("\n".join(filter(None, map(_block_text, message.content))))
        if said and said[-1]["role"] == message.role:
            said[-1]["content"] += f"\n{text}"
        else:
            said.append({"role": message.role, "content": text})
    return said


def _harmless(text: str) -> str:
    """A text in which no template's mark is left: `< |im_end|>`."""
    return _TEMPLATE_MARK.sub("< ", text) if "<|" in text else text


def _block_text(block: Block) -> str:
    match block:
        case Text(text):
            return text
        case ToolUse():
            # Not the raw text of a failed call: the model would take it for an example.
            return f"{CALL_BEGIN}\n{to_json({'name': block.name, 'arguments': block.input or {}})}\n{CALL_END}"
        case ToolResultBlock():
            return "\n".join((RESULT_BEGIN, block.text, *map(_block_text, block.images), RESULT_END))
        case Document():
            return f'<document name="{block.name}">\n{block.text}\n</document>'
        case Image():
            return "(a picture, which you cannot see)"
    return ""


def tools_prompt(tools: Sequence[ToolSpec]) -> str:
    """What a model is told about its tools: a line for each, and how to call one. Empty without tools."""
    if not tools:
        return ""
    lines = [f"- {tool.name}({_parameters(tool.schema)}): {_first_sentence(tool.description)}" for tool in tools]
    example = '{"name": TOOL, "arguments": {...}}'
    # No sentence leads up to the example: small models would say it, too, in front of their calls.
    how = f"{CALL_BEGIN}\n{example}\n{CALL_END}\nThis form runs a tool. Anything else is an answer in words."
    return "\n".join(("# Tools", *map(_harmless, lines), how))


def _parameters(schema: Mapping[str, Any]) -> str:
    """Names and types; a question mark after those that are not needed."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    required = schema.get("required")
    needed: Iterable[Any] = required if isinstance(required, list) else ()
    return ", ".join(f"{name}{'' if name in needed else '?'}: {_type(inner)}" for name, inner in properties.items())


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "|".join(map(to_json, choices))
    kind = schema.get("type", "any")
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    return sentence if len(sentence) <= MAX_DESCRIPTION else sentence[: MAX_DESCRIPTION - 3] + "..."


class AnswerParser:
    """An answer as it comes in: text to show, and perhaps a call at the end. Sans-IO."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._beginnings = unmarked_beginnings(tools)
        self._shown: list[str] = []
        # Text that may yet turn out to be the beginning of a call; then the call.
        self._held = ""
        self._in_call = False

    def feed(self, piece: str) -> str:
        """Take a piece; gives what of it can be shown now. A call never is."""
        if not self._beginnings:
            self._shown.append(piece)
            return piece
        self._held += piece
        if self._in_call:
            return ""
        if not self._shown and self._begins_as_call():
            return ""
        text, mark, rest = self._held.partition(CALL_BEGIN)
        if mark:
            self._in_call = True
            self._held = rest
        else:
            kept = _overlap(text, CALL_BEGIN)
            text, self._held = text[: len(text) - kept], text[len(text) - kept :]
        if text:
            self._shown.append(text)
        return text

    def _begins_as_call(self) -> bool:
        """Whether all that came may be, or is, the beginning of a call without a mark."""
        self._in_call = any(self._held.startswith(beginning) for beginning in self._beginnings)
        return self._in_call or any(beginning.startswith(self._held) for beginning in self._beginnings)

    def finish(self) -> tuple[str, tuple[Block, ...]]:
        """No more comes; gives the rest that can be shown, and all blocks of the answer."""
        rest = "" if self._in_call else self._held
        text = "".join((*self._shown, rest))
        call = _call(self._held) if self._in_call else None
        return rest, tuple(block for block in (Text(text) if text else None, call) if block)


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of a text may be the beginning of a mark."""
    start = text.rfind(mark[0])
    return len(text) - start if start >= 0 and mark.startswith(text[start:]) else 0


def _call(written: str) -> ToolUse | None:
    """The call that a model wrote; None when it was cut off before the tool's name."""
    written = written.removesuffix(CALL_END).removeprefix("```json").removesuffix("```").strip()
    name = _NAME.match(written)
    if name is None:
        return None
    call_id = f"call_{new_id()}"
    tool = str(jsontext.loads(name[1].encode()))
    try:
        arguments = jsontext.loads(written.encode())["arguments"]
    except (ValueError, KeyError, TypeError):
        arguments = None
    if isinstance(arguments, dict):
        return ToolUse(call_id, tool, arguments)
    return ToolUse(call_id, tool, None, raw=written)
