"""`/agents` and `/hooks`: what users have configured around the agent's work, for them to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trunkline.agents.coder.commands import HELP, TypedCommand, listed
from trunkline.agents.coder.compaction import Say
from trunkline.agents.coder.settings_hooks import HookTable

if TYPE_CHECKING:
    from trunkline.agents.coder.extending.own_agents import OwnAgent

_NO_AGENTS = (
    "No sub-agents are defined. One is a Markdown file with a `description`, such as `.trunkline/agents/NAME.md`."
)
_NO_HOOKS = "No hooks are configured. They are commands in `config.toml`, such as `[[hooks.pre_tool_use]]`."


def agents(found: Callable[[], Mapping[str, OwnAgent]]) -> TypedCommand:
    """`/agents`, for the sub-agents that are found when it is typed."""

    async def run(rest: str, say: Say) -> str:
        return listed([*map(_agent, found().values())]) or _NO_AGENTS

    return TypedCommand(HELP["/agents"], run)


def hooks(table: HookTable) -> TypedCommand:
    """`/hooks`."""

    async def run(rest: str, say: Say) -> str:
        lines = [
            f"{event}: {hook.matcher or ', '.join(hook.tools) or 'always'}: {hook.label} (at most {hook.seconds:g} s)"
            for event, found in table.items()
            for hook in found
        ]
        return "\n".join(lines) or _NO_HOOKS

    return TypedCommand(HELP["/hooks"], run)


def _agent(agent: OwnAgent) -> str:
    more = []
    if agent.tools is not None:
        more.append(f"tools: {', '.join(agent.tools) or 'none'}")
    if agent.model:
        more.append(f"model: {agent.model}")
    return f"{agent.name}: {agent.description or 'no description'}" + (f" ({'; '.join(more)})" if more else "")
