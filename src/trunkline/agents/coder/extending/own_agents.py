"""Sub-agents of one's own: Markdown files in `agents`, such as `.trunkline/agents/reviewer.md`.

Their front matter says what they are called (`name`), what they are for (`description`), which `tools` they have and
which `model` they use; the text behind it goes into their system prompt. A workspace's are words like any other. Their
tools can only be fewer than the agent's own, and which model they want counts where the workspace is trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase

from trunkline.agents.coder.extending.markdown import NAME, usable
from trunkline.agents.coder.extending.shelf import MarkdownShelf, ShelfFile
from trunkline.base.values import Value
from trunkline.core.approvals import MCP_PREFIX
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.toolbox import Toolbox

#: What `tools` or `model` say where they change nothing. Claude's short names are no ids that a provider knows.
_ALL_TOOLS = ("*", "all")
_SAME_MODEL = ("", "inherit", "default", "sonnet", "opus", "haiku")


class OwnAgent(Value):
    """One of them."""

    name: str
    description: str
    tools: tuple[str, ...] | None
    """The names of those that it has; None: all."""
    model: str
    """The model's id; empty: the one in use."""
    path: str

    def narrow(self, toolbox: Toolbox) -> None:
        """Leave it the tools that it names. It knows those whole, however many the others are.

        Raises:
            ToolInputError: it names some, and there is none of them.
        """
        if self.tools is None:
            return
        for name in toolbox.names:
            known = (name.lower(), getattr(toolbox.find(name), "rule_name", "").lower())
            if not any(_fits(each, tool.lower()) for each in known for tool in self.tools):
                toolbox.remove(name)
        if self.tools and not toolbox.names:
            named = ", ".join(f"`{name}`" for name in self.tools)
            raise ToolInputError(f"The agent `{self.name}` cannot be used: there is none of the tools {named}.")
        toolbox.bring(toolbox.names)

    def instructions(self) -> str:
        """What goes into its system prompt. Blocks for as long as the disk needs.

        Raises:
            ConfigError: the file cannot be used any more.
        """
        return usable(self.path).body.strip()


class OwnAgents:
    """Those of the user and of the workspace, as they are on the disk."""

    def __init__(self, workspace: str, environ: Mapping[str, str] = os.environ, *, trusted: bool = False) -> None:
        self._shelf = MarkdownShelf("agents", workspace, environ, trusted=trusted, needs_matter=True)
        self._seen: Mapping[str, ShelfFile] | None = None
        self.found: Mapping[str, OwnAgent] = {}
        """By name, as they were when somebody looked last."""
        self.notes: list[str] = []
        """What people should be told, once."""

    def look(self) -> Mapping[str, OwnAgent]:
        """Look again. The same object, if nothing has changed. Blocks for as long as the disk needs."""
        files = self._shelf.look()
        if files is self._seen:
            return self.found
        self._seen = files
        found: dict[str, OwnAgent] = {}
        for file in files.values():
            if not file.contents.problem:
                agent = _agent(file)
                found.setdefault(agent.name, agent)
        self.notes += self._shelf.news()
        self.found = found
        return found


def _fits(name: str, wanted: str) -> bool:
    """Whether a tool is named by a word: as it is, by a pattern, or, as `mcp__server`, by its server."""
    return fnmatchcase(name, wanted) or (wanted.startswith(MCP_PREFIX) and name.startswith(f"{wanted}__"))


def _agent(file: ShelfFile) -> OwnAgent:
    matter = file.contents.matter
    name, model = matter.text("name").strip(), matter.text("model").strip()
    # `Bash(git log:*)` narrows a tool, elsewhere. Here rules do that.
    tools = tuple(word.partition("(")[0].strip() for word in matter.words("tools"))
    # Nothing behind the key says nothing; an empty list says: none.
    has_all = matter.values.get("tools", "") == "" or any(tool.lower() in _ALL_TOOLS for tool in tools)
    return OwnAgent(
        name if NAME.fullmatch(name) else file.name,
        file.contents.description,
        None if has_all else tools,
        model if file.trusted and model.lower() not in _SAME_MODEL else "",
        file.path,
    )
