"""`/context`: what fills the model's window, part by part, for people and for programs.

What a provider has counted is the total; what the parts are is estimated, and made to add up to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.compaction import CLEAR_SHARE, Compaction, Say
from trunkline.agents.coder.history import CHARS_PER_TOKEN, IMAGE_TOKENS, History, block_tokens
from trunkline.agents.coder.model_client import ModelClient, tool_tokens
from trunkline.agents.coder.words import is_ours
from trunkline.core.events import CONTEXT, Extension
from trunkline.models.messages import Block, Document, Image, Role, ToolResultBlock

SYSTEM, PROJECT, MEMORY, SKILLS = "system prompt", "project instructions", "memory", "skills"
TOOLS, MCP_TOOLS = "tools", "MCP tools"
USER, NOTES, ASSISTANT = "user messages", "notes and summaries", "assistant messages"
RESULTS, PICTURES = "tool results", "pictures and documents"
#: In the order in which they are shown.
PARTS = (SYSTEM, PROJECT, MEMORY, SKILLS, TOOLS, MCP_TOOLS, USER, NOTES, ASSISTANT, RESULTS, PICTURES)


class ContextUse:
    """Of one conversation, as it is now. `prompt`: the parts of the system prompt that have names of their own."""

    def __init__(
        self,
        client: ModelClient,
        history: History,
        calls: Calls,
        compaction: Compaction,
        prompt: Mapping[str, str],
    ) -> None:
        self._client = client
        self._history = history
        self._calls = calls
        self._compaction = compaction
        self._prompt = prompt

    def parts(self) -> dict[str, int]:
        """The tokens of each part."""
        found = dict.fromkeys(PARTS, 0)
        chars = {name: len(text) for name, text in self._prompt.items() if name in found}
        for name, count in chars.items():
            found[name] = count // CHARS_PER_TOKEN
        found[SYSTEM] = max(0, len(self._client.system()) - sum(chars.values())) // CHARS_PER_TOKEN
        for spec in self._calls.specs():
            tool = self._calls.toolbox.find(spec.name)
            found[MCP_TOOLS if tool is not None and tool.category == "mcp" else TOOLS] += tool_tokens(spec)
        for message in self._history.messages:
            for block in message.content:
                for name, tokens in _block_parts(message.role, block):
                    found[name] += tokens
        return scaled(found, self._history.tokens) if self._history.is_counted else found

    async def told(self, say: Say) -> str:
        """What people are told; programs get it by an event."""
        parts, window, model = self.parts(), self._client.context_window, self._client.model
        used = sum(parts.values())
        compact_at = int(self._compaction.summarise_at) if self._compaction.enabled else None
        await say(Extension(CONTEXT, {"used": used, "size": window, "compact_at": compact_at, "parts": parts}))
        count = len(self._history.messages)
        filled = f"{used:,} of {window:,} tokens ({used / window:.0%}) in {count} message{'' if count == 1 else 's'}"
        lines = [f"{filled}, model `{model.name}` of `{model.provider}`.", ""]
        lines += [*table({**parts, "used": used, "free": max(0, window - used)}, window), ""]
        if compact_at is None:
            return "\n".join([*lines, "Compaction is off: the oldest messages are dropped when the window is full."])
        lines.append(
            f"Compaction: old tool results are cleared from {int(CLEAR_SHARE * compact_at):,} tokens on, a summary is "
            f"written at {compact_at:,} ({compact_at / window:.0%})."
        )
        return "\n".join(lines)


def scaled(parts: Mapping[str, int], total: int) -> dict[str, int]:
    """The same parts, so that they add up to a total."""
    before = sum(parts.values()) or 1
    exact = {name: tokens * total / before for name, tokens in parts.items()}
    found = {name: int(tokens) for name, tokens in exact.items()}
    # What rounding has lost goes to those that have lost most.
    for name in sorted(exact, key=lambda name: found[name] - exact[name])[: total - sum(found.values())]:
        found[name] += 1
    return found


def table(rows: Mapping[str, int], window: int) -> list[str]:
    """A line for each: its name, its tokens, and what that is of the window."""
    names, counts = max(map(len, rows)), [f"{tokens:,}" for tokens in rows.values()]
    width = max(map(len, counts))
    return [
        f"{name:<{names}}  {count:>{width}}  {tokens / window:>6.1%}"
        for (name, tokens), count in zip(rows.items(), counts, strict=True)
    ]


def _block_parts(role: Role, block: Block) -> list[tuple[str, int]]:
    """What a block of a message counts as."""
    match block:
        case ToolResultBlock(images=images):
            shown = IMAGE_TOKENS * len(images)
            return [(RESULTS, block_tokens(block) - shown), (PICTURES, shown)]
        case Image() | Document():
            return [(PICTURES, block_tokens(block))]
        case _ if role == "assistant":
            return [(ASSISTANT, block_tokens(block))]
        case _:
            return [(NOTES if is_ours(block) else USER, block_tokens(block))]
