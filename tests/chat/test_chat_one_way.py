"""A message goes one way through the bridge: who is below knows nothing of who is above, not even for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

from trunkline import chat

#: From the platform to what is said in a chat, as `docs/explanation/chat-bridge.md` tells it.
WAY = (
    *("bridge", "control", "conversation", "turn", "turn_view", "approval_prompts", "chat_session", "channel"),
    *("context", "delivery.answer", "delivery.outbox", "delivery.lane", "delivery.message", "delivery.rows"),
)


def imported(module: str) -> set[str]:
    """The modules of the bridge that one of them names, wherever in it that stands."""
    tree = ast.parse((Path(chat.__file__).parent / f"{module.replace('.', '/')}.py").read_text())
    names = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None]
    found = {f"{node.module}.{alias.name}" for node in names for alias in node.names} | {
        f"{node.module}" for node in names
    }
    return {name for name in WAY if f"trunkline.chat.{name}" in found}


def test_each_module_on_the_way_of_a_message_knows_only_those_below_it() -> None:
    for place, module in enumerate(WAY):
        assert imported(module) <= set(WAY[place + 1 :]), module
    assert imported("bridge") >= {"control", "conversation", "context"}


def test_the_way_is_the_one_that_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs/explanation/chat-bridge.md"
    way = page.read_text().partition("## The way of a message")[2].partition("\n## ")[0]
    for path in ("bridge", "conversation", "turn", "turn_view", "channel", "delivery/answer", "delivery/splitting"):
        assert f"`chat/{path}.py`" in way
        assert (Path(chat.__file__).parent / f"{path}.py").is_file()
