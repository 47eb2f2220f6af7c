"""`ToolSearch`: tools of which a model knows only the names, brought when it asks for them.

The schemas of many MCP tools would fill the window before anything is said. Their names stand in this tool's
description, in words that stay the same as long as the tools do: providers charge a tenth for what they have seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.core.events import Asking, Category
from trunkline.tools.tool import Report, Tool, ToolOutput

#: With more tools of MCP servers than these, only their names go out.
MOST_OFFERED = 40
#: Tools that one search brings. More are more than anybody reads, and name the wrong words.
MOST_FOUND = 10
#: Tools that can be asked for by name at one time.
MOST_SELECTED = 50
#: Of the list of names in the description. What does not fit can be found all the same.
MOST_LISTED_CHARS = 20_000
#: How the names of tools are asked for exactly.
SELECT = "select:"

#: A word in a tool's name says more of it than one in its description.
_IN_NAME, _IN_DESCRIPTION = 3, 1

#: Told the names of tools that the model wants to have whole.
Bring = Callable[[Sequence[str]], None]
_WORD = re.compile(r"[^\W_]+")


class ToolSearch:
    """Finds tools that are kept out of the requests to the model. `bring` is told the names of those that it wants."""

    name = "ToolSearch"
    category: Category = "info"
    asking: Asking = "allow"
    limit = 50_000
    concurrent = True
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Words to look for in names and descriptions, or `select:NAME,NAME` for exact names.",
            }
        },
        "required": ["query"],
    }

    def __init__(self, deferred: Sequence[Tool], bring: Bring) -> None:
        self._tools = {tool.name: tool for tool in deferred}
        self._bring = bring
        self.description = (
            "Bring tools whose parameters you do not know yet. Of the tools below you see only the names. Search by "
            "words, or ask for exact names with `select:NAME,NAME`; you get their descriptions and parameters, and can "
            f"call them from then on. The tools are: {_listed(tuple(self._tools))}"
        )

    def describe(self, args: Mapping[str, Any]) -> str:
        return f"ToolSearch: {args.get('query', '')}"

    def outside(self, args: Mapping[str, Any]) -> bool:
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        query = str(args["query"]).strip()
        if query.lower().startswith(SELECT):
            return self._selected([name.strip() for name in query[len(SELECT) :].split(",") if name.strip()])
        found = self._found(query)
        if not found:
            return ToolOutput(f'No deferred tools matching "{query}" found.', "error")
        return self._told(found)

    def _selected(self, names: Sequence[str]) -> ToolOutput:
        if not names or len(names) > MOST_SELECTED:
            return ToolOutput(f"Name between 1 and {MOST_SELECTED} tools behind `{SELECT}`.", "error")
        found = [self._tools[name] for name in dict.fromkeys(names) if name in self._tools]
        missing = ", ".join(f"`{name}`" for name in names if name not in self._tools)
        if not found:
            return ToolOutput(f"There are no deferred tools named {missing}.", "error")
        told = self._told(found)
        return told.replace(text=f"{told.text}\nThere are no deferred tools named {missing}.") if missing else told

    def _found(self, query: str) -> list[Tool]:
        words = {word.lower() for word in _WORD.findall(query)}
        scores = {name: _score(tool, words) for name, tool in self._tools.items()}
        best = sorted((name for name, score in scores.items() if score), key=lambda name: -scores[name])
        return [self._tools[name] for name in best[:MOST_FOUND]]

    def _told(self, tools: Sequence[Tool]) -> ToolOutput:
        self._bring([tool.name for tool in tools])
        described = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
        ]
        return ToolOutput(jsontext.dumps(described).decode())


def _score(tool: Tool, words: set[str]) -> int:
    name, description = tool.name.lower(), tool.description.lower()
    return sum(_IN_NAME * (word in name) + _IN_DESCRIPTION * (word in description) for word in words)


def _listed(names: Sequence[str]) -> str:
    length = 0
    for number, name in enumerate(names):
        length += len(name) + 2
        if length > MOST_LISTED_CHARS:
            return f"{', '.join(names[:number])}, and {len(names) - number} more that a search finds"
    return ", ".join(names)
