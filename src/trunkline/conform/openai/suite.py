"""The suite that the checks of servers register with, and the requests that its judges always see."""

from __future__ import annotations

from trunkline.conform.kit import Suite
from trunkline.conform.openai.stage import Stage, word


async def tour(stage: Stage) -> None:
    """Ordinary requests, and some that are refused, for the judges."""
    await stage.asking.ask("GET", "/models")
    await stage.chat()
    await stage.chat(stream=True, stream_options={"include_usage": True})
    await stage.respond()
    await stage.respond(stream=True)
    await stage.chat(model=word())
    await stage.asking.ask("POST", "/chat/completions", content=b"{")


#: The second part of the ids, in the order in which a client meets them.
_GROUPS = (
    "models", "chat", "limit", "stream", "responses", "events", "tools", "embeddings", "error", "auth", "bad",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="openai.chat.answer")
