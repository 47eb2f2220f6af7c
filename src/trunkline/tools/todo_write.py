"""`TodoWrite`: the list of what an agent means to do, which people see move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.core.events import Asking, Category, Plan, PlanEntry, PlanStatus, Priority
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import one_line

#: Of one list: more than anybody follows.
MOST_TODOS = 100
#: Of one entry. What is longer is cut: it is a line.
MOST_CHARS = 500

_STATUSES: tuple[PlanStatus, ...] = ("pending", "in_progress", "completed")
_PRIORITIES: tuple[Priority, ...] = ("high", "medium", "low")


class TodoWrite:
    """The list as a tool. `put` is told each new one."""

    name = "TodoWrite"
    category: Category = "info"
    asking: Asking = "allow"
    limit = 10_000
    # Of two lists in one round the second one counts.
    concurrent = False
    description = (
        "Keep a list of what you mean to do, which the user watches. Use it for work of three steps or more, not for a "
        "single step or a question. Each call replaces the whole list: send every entry with its status. Set "
        "the one that you are about to begin to `in_progress`, and to `completed` as soon as it is done and checked. "
        "Add what turns up on the way; leave out what is no longer needed."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "maxItems": MOST_TODOS,
                "description": "The whole list, in the order of the work.",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string", "description": "What is to be done, in a few words."},
                        "status": {"type": "string", "enum": list(_STATUSES), "description": "How far it is."},
                    },
                    "required": ["content", "status"],
                },
            }
        },
        "required": ["todos"],
    }

    def __init__(self, put: Callable[[Plan], None]) -> None:
        self._put = put

    def describe(self, args: Mapping[str, Any]) -> str:
        return "Update the to-do list"

    def outside(self, args: Mapping[str, Any]) -> bool:
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        try:
            plan = plan_of(args["todos"])
        except ToolInputError as error:
            return ToolOutput(str(error), "error")
        self._put(plan)
        return ToolOutput(_told(plan.entries))


def plan_of(todos: Any) -> Plan:
    """A list as a model has written it. Members that other agents' models are used to change nothing.

    Raises:
        ToolInputError: it is none; the text says why.
    """
    if not isinstance(todos, Sequence) or isinstance(todos, str):
        raise ToolInputError("`todos` must be a list of objects with `content` and `status`.")
    if len(todos) > MOST_TODOS:
        raise ToolInputError(f"`todos` has {len(todos)} entries; at most {MOST_TODOS} can be kept.")
    return Plan(tuple(_entry(number, todo) for number, todo in enumerate(todos, 1)))


def _entry(number: int, todo: Any) -> PlanEntry:
    if not isinstance(todo, Mapping):
        raise ToolInputError(f"Entry {number} of `todos` must be an object with `content` and `status`.")
    content = todo.get("content")
    words = " ".join(content.split()) if isinstance(content, str) else ""
    if not words:
        raise ToolInputError(f"Entry {number} of `todos` has no `content`.")
    said = str(todo.get("status") or "pending").strip().lower().replace("-", "_").replace(" ", "_")
    status = next((each for each in _STATUSES if each == said), None)
    if status is None:
        raise ToolInputError(f"Entry {number} of `todos`: `status` must be one of {', '.join(_STATUSES)}.")
    priority: Priority = next((each for each in _PRIORITIES if each == todo.get("priority")), "medium")
    return PlanEntry(one_line(words, MOST_CHARS), priority, status)


def _told(entries: Sequence[PlanEntry]) -> str:
    if not entries:
        return "The to-do list is empty now."
    done = sum(entry.status == "completed" for entry in entries)
    now = [entry.content for entry in entries if entry.status == "in_progress"]
    return f"The to-do list was kept: {done} of {len(entries)} done." + (f" Now: {'; '.join(now)}" if now else "")
