"""The tools that an agent has: found by name, called safely.

A call is read once, before anybody judges it: its arguments are checked against the tool's schema, and what is then
judged, shown to people and run is one and the same object. Whatever a model asks for comes to an output: unknown tools,
bad arguments and tools that raise are errors for the model to read. Only being cancelled passes through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
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
        self._redactor = Redactor() if redactor is None else redactor
        """Cleans what tools give, before anything is cut: half of a secret would not be known for one."""
        self._tools: dict[str, Tool] = {}
        self._deferred: frozenset[str] = frozenset()
        self._brought: set[str] = set()
        self.is_of_use: Callable[[Tool], bool] = lambda tool: True
        """Whether the model is told of a tool as things are. It can be called all the same."""
        self.on_brought: Callable[[Collection[str]], None] = lambda names: None
        """Told the names of all tools that were brought, when there are more of them."""
        for tool in tools:
            self.add(tool)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order in which the tools were added."""
        return tuple(self._tools)

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of those that the model is told of whole."""
        shown = (name for name, tool in self._tools.items() if getattr(tool, "offered", True) and self.is_of_use(tool))
        return tuple(name for name in shown if not self.hides(name))

    def defer(self, names: Iterable[str]) -> None:
        """Tell the model no more than the names of these tools, until they are brought. They can be called."""
        self._deferred = frozenset(names)

    def bring(self, names: Iterable[str]) -> None:
        """Tell the model of these tools whole from now on."""
        news = set(names) - self._brought
        if news:
            self._brought |= news
            self.on_brought(self._brought)

    def hides(self, name: str) -> bool:
        """Whether the model knows no more of a tool than its name."""
        return name in self._deferred and name not in self._brought

    def add(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            ValueError: the name is taken.
        """
        if tool.name in self._tools:
            raise ValueError(f"there is a tool `{tool.name}` already")
        self._tools[tool.name] = tool

    def replace(self, tool: Tool) -> None:
        """Put a tool in the place of the one with its name."""
        self._tools[tool.name] = tool

    def remove(self, name: str) -> None:
        """Take a tool away, if it is there. A call that is running goes on."""
        self._tools.pop(name, None)

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def specs(self) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
        """What a model is told of each that is offered: name, description, schema of the arguments."""
        offered = (self._tools[name] for name in self.offered)
        return tuple((tool.name, tool.description, tool.parameters) for tool in offered)

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
        if self.hides(name):
            args = _guessed(tool, args)
        args = checked(_named(tool, args), tool.parameters)
        refusal: Callable[[Mapping[str, Any]], str] | None = getattr(tool, "refusal", None)
        if refusal is not None and (why := refusal(args)):
            raise BadArguments(why)
        return PreparedCall(tool, args, self._redactor)

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


def _guessed(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments for a tool whose parameters the model has not seen. What it made up is not left out silently.

    Raises:
        BadArguments: they do not fit.
    """
    known, more = tool.parameters.get("properties"), tool.parameters.get("additionalProperties")
    try:
        unknown = [name for name in args if isinstance(known, Mapping) and known and name not in known]
        if unknown and not more:
            raise BadArguments(f"Unknown parameter: {unknown[0]}")
        return checked(args, tool.parameters)
    except BadArguments as error:
        advice = f"You have not seen the parameters of `{tool.name}`: call ToolSearch with `select:{tool.name}` first."
        raise BadArguments(f"{str(error).removesuffix('.')}. {advice}") from None


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
