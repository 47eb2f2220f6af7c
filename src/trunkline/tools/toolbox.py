"""The tools that an agent has: found by name, called safely.

A call is read once, before anybody judges it: its arguments are checked against the tool's schema, and what is then
judged, shown to people and run is one and the same object. Whatever a model asks for comes to an output: unknown tools,
bad arguments and tools that raise are errors for the model to read. Only being cancelled passes through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trunkline.base.redact import Masked, Redactor
from trunkline.tools.arguments import BadArguments, checked, renamed
from trunkline.tools.client_side import ClientSide
from trunkline.tools.edit import Edit
from trunkline.tools.files import FileMemory
from trunkline.tools.glob import Glob
from trunkline.tools.grep import Grep
from trunkline.tools.read import Read
from trunkline.tools.tool import Interrupted, Report, Tool, ToolOutput
from trunkline.tools.truncation import one_line, truncate
from trunkline.tools.workspace import Workspace
from trunkline.tools.write import Write

NOT_AN_OBJECT = "The arguments were not a JSON object. Call the tool again with one."

#: Of what a tool says while it works: one line for people.
PROGRESS_CHARS = 300

_log = logging.getLogger(__name__)


def unknown_tool(name: str) -> str:
    """What is said to a model that calls a tool that there is not."""
    return f"Unknown tool: {name}"


def standard_tools(
    workspace: Workspace, memory: FileMemory, redactor: Redactor | None = None, client: ClientSide | None = None
) -> list[Tool]:
    """The tools for files: Read, Write, Edit, Glob, Grep. `redactor` is the toolbox's own."""
    return [
        Read(workspace, memory, redactor, client),
        Write(workspace, memory, client),
        Edit(workspace, memory, client),
        Glob(workspace),
        Grep(workspace, redactor=redactor),
    ]


class Toolbox:
    """Some tools, each under its own name.

    A tool may have `aliases`: other names that models use for its parameters, each with the right one; and a method
    `place`, which tells of a call's arguments the one file or directory that they lead to on the disk.
    """

    def __init__(self, tools: Iterable[Tool] = (), redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor()
        """Cleans what tools give, before anything is cut: half of a secret would not be known for one."""
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order in which the tools were added."""
        return tuple(self._tools)

    def add(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            ValueError: the name is taken.
        """
        if tool.name in self._tools:
            raise ValueError(f"there is a tool `{tool.name}` already")
        self._tools[tool.name] = tool

    def remove(self, name: str) -> None:
        """Take a tool away, if it is there. A call that is running goes on."""
        self._tools.pop(name, None)

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def specs(self) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
        """What a model is told of each: name, description, schema of the arguments."""
        return tuple((tool.name, tool.description, tool.parameters) for tool in self._tools.values())

    def read(self, name: str, args: Mapping[str, Any] | None) -> PreparedCall:
        """Understand a call, once: what is judged, shown and run is what this gives.

        Raises:
            BadArguments: there is no such tool, or it cannot be called with that; the text is for the model.
        """
        tool = self.find(name)
        if tool is None:
            raise BadArguments(unknown_tool(name))
        if args is None:
            raise BadArguments(NOT_AN_OBJECT)
        return PreparedCall(tool, checked(_named(tool, args), tool.parameters), self._redactor)

    async def run(self, name: str, args: Mapping[str, Any] | None, report: Report) -> ToolOutput:
        """Call a tool about which nobody has to be asked. Always gives an output; see `PreparedCall.run`."""
        try:
            return await self.read(name, args).run(report)
        except BadArguments as error:
            return ToolOutput(str(error), status="error")


class PreparedCall:
    """A call as it was understood: the tool that was found, and the very arguments that it will get."""

    def __init__(self, tool: Tool, args: Mapping[str, Any], redactor: Redactor) -> None:
        self.tool = tool
        self.args = args
        self._redactor = redactor

    @property
    def description(self) -> str:
        """One line for people about what the call would do."""
        try:
            # Cleaned before: a description is short, and cuts what is long.
            return self.tool.describe(self._redactor.data(self.args))
        except Exception:  # a description must not keep anybody from deciding about the call
            _log.exception("Tool `%s` cannot describe a call", self.tool.name)
            return self.tool.name

    @property
    def outside(self) -> bool:
        """Whether the call would reach outside the workspace, as the disk is now."""
        try:
            return self.tool.outside(self.args)
        except Exception:  # where nobody can tell, somebody must decide
            _log.exception("Tool `%s` cannot tell where a call leads", self.tool.name)
            return True

    @property
    def place(self) -> str:
        """What the call would read or write, as the disk is now, if the tool can tell."""
        place: Callable[[Mapping[str, Any]], str] | None = getattr(self.tool, "place", None)
        return place(self.args) if place is not None else ""

    async def run(self, report: Report) -> ToolOutput:
        """Do it. Always gives an output, without secrets, and nothing longer than the tool's limit and a mark.

        Raises:
            Interrupted: it was cancelled; with such an output.
        """
        name = self.tool.name
        try:
            output = await self.tool.run(
                self.args, lambda line: report(one_line(self._redactor.text(line), PROGRESS_CHARS))
            )
        except Interrupted as stop:
            raise Interrupted(self._clean(stop.output)) from None
        except Exception as error:  # a tool's defect is the call's failure, and not the agent's
            _log.exception("Tool `%s` raised", name)
            output = ToolOutput(f"{name} failed with {type(error).__name__}: {error}", status="error")
        return self._clean(output)

    def _clean(self, output: ToolOutput) -> ToolOutput:
        return _limited(self._redactor.data(output), self.tool.limit)


def _named(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
    aliases: Mapping[str, str] | None = getattr(tool, "aliases", None)
    return renamed(args, aliases) if aliases else args


def _limited(output: ToolOutput, limit: int) -> ToolOutput:
    """A clean output, within the limit."""
    text = truncate(Masked(output.text), limit)
    shown = output.shown
    # Half of a picture is none.
    if shown is not None and output.output_type != "image":
        shown = truncate(Masked(shown), limit)
    if text is output.text and shown is output.shown:
        return output
    return output.replace(text=text, shown=shown)
