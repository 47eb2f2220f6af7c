"""`Spawn`: hand tasks to sub-agents, which work side by side. Who they are, the `Spawner` knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from trunkline.base.values import Value
from trunkline.core.events import Category
from trunkline.core.usage import Usage
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.tool import Report, ToolOutput

#: Sub-agents of one call. More would not be cheaper than one after the other.
MAX_TASKS = 5

#: Of the agents that were defined: how many are listed, and how much is said of them in all.
MOST_LISTED = 100
MOST_LISTED_CHARS = 10_000

_BETWEEN = "\n\n---\n\n"


class Task(Value):
    """What a sub-agent is to do. It knows nothing else, unless it has worked before."""

    name: str
    prompt: str
    agent: str = ""
    """Which of the agents that were defined does it; empty: one like the agent itself."""
    resume: str = ""
    """The id of the sub-agent that is to go on."""


class SubAgentOutcome(Value):
    """What a sub-agent came to."""

    name: str
    ok: bool
    text: str
    rounds: int
    usage: Usage
    agent_id: str = ""
    """By which it can be asked to go on."""


class Spawner(Protocol):
    """Runs sub-agents."""

    async def spawn(self, tasks: Sequence[Task], report: Report) -> Sequence[SubAgentOutcome]:
        """Run all of them side by side; gives their outcomes in the same order.

        Raises:
            ToolInputError: one cannot be run; none was.
        """


class SpawnTool:
    """Sub-agents as a tool."""

    name = "Spawn"
    category: Category = "exec"
    changes_no_file = True
    description = (
        "Hand independent tasks to sub-agents that work in parallel. Each has an empty context of its own and the "
        "same tools, except this one and TodoWrite. It sees nothing but its prompt, so say all that it needs. You get "
        "what each of them answers. Use it for searches and analyses that would fill your own context."
    )
    limit = 50_000
    # A sub-agent may change files.
    concurrent = False

    def __init__(self, spawner: Spawner, agents: Mapping[str, str] | None = None) -> None:
        """`agents`: those that were defined, by name, with what each is for."""
        self._spawner = spawner
        self.parameters: Mapping[str, Any] = _schema(agents or {})

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
        try:
            outcomes = await self._spawner.spawn(tasks, report)
        except ToolInputError as error:
            return ToolOutput(str(error), "error")
        text = _BETWEEN.join(map(_told, outcomes))
        # What they answer may repeat what they have read.
        status: Literal["success", "error"] = "success" if any(outcome.ok for outcome in outcomes) else "error"
        return ToolOutput(text, status, foreign=True)


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
        tasks.append(Task(name, prompt, _word(entry, "agent", number), _word(entry, "resume", number)))
    return tasks


def _word(entry: Mapping[str, Any], key: str, number: int) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        raise ValueError(f"The `{key}` of task {number} must be a string.")
    return value.strip()


def _schema(agents: Mapping[str, str]) -> Mapping[str, Any]:
    task: dict[str, Any] = {
        "name": {"type": "string", "description": "A short name for the task."},
        "prompt": {"type": "string", "description": "What the sub-agent should do."},
    }
    if agents:
        task["agent"] = {
            "type": "string",
            "description": f"Who does it, if not one like you. There are: {_listed(agents)}",
        }
    task["resume"] = {
        "type": "string",
        "description": "The `agent_id` of an earlier sub-agent, to go on with what it knows.",
    }
    items = {"type": "object", "properties": task, "required": ["name", "prompt"]}
    tasks = {"type": "array", "minItems": 1, "maxItems": MAX_TASKS, "items": items}
    return {"type": "object", "properties": {"tasks": tasks}, "required": ["tasks"]}


def _listed(agents: Mapping[str, str]) -> str:
    lines, left = [], MOST_LISTED_CHARS
    for name, description in agents.items():
        line = f"- {name}: {description}" if description else f"- {name}"
        left -= len(line) + 1
        # Who does not fit can be asked by name all the same.
        lines.append(line if left >= 0 else f"- {name}")
    return "\n".join(["", *lines[:MOST_LISTED]])


def _told(outcome: SubAgentOutcome) -> str:
    mark = "OK" if outcome.ok else "ERROR"
    used = outcome.usage
    return (
        f"## {outcome.name} [{mark}]\n{outcome.text}\n"
        f"[turns: {outcome.rounds} | tokens: {used.input_tokens or 0} in / {used.output_tokens or 0} out]"
        + (f"\nagent_id: {outcome.agent_id}" if outcome.agent_id else "")
    )
