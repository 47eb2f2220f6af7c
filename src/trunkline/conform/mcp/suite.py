"""The suite that the checks of MCP servers register with, and the conversation that its judges always see."""

from __future__ import annotations

import asyncio

from trunkline.conform.kit import CheckStopped, Suite
from trunkline.conform.mcp.link import StdioLink
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.vocabulary import LISTS


async def tour(stage: Stage) -> None:
    """An ordinary conversation: all lists, a tool with progress, a resource, and requests that are refused."""
    link = await stage.ready()
    for capability, (method, _) in LISTS.items():
        if capability in link.info.get("capabilities", {}):
            await link.ask(method, {}, stage.target.timeout)
    try:
        tool, arguments = await stage.harmless(link)
        call = {"name": tool["name"], "arguments": dict(arguments), "_meta": {"progressToken": "conform-1"}}
        await link.ask("tools/call", call, stage.target.timeout)
        await link.ask("tools/call", {**call, "_meta": {}}, stage.target.timeout)
    except CheckStopped as problem:
        link.record.remark(f"left out: {problem}")
    try:
        id = await stage.slow(link, {"progressToken": 2})
        await link.until(lambda: link.answer_to(id) is not None, stage.target.timeout)
    except CheckStopped as problem:
        link.record.remark(f"left out: {problem}")
    await link.ask("conform/no_such_method", {}, stage.target.timeout)
    # Time for what should not come: a late word, a second answer.
    await asyncio.sleep(stage.target.quiet)
    if isinstance(link, StdioLink):
        link.process.close_input()
        await link.process.ended(stage.target.patience)


#: The second part of the ids, in the order in which a client meets them.
_GROUPS = (
    "init", "ping", "rpc", "line", "tools", "resources", "prompts", "complete", "progress", "cancel", "bad", "http",
    "exit",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="mcp.init.answer")
