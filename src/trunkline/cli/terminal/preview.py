"""What a tool call would do, in colours, for somebody who is asked to allow it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from trunkline.base.visible import unseen, visible
from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.cli.terminal import diffs
from trunkline.cli.terminal.markdown import code, formatted
from trunkline.cli.terminal.subagents import SPAWN_TOOL
from trunkline.core import preview as core
from trunkline.core.events import ToolRequested
from trunkline.core.preview import SCREEN, Preview, PreviewPart, PreviewSize

#: A part without a name that is a text for people, and not an argument of a program.
_MARKDOWN = "markdown"
#: The ids of a sub-agent's calls.
_OF_SUBAGENT = re.compile(r"sub\d+\.")


def preview(request: ToolRequested, workspace: str, room: PreviewSize | None = SCREEN) -> Preview:
    """A call as it is shown: a change against the file as it is now, a plan as the text that it is."""
    plan = request.args.get("plan")
    if request.name == EXIT_PLAN and len(request.args) == 1 and isinstance(plan, str):
        # All of it, whatever the room: a plan is read before it is agreed to.
        return Preview("Plan", parts=(PreviewPart(text=visible(plan), language=_MARKDOWN, unseen=unseen(plan)),))
    tasks = request.args.get("tasks")
    if request.name == SPAWN_TOOL and len(request.args) == 1 and isinstance(tasks, list) and all(map(_is_task, tasks)):
        return Preview(SPAWN_TOOL, parts=tuple(_task(number, task) for number, task in enumerate(tasks, 1)))
    before = None
    if core.is_change(request.name, request.args, request.category):
        before = core.file_before(request.args["file_path"], workspace)
    shown = core.preview(request.name, request.args, room, before, request.category)
    # Whose tool it is, only the description tells: two servers may have tools of one name. So with who asks.
    told = request.category == "mcp" or _OF_SUBAGENT.match(request.call_id)
    said = core.said_of(request.description) if told else ""
    return shown.replace(parts=(PreviewPart(text=said), *shown.parts)) if said else shown


def _is_task(task: Any) -> bool:
    return isinstance(task, dict) and "prompt" in task and all(isinstance(value, str) for value in task.values())


def _task(number: int, task: Mapping[str, str]) -> PreviewPart:
    """What a sub-agent is to do, below its name and what else is said of it."""
    others = [f"{key} {value}" for key, value in task.items() if key not in ("name", "prompt") and value]
    head = f"{number}. {task.get('name', '')}" + (f" ({', '.join(others)})" if others else "")
    hidden = unseen(head, "") + unseen(task["prompt"])
    return PreviewPart(visible(head, keep=""), visible(task["prompt"]), unseen=hidden)


def painted(shown: Preview) -> RenderableType | None:
    """What stands below the name of the tool. None if there is nothing more to see."""
    rows = [row for part in shown.parts for row in _painted(part)]
    if shown.warning:
        rows.append(Text(f"! {shown.warning}", "bold red"))
    return Group(*rows) if rows else None


def _painted(part: PreviewPart) -> Iterator[RenderableType]:
    if part.label:
        yield Text(f"{part.label}:", "dim")
    if part.rows:
        yield from diffs.painted(part.rows)
        return
    if part.language == _MARKDOWN and not part.label:
        yield formatted(part.text)
        return
    text = part.text.rstrip("\n")
    body = code(text, part.language).highlight(text) if part.language else Text(text)
    body.rstrip()
    body.expand_tabs(4)
    yield diffs.Folded(diffs.marked(body))
