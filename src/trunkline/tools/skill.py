"""The Skill tool: gives the model the instructions of a skill of which it was told the name. Who has them, the
`SkillShelf` knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trunkline.core.events import Asking, Category
from trunkline.core.faults import Fault
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import one_line


class SkillShelf(Protocol):
    """Has skills."""

    async def call(self, name: str, args: str) -> str:
        """What a skill says, for the model.

        Raises:
            LookupError: there is none that a model can call by this name; the text says which there are.
            Fault: it cannot be used.
        """


class SkillTool:
    """Skills as a tool."""

    name = "Skill"
    category: Category = "info"
    asking: Asking = "allow"
    # More than a skill may have: what it says is not cut.
    limit = 200_000
    concurrent = True
    description = (
        "Get the instructions of a skill by its name, when your task is what its description says. Do then what they "
        "say. Files that they mention are in the skill's folder, which the result names; read them with Read when you "
        "need them."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The skill's name."},
            "args": {"type": "string", "description": "Arguments for it, if it takes any."},
        },
        "required": ["skill"],
    }
    aliases: Mapping[str, str] = {"name": "skill", "arguments": "args"}

    def __init__(self, shelf: SkillShelf) -> None:
        self._shelf = shelf

    def describe(self, args: Mapping[str, Any]) -> str:
        return one_line(f"Skill {args['skill']} {args.get('args', '')}".rstrip())

    def outside(self, args: Mapping[str, Any]) -> bool:
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        try:
            text = await self._shelf.call(args["skill"], args.get("args", ""))
        except LookupError as error:
            return ToolOutput(str(error.args[0]), status="error")
        except Fault as fault:
            return ToolOutput(str(fault), status="error")
        return ToolOutput(text)
