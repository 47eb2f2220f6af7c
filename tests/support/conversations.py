"""What a request to a provider says, in any of the formats: who said what, and what came of the tools.

`read` is strict where providers are: a request that one of them would refuse is an AssertionError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from trunkline.core.approvals import BUILT_IN

#: The tools that come with the coding agent; all others are those of MCP servers.
OWN_TOOLS = frozenset(BUILT_IN)


class Said:
    """One message: its `text`, its `calls` as (id, name, args), its `results` as (id, text)."""

    def __init__(
        self,
        role: str,
        text: str = "",
        calls: Iterable[tuple[str, str, Any]] = (),
        results: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.role = role
        self.text = text
        self.calls = tuple(calls)
        self.results = tuple(results)

    def __repr__(self) -> str:
        return f"{self.role}: {self.text!r} {self.calls or ''} {self.results or ''}"


class Asked:
    """One request: the system prompt, the names of the tools, and the messages."""

    def __init__(self, system: str, tools: Sequence[str], said: Sequence[Said]) -> None:
        self.system = system
        self.tools = tuple(tools)
        self.said = tuple(said)
        self._spoken = [number for number, each in enumerate(said) if each.role == "user" and each.text]

    @property
    def words(self) -> str:
        """What the user said last."""
        return self.said[self._spoken[-1]].text if self._spoken else ""

    @property
    def messages(self) -> int:
        """How often the user spoke."""
        return len(self._spoken)

    @property
    def results(self) -> list[str]:
        """What came of the tools since the user spoke, without the marks around what others wrote."""
        return [unmarked(text) for text in self.marked_results]

    @property
    def marked_results(self) -> list[str]:
        """The same as the model has them."""
        since = self.said[self._spoken[-1] + 1 :] if self._spoken else self.said
        return [text for each in since for _, text in each.results]

    @property
    def mcp_tools(self) -> list[str]:
        """The tools that are not the agent's own."""
        return [name for name in self.tools if name not in OWN_TOOLS]


def unmarked(text: str) -> str:
    """A result without the mark that says that others wrote it; what stands behind the mark stays."""
    found = re.match(r"<(untrusted_data\w*)>\n", text)
    if not found:
        return text
    inside, end, behind = text[found.end() :].rpartition(f"\n</{found[1]}>")
    assert end, f"the mark has no end: {text[-200:]!r}"
    return inside + behind


def read(body: Any) -> Asked:
    """What a request says.

    Raises:
        AssertionError: a provider would refuse it.
    """
    tools = [_tool_name(tool) for tool in body.get("tools", ())]
    assert len(set(tools)) == len(tools), f"a tool is named twice: {tools}"
    if "input" in body:
        said = _responses(body["input"])
        _check_pairs(said)
        return Asked(body.get("instructions", ""), tools, said)
    messages = body["messages"]
    if messages and messages[0]["role"] == "system":
        system, said = messages[0]["content"], _openai(messages[1:])
    elif "system" in body or any(isinstance(message["content"], list) for message in messages):
        system = "".join(block["text"] for block in body.get("system", ()))
        said = [_anthropic(message) for message in messages]
        _check_alternation(said)
    else:
        system, said = "", _openai(messages)
    _check_pairs(said)
    return Asked(system, tools, said)


def _tool_name(tool: Any) -> str:
    return str(tool["function"]["name"] if "function" in tool else tool["name"])


def _anthropic(message: Any) -> Said:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    assert blocks, "a message is empty"
    assert all(block["text"].strip() for block in blocks if block["type"] == "text"), f"a text is empty: {blocks}"
    kinds = [block["type"] for block in blocks]
    assert "tool_result" not in kinds[kinds.count("tool_result") :], f"results do not come first: {kinds}"
    return Said(
        message["role"],
        "\n\n".join(block["text"] for block in blocks if block["type"] == "text"),
        [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        [(block["tool_use_id"], _text(block.get("content"))) for block in blocks if block["type"] == "tool_result"],
    )


def _openai(messages: Sequence[Any]) -> list[Said]:
    """The results of one step, which are messages of their own, are put together."""
    said: list[Said] = []
    for message in messages:
        if message["role"] == "tool":
            result = (message["tool_call_id"], _text(message["content"]))
            if said and said[-1].role == "user" and not said[-1].text:
                said[-1] = Said("user", "", (), (*said[-1].results, result))
            else:
                said.append(Said("user", "", (), [result]))
            continue
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())
        ]
        said.append(Said(message["role"], _text(message["content"]), calls))
    return said


def _responses(items: Sequence[Any]) -> list[Said]:
    """The items of one side, which stand beside each other, are put together."""
    said: list[Said] = []
    for number, item in enumerate(items):
        role, text, calls, results = "assistant", "", [], []
        match item["type"]:
            case "message":
                role, text = item["role"], _text(item["content"])
                assert text.strip(), "a text is empty"
            case "function_call":
                calls = [(item["call_id"], item["name"], json.loads(item["arguments"]))]
            case "function_call_output":
                role, results = "user", [(item["call_id"], _text(item["output"]))]
            case "reasoning":
                follows = items[number + 1] if number + 1 < len(items) else {"type": "nothing"}
                assert follows["type"] == "function_call" or follows.get("role") == "assistant", "it leads to nothing"
                assert item["encrypted_content"], "nobody can read it"
                assert isinstance(item["summary"], list), "it has no summary, not even an empty one"
            case other:
                raise AssertionError(f"there is no item `{other}`")
        if said and said[-1].role == role and not (role == "user" and said[-1].text):
            last = said.pop()
            text, calls, results = last.text + text, [*last.calls, *calls], [*last.results, *results]
        said.append(Said(role, text, calls, results))
    return said


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n\n".join(part["text"] for part in content if part["type"] in ("text", "input_text"))


def _check_alternation(said: Sequence[Said]) -> None:
    roles = [each.role for each in said]
    assert roles[:1] == ["user"] == roles[-1:], f"the user does not speak first and last: {roles}"
    assert all(left != right for left, right in pairwise(roles)), f"a side speaks twice: {roles}"


def _check_pairs(said: Sequence[Said]) -> None:
    waiting: list[str] = []
    for each in said:
        answered = [call_id for call_id, _ in each.results]
        assert answered == waiting, f"calls {waiting} are answered by {answered} in {each}"
        waiting = [call_id for call_id, _, _ in each.calls]
        assert len(set(waiting)) == len(waiting), f"two calls have one id: {waiting}"
    assert not waiting, f"calls have no result: {waiting}"
