"""Standing answers: what a person has allowed for the rest of a session. Each covers what a permission rule covers.

`always` on a wire is for the category of the call, as hosts know it. A person at a terminal who allows a command means
that command: the rule is for its first words and options with any files of the workspace (`Bash(git status -s:./**)`),
or, where these do not tell what is run, for that very text. Whoever allows a page means its host, and whoever allows
another thing that is run, or a tool of an MCP server, means that tool. A grant that was given to a call outside the
workspace covers such calls, too; one that was given inside does not reach outside. What was granted in one directory is
not granted in another in which the session is gone on with.
"""

from __future__ import annotations

import re
from typing import Any

from trunkline.base.values import Value
from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.core.events import Category, Granted, GrantRevoked, ToolRequested
from trunkline.core.rules import whole_command

#: As much of a rule as tells it from others in a list.
_SHOWN_CHARS = 200
#: Tools that a rule can name. Other agents' may have any name, such as one that would be a rule for more.
_TOOL = re.compile(r"[A-Za-z_][\w.-]*")
#: The rules that say of our own tools what a category does.
_OF_CATEGORY: dict[Category, tuple[str, ...]] = {
    "info": ("Read",),
    "edit": ("Edit",),
    "exec": ("Bash", "Spawn", "WebFetch", "WebSearch"),
    "mcp": ("mcp__*",),
}


class Grant(Value):
    """What needs no approval: a category; in it, perhaps, one tool, or a part of what it does."""

    category: Category
    outside: bool = False
    """Whether calls that reach outside the workspace are covered, too."""
    tool: str = ""
    command: str = ""
    """What the tool does: first words of a command, a whole one, or the host of a page."""
    exact: bool = False
    """Whether a command is all of it, and not its words and options, which files may follow."""
    workspace: str = ""
    """Where it was given, and is good. Nothing: that was not noted yet."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The allow rules that say the same."""
        if not self.tool:
            return _OF_CATEGORY[self.category]
        if not _TOOL.fullmatch(self.tool):
            # A rule would say something else.
            return ()
        if not self.command:
            return (self.tool,)
        if self.tool == "WebFetch":
            return (f"{self.tool}({self.command})",)
        from trunkline.core.command_words import first_words
        from trunkline.core.rules_commands import INSIDE, exactly

        if self.exact:
            return (f"{self.tool}({exactly(self.command)})",)
        # Words that say too little were granted by an earlier version.
        return (f"{self.tool}({self.command}{INSIDE})",) if first_words(self.command) == self.command else ()

    def is_named_by(self, request: ToolRequested) -> bool:
        """Whether it covers a call for which no rule has to be read: by its category, or by a name that no rule has."""
        if not self.tool or self.category != request.category:
            return self.category == request.category
        name = request.rule_name or request.name
        return not _TOOL.fullmatch(name) and (self.tool, self.command) == (name, whole_command(request) or "")

    @classmethod
    def of(cls, event: Granted | GrantRevoked) -> Grant:
        """The one that an event tells of."""
        return cls(**{field: getattr(event, field) for field in cls.__fields__})

    @property
    def members(self) -> dict[str, Any]:
        """For the events that tell of it."""
        return {field: getattr(self, field) for field in self.__fields__}

    def __str__(self) -> str:
        """What it covers, in words: the rule."""
        from trunkline.base.visible import visible

        named = self.rules or ((f"{self.tool} {self.command}".strip(),) if not _TOOL.fullmatch(self.tool) else ())
        cut = (each[:_SHOWN_CHARS] + ("..." if len(each) > _SHOWN_CHARS else "") for each in named)
        shown = ", ".join(f"`{visible(each, keep='')}`" for each in cut) or "nothing"
        what = shown if self.tool else f"every `{self.category}` tool ({shown})"
        return f"{what}, outside the workspace too" if self.outside else what


def grant_for(request: ToolRequested, *, narrow: bool, workspace: str = "") -> Grant:
    """What "always" to this call means. `narrow`: for a command, or another thing that is run, no more than that."""
    if not narrow or request.category not in ("exec", "mcp"):
        return Grant(request.category, request.outside, workspace=workspace)
    tool, command, exact = request.rule_name or request.name, "", False
    if request.name == "WebFetch":
        command = _host(request)
    elif (text := whole_command(request)) is not None:
        from trunkline.core.command_words import first_words

        first = first_words(text) if request.name == "Bash" else ""
        command, exact = first or text, not first
    return Grant(request.category, request.outside, tool, command, exact, workspace)


def may_last(request: ToolRequested) -> bool:
    """Whether there is an "always" to this call: not to a plan, nor to what its agent asks about each time."""
    return request.name != EXIT_PLAN and request.asking not in ("confirm", "ask")


def _host(request: ToolRequested) -> str:
    from trunkline.base.host_names import host_in

    try:
        host = host_in(str(request.args.get("url", "")))
    except ValueError:
        host = ""
    return f"domain:{host}" if host else ""
