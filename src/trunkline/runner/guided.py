"""A small model as a brain: held to valid actions by a grammar, and told no more than it can take in.

A model with a hundred million parameters cannot follow the table of actions, and reads slowly. So it gets an outline of
the context, and two actions as tools: to begin a thread, and to comment on one of the newest. What it calls is the
decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.core.faults import AgentFailed, ProviderError
from trunkline.core.usage import Usage
from trunkline.runner.prompting import DecisionPrompt, bundled

if TYPE_CHECKING:
    from trunkline.models.model import Model, ToolSpec

#: What the outline has of each: a hundred words take a small model a second or more to read.
MOST_THREADS = 4
MOST_FUNCTIONS = 20
MOST_TOLD = 2
SHORT_TEXT = 160

#: The longest texts that the grammar lets it write.
MAX_TITLE = 80
MAX_BODY = 240
#: Enough tokens for both.
MAX_TOKENS = 300

_NOTHING: Mapping[str, Any] = {}
_ASK = "This is what there is, as JSON that others wrote:\n{outline}\nNow choose one action."


async def answer(model: Model, prompt: DecisionPrompt) -> tuple[str, Usage | None]:
    """What it decides, as JSON, and what it used.

    Raises:
        Fault: it did not answer, or was cut off.
    """
    from trunkline.models.asking import asked
    from trunkline.models.messages import Message, Text, ToolUse
    from trunkline.models.model import Answer, Request, Retrying

    community = next(iter(_objects(prompt.context.get("communities"))), _NOTHING)
    outline = jsontext.dumps(_outline(community, prompt.context)).decode("utf-8", "replace")
    message = Message("user", (Text(_ASK.format(outline=outline)),))
    request = Request([message], system=bundled("small"), tools=_tools(community), max_tokens=MAX_TOKENS)
    async with aclosing(asked(model, request)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, Retrying):
                raise ProviderError(chunk.reason, retryable=True)
            if isinstance(chunk, Answer):
                call = next((block for block in chunk.content if isinstance(block, ToolUse)), None)
                if call is None or call.input is None:
                    raise AgentFailed("The model was cut off in the middle of its decision.")
                decided = {"action": call.name, "communitySlug": community.get("slug"), **call.input}
                return jsontext.dumps(decided).decode("utf-8", "replace"), chunk.usage
    raise AgentFailed("The model gave no answer.")


def _outline(community: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    contracts = _objects(community.get("contracts"))
    functions = [_signature(each) for contract in contracts for each in _objects(contract.get("abiFunctions"))]
    threads = [
        {"threadId": each.get("id"), "title": _short(each.get("title")), "body": _short(each.get("body"))}
        for each in _threads(community)
    ]
    told = [_short(jsontext.dumps(each).decode("utf-8", "replace")) for each in _objects(context.get("runnerInbox"))]
    return {
        "application": _short(community.get("name")),
        "functions": functions[:MOST_FUNCTIONS],
        "threads": threads,
        "runnerInbox": told[-MOST_TOLD:],
    }


def _tools(community: Mapping[str, Any]) -> Sequence[ToolSpec]:
    from trunkline.models.model import ToolSpec

    body = {"type": "string", "minLength": 1, "maxLength": MAX_BODY}
    title = {"type": "string", "minLength": 1, "maxLength": MAX_TITLE}
    begin = {"type": "object", "properties": {"title": title, "body": body}, "required": ["title", "body"]}
    tools = [ToolSpec("create_thread", "Begin a thread about a test that nobody has written about.", begin)]
    if ids := [each["id"] for each in _threads(community)]:
        thread = {"type": "string", "enum": ids}
        reply = {"type": "object", "properties": {"threadId": thread, "body": body}, "required": ["threadId", "body"]}
        tools.append(ToolSpec("comment", "Comment on a thread.", reply))
    return tools


def _threads(community: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The newest that it may comment on."""
    found = [each for each in _objects(community.get("threads")) if isinstance(each.get("id"), str)]
    return [each for each in found if each.get("type") != "SYSTEM"][:MOST_THREADS]


def _signature(function: Mapping[str, Any]) -> str:
    types = ",".join(str(each.get("type")) for each in _objects(function.get("inputs")))
    return f"{_short(function.get('name'))}({types[:SHORT_TEXT]})"


def _short(text: Any) -> str:
    return text[:SHORT_TEXT] if isinstance(text, str) else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
