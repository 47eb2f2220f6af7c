"""What a model was asked, as text that people can read and compare.

Of each request the text has what is new since the one before: what the user said, and what came of the calls. The
system prompt and the tools are the same in nearly all of them. They are in one file for the whole suite, and the text
has only how they differ from that. What is different on every machine and in every run (places, dates,
times) is replaced by names such as `$REPO`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What is said of a conversation whose system prompt and tools are not those of the whole suite.
OTHER_PROMPT = "(the system prompt and the tools are those of prompt.txt, but for this)"
#: What is said of a request where they are no longer those of the one before it.
CHANGED_PROMPT = "(the system prompt or the tools have changed)"

_USUAL_MASKS = (
    (r"(?m)^Current date: .*$", "Current date: $DATE"),
    (r"(?m)^Operating system: .*$", "Operating system: $SYSTEM"),
    (r"\b\d+\.\d+ ?m?s\b", "$TIME"),
    (r"\bduration_ms:? [\d.]+", "duration_ms $TIME"),
    (r"\bagent_id: [0-9a-f]+", "agent_id: $AGENT"),
    # The prompts of sub-agents have paths in them, which are longer on other machines.
    (r"\btokens: \d+ in / \d+ out\b", "tokens: $TOKENS"),
    # Named after the workspace.
    (r"/memory/[^/]+/MEMORY\.md", "/memory/$PROJECT/MEMORY.md"),
)


class Wording:
    """Makes text the same on every machine: for a task that is done in the folders `repo` and `home` of `root`."""

    def __init__(self, root: Path, masks: Sequence[str] = ()) -> None:
        self._places = ((str(root / "repo"), "$REPO"), (str(root / "home"), "$HOME"))
        self._masks = [(re.compile(mask), name) for mask, name in _USUAL_MASKS]
        self._masks += [(re.compile(mask), "$MASKED") for mask in masks]

    def __call__(self, text: str) -> str:
        for place, name in self._places:
            text = text.replace(place, name)
        for mask, name in self._masks:
            text = mask.sub(name, text)
        return text


@dataclass(frozen=True)
class Entry:
    """One thing that was said: by the user, by the model, or by a tool."""

    head: str
    text: str

    def __str__(self) -> str:
        return f"----- {self.head}\n{self.text}"


@dataclass(frozen=True)
class Asked:
    """A request, whatever its format."""

    prompt: str
    """The system prompt and the tools."""
    said: tuple[Entry, ...]

    @property
    def opening(self) -> str:
        """What the user said first."""
        return self.said[0].text if self.said else ""


def read(body: Any, plain: Wording) -> Asked:
    """What a request in the format of Anthropic's Messages, or of OpenAI's Chat Completions, says."""
    messages = body["messages"]
    if messages and messages[0]["role"] == "system":
        system, messages = messages[0]["content"], messages[1:]
    else:
        system = "".join(block["text"] for block in body.get("system", ()))
    tools = [tool.get("function", tool) for tool in body.get("tools", ())]
    parts = [Entry("system prompt", plain(system)), *(_tool(tool) for tool in tools)]
    names: dict[str, str] = {}
    said = [entry for message in messages for entry in _entries(message, names, plain)]
    return Asked("\n\n".join(map(str, parts)) + "\n", tuple(said))


def _tool(tool: Any) -> Entry:
    schema = tool.get("input_schema") or tool.get("parameters")
    return Entry(f"tool {tool['name']}", f"{tool['description']}\n{json.dumps(schema, indent=2, ensure_ascii=False)}")


def _entries(message: Any, names: dict[str, str], plain: Wording) -> Iterable[Entry]:
    """What a message says. `names` learns which tool each call is of."""
    role, content = message["role"], message["content"]
    if role == "tool":
        yield Entry(f"result of {names[message['tool_call_id']]}", plain(_text(content)))
        return
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        match block["type"]:
            case "text":
                yield Entry(role, plain(block["text"]))
            case "tool_use":
                yield _call(block["id"], block["name"], block["input"], names, plain)
            case "tool_result":
                head = f"result of {names[block['tool_use_id']]}{' (error)' if block.get('is_error') else ''}"
                yield Entry(head, plain(_text(block.get("content"))))
            case other:
                yield Entry(role, f"[{other}]")
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield _call(call["id"], function["name"], json.loads(function["arguments"]), names, plain)


def _call(call_id: str, name: str, args: Any, names: dict[str, str], plain: Wording) -> Entry:
    names[call_id] = name
    return Entry(f"call of {name}", plain(json.dumps(args, indent=2, ensure_ascii=False)))


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n\n".join(part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)


def answered(text: str, calls: Sequence[tuple[str, Any]], plain: Wording) -> tuple[Entry, ...]:
    """What the model's own answer looks like in the next request."""
    words = [Entry("assistant", plain(text))] if text else []
    return (*words, *(_call("", name, args, {}, plain) for name, args in calls))


def new_in(asked: Asked, before: Sequence[Entry]) -> str:
    """What a request says that was not said `before`; all of it, where that has been rewritten."""
    if asked.said[: len(before)] == tuple(before):
        return "\n".join(map(str, asked.said[len(before) :]))
    return "\n".join(["(what was said before has been rewritten; this is all of it)", *map(str, asked.said)])


def changed_lines(old: str, new: str, usual: str) -> str:
    """How a system prompt with tools differs from another, part by part.

    A part that is gone, or has come and is the `usual` one, is only named.
    """
    before, now, known = _parts(old), _parts(new), _parts(usual)
    said = [f"(without: {head})" for head in before if head not in now]
    for head, text in now.items():
        if head not in before and known.get(head) == text:
            said.append(f"(again: {head})")
            continue
        # Without the places of the lines: those stay right when others change. The first two lines name the files.
        diff = difflib.unified_diff(before.get(head, "").splitlines(), text.splitlines(), n=0, lineterm="")
        lines = [line for line in list(diff)[2:] if not line.startswith("@@")]
        said += [f"({'differs' if head in before else 'besides'}: {head})", *lines] if lines else []
    return "\n".join(said)


def _parts(prompt: str) -> dict[str, str]:
    """The parts of a system prompt with tools, by their heads."""
    _, *found = re.split(r"(?m)^----- (.+)$", prompt)
    return {head: text.strip("\n") for head, text in zip(found[::2], found[1::2], strict=True)}


def difference(old: str, new: str, name: str) -> str:
    """What differs from the recording, as `diff` shows it; empty where nothing does."""
    return "\n".join(
        difflib.unified_diff(old.splitlines(), new.splitlines(), f"{name}, recorded", f"{name}, now", n=2, lineterm="")
    )
