"""An agent with what people extend it with: skills, hooks, a list of to-dos, and files that it changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench._provider import Provider

from tests.support.provider_streams import anthropic_sse, anthropic_tool_calls, openai_sse, openai_tool_calls

SKILLS = 20

#: They do nothing, which is all that is measured of them: that they are there, and run.
_CONFIG = """
[[hooks.session_start]]
command = "true"

[[hooks.user_prompt_submit]]
command = "true"

[[hooks.pre_tool_use]]
matcher = "Bash|Edit|Write"
command = "true"
"""
HOOKS = _CONFIG.count("[[hooks.")

_SKILL = """---
name: skill-{number}
description: What a model does in case {number}, in the words of somebody who had it before.
---

# Case {number}

Look at what there is, and follow it.
"""


def furnish(home: str) -> None:
    """Put skills and hooks into a home, which is also the workspace: half of the skills are the user's."""
    config = Path(home, "config")
    config.mkdir()
    (config / "config.toml").write_text(_CONFIG, encoding="utf-8")
    for number in range(SKILLS):
        folder = Path(home, ".trunkline" if number % 2 else ".claude", "skills", f"skill-{number}")
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(_SKILL.format(number=number), encoding="utf-8")


@contextmanager
def working(provider: Provider) -> Iterator[None]:
    """In each turn the model keeps its list, writes a file, and then says a word or two, for the time of a block."""

    def answer(number: int) -> bytes | None:
        if number % 2 == 0:
            return None
        todos = [
            {"content": "Look at it", "status": "completed"},
            {"content": f"Write down number {number}", "status": "in_progress"},
        ]
        calls = (
            ("TodoWrite", {"todos": todos}),
            ("Write", {"file_path": f"written-{number % 7}.txt", "content": f"{number}\n"}),
        )
        ids = [f"call_{number}_{each}" for each, _ in enumerate(calls)]
        if provider.form == "openai":
            return openai_sse(openai_tool_calls(calls, ids=ids))
        return anthropic_sse(anthropic_tool_calls(calls, ids=ids))

    provider.works, provider.answers = answer, 0
    try:
        yield
    finally:
        provider.works = None
