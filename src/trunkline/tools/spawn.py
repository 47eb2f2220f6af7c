"""`Spawn`: hand tasks to sub-agents, which work side by side. Who they are, the `Spawner` knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trunkline.base.values import Value
from trunkline.core.events import Category
from trunkline.core.usage import Usage
from trunkline.tools.tool import Report, ToolOutput

#: Sub-agents of one call. More would not be cheaper than one after the other.
MAX_TASKS = 5

_BETWEEN = "\n\n---\n\n"


class Task(Value):
    """What a sub-agent is to do. It knows nothing else."""

    name: str
    prompt: str


class SubAgentOutcome(Value):
    """What a sub-agent came to."""

    name: str
    ok: bool
    text: str
    rounds: int
    usage: Usage


class Spawner(Protocol):
    """Runs sub-agents."""

    async def spawn(self, tasks: Sequence[Task], report: Report) -> Sequence[SubAgentOutcome]:
        """Run all of them side by side; gives their outcomes in the same order."""


class SpawnTool:
    """Sub-agents as a tool."""

    name = "Spawn"
    category: Category = "exec"
    description = (
        "Hand independent tasks to sub-agents that work in parallel. Each has an empty context of its own and the "
        "same tools, except this one. It sees nothing but its prompt, so say everything that it needs. You get what "
        "each of them answers. Use it for searches and analyses that would fill your own context."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_TASKS,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "A short name for the task."},
                        "prompt": {"type": "string", "description": "What the sub-agent should do."},
                    },
                    "required": ["name", "prompt"],
                },
            }
        },
        "required": ["tasks"],
    }
    limit = 50_000
    # A sub-agent may change files.
    concurrent = False

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    def describe(self, args: Mapping[str, Any]) -> str:
        try:
            return f"Spawn: {', '.join(task.name for task in _tasks(args))}"
        except ValueError:
            return "Spawn: sub-agents"

    def outside(self, args: Mapping[str, Any]) -> bool:
        # Their own calls are looked at one by one.
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        try:
            tasks = _tasks(args)
        except ValueError as error:
            return ToolOutput(str(error), "error")
        outcomes = await self._spawner.spawn(tasks, report)
        text = _BETWEEN.join(map(_told, outcomes))
        return ToolOutput(text, "success" if any(outcome.ok for outcome in outcomes) else "error")


def _tasks(args: Mapping[str, Any]) -> list[Task]:
    listed = args.get("tasks")
    if not isinstance(listed, list) or not listed:
        raise ValueError("`tasks` must be a list of objects with `name` and `prompt`.")
    if len(listed) > MAX_TASKS:
        raise ValueError(f"`tasks` has {len(listed)} entries; at most {MAX_TASKS} sub-agents work at one time.")
    tasks = []
    for number, entry in enumerate(listed, 1):
        prompt = entry.get("prompt") if isinstance(entry, dict) else None
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError(f"Task {number} has no `prompt`.")
        name = entry.get("name") or f"task {number}"
        if not isinstance(name, str):
            raise ValueError(f"The `name` of task {number} must be a string.")
        tasks.append(Task(name, prompt))
    return tasks


def _told(outcome: SubAgentOutcome) -> str:
    mark = "OK" if outcome.ok else "ERROR"
    used = outcome.usage
    return (
        f"## {outcome.name} [{mark}]\n{outcome.text}\n"
        f"[turns: {outcome.rounds} | tokens: {used.input_tokens or 0} in / {used.output_tokens or 0} out]"
    )
