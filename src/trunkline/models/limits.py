"""How much a model can read and write, by its name.

    context_window("us.anthropic.claude-sonnet-4-20250514-v1:0")    # 200_000
    max_tokens("claude-sonnet-4@20250514")                          # 64_000

The longest beginning in the tables that a name has decides, after `plain_name` took off what sellers put around it.
A name that is in no table gets a default on the careful side: a conversation that is compacted too early goes on,
one that is too long for its model does not. The configuration overrides all of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: For models that nobody has heard of: what most services with an OpenAI-compatible endpoint offer at least.
DEFAULT_CONTEXT_WINDOW = 128_000

#: A file of weights, or a model with an Ollama tag, runs on somebody's own machine, with as much as that can hold.
LOCAL_CONTEXT_WINDOW = 8_192

#: Accepted by every chat model of recent years, and long enough for most answers.
DEFAULT_MAX_TOKENS = 8_192

_CONTEXT_WINDOWS: dict[str, int] = {
    "claude": 200_000,
    "claude-2.0": 100_000,
    "claude-opus-4-6": 1_000_000,
    "claude-opus-4-7": 1_000_000,
    "claude-opus-4-8": 1_000_000,
    "claude-opus-5": 1_000_000,
    "claude-sonnet-4-6": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    "claude-haiku-5": 1_000_000,
    "claude-fable": 1_000_000,
    "claude-mythos": 1_000_000,
    "gpt-3.5": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-5": 400_000,
    "gpt-5-chat": 128_000,
    "gpt-5.4": 1_050_000,
    "gpt-5.4-mini": 400_000,
    "gpt-5.4-nano": 400_000,
    "gpt-5.5": 1_050_000,
    "gpt-5.6": 1_050_000,
    "gpt-6": 1_050_000,
    "chatgpt-4o": 128_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4": 200_000,
    "gemini": 1_048_576,
    "deepseek": 128_000,
    "deepseek-flash": 1_000_000,
    "deepseek-v4": 1_000_000,
    "smollm": 8_192,
}

_MAX_TOKENS: dict[str, int] = {
    # Newer than the table: what every Claude since 4.6 may write.
    "claude": 128_000,
    "claude-2": 4_096,
    "claude-instant": 4_096,
    "claude-3": 4_096,
    "claude-3-5": 8_192,
    "claude-3-7": 64_000,
    "claude-opus-4": 32_000,
    "claude-opus-4-5": 64_000,
    "claude-opus-4-6": 128_000,
    "claude-opus-4-7": 128_000,
    "claude-opus-4-8": 128_000,
    "claude-sonnet-4": 64_000,
    "claude-sonnet-4-6": 128_000,
    "claude-haiku-4": 64_000,
    "gpt-3.5": 4_096,
    "gpt-4": 4_096,
    "gpt-4.1": 32_768,
    "gpt-4o": 16_384,
    "gpt-5": 128_000,
    "gpt-5-chat": 16_384,
    "gpt-6": 128_000,
    "chatgpt-4o": 16_384,
    "o1": 100_000,
    "o1-mini": 65_536,
    "o1-preview": 32_768,
    "o3": 100_000,
    "o4": 100_000,
    "gemini-1.5": 8_192,
    "gemini-2.0": 8_192,
    "gemini": 65_536,
    # A quarter of its window: the rest is for the conversation.
    "smollm": 2_048,
}

# Not compiled here: `re` keeps them, and most starts of a process ask for no model.
# `us.anthropic.`, `apac.anthropic.`, `us-gov.anthropic.`: where Amazon runs it, and whose it is.
_SELLER = r"^(?:[a-z-]+\.)?anthropic\."
# The dates, versions and aliases that follow a name, in every seller's way of writing them.
_EDITION = r"(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8}|@[a-z]+|-latest|-v\d+(?::\d+)*(?::\d+k)?)+$"
_LOCAL = r".*\.gguf|[^:]+:(?:latest|[a-z0-9._-]*\d[bm][a-z0-9._-]*)"


def context_window(model: str) -> int:
    """Tokens that a request and its answer may have together."""
    default = LOCAL_CONTEXT_WINDOW if re.fullmatch(_LOCAL, model.lower()) else DEFAULT_CONTEXT_WINDOW
    return _longest_match(_CONTEXT_WINDOWS, plain_name(model), default)


def max_tokens(model: str) -> int:
    """Tokens that an answer may have, thinking included."""
    return _longest_match(_MAX_TOKENS, plain_name(model), DEFAULT_MAX_TOKENS)


def plain_name(model: str) -> str:
    """The name that a model's maker gave it: in lower case, without seller, region, path, date and version.

    `us.anthropic.claude-sonnet-4-20250514-v1:0`, `claude-sonnet-4@20250514` and `anthropic/claude-sonnet-4` are all
    `claude-sonnet-4`.
    """
    name = model.lower().rpartition("/")[2]
    return re.sub(_EDITION, "", re.sub(_SELLER, "", name))


def _longest_match(table: Mapping[str, int], name: str, default: int) -> int:
    matching = [beginning for beginning in table if name.startswith(beginning)]
    return table[max(matching, key=len)] if matching else default
