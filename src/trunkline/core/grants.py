"""Standing answers: what a person has allowed for the rest of a session, and what that covers.

`always` on a wire is for the category of the call, as hosts know it. A person at a terminal who allows a command means
that command: the grant is for its first words and options (`git status --short`) with any files of the workspace, or,
where these do not tell what is run, for that very text. Whoever allows another thing that is run, or a tool of an MCP
server, means that tool. A grant that was given to a call outside the workspace covers such calls, too; one that was
given inside does not reach outside. What was granted in one directory is not granted in another in which the session
is gone on with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.events import Category, Granted, GrantRevoked, ToolRequested

#: Other arguments of a command that change nothing about what is run.
_HARMLESS = frozenset(("timeout", "description"))
#: As much of a command as tells it from others in a list.
_SHOWN_CHARS = 200


class Grant(Value):
    """What needs no approval: a category; in it, perhaps, one tool, or one command of it with any files."""

    category: Category
    outside: bool = False
    """Whether calls that reach outside the workspace are covered, too."""
    tool: str = ""
    command: str = ""
    exact: bool = False
    """Whether `command` is all of it, and not its words and options, which files may follow."""
    workspace: str = ""
    """Where it was given, and is good. Nothing: that was not noted yet."""

    def covers(
        self, name: str, category: Category, *, outside: bool, args: Mapping[str, Any] | None, workspace: str = "."
    ) -> bool:
        """Whether a call needs no approval because of it. A command is judged by where its files lead on the disk."""
        if category != self.category or (outside and not self.outside) or self.tool not in ("", name):
            return False
        if not self.command:
            return True
        command = _command(args or {})
        if command is None or self.exact:
            return command == self.command
        from trunkline.core.command_words import covered

        return covered(self.command, command, workspace)

    @classmethod
    def of(cls, event: Granted | GrantRevoked) -> Grant:
        """The one that an event tells of."""
        return cls(**{field: getattr(event, field) for field in cls.__fields__})

    @property
    def members(self) -> dict[str, Any]:
        """For the events that tell of it."""
        return {field: getattr(self, field) for field in self.__fields__}

    def __str__(self) -> str:
        """What it covers, in words."""
        if self.command:
            from trunkline.base.visible import visible

            cut = self.command[:_SHOWN_CHARS] + ("..." if len(self.command) > _SHOWN_CHARS else "")
            shown = f"`{visible(cut, keep='')}`"
            what = f"exactly {shown}" if self.exact else f"{shown} with other words or files of this directory"
        else:
            what = f"the tool `{self.tool}`" if self.tool else f"every `{self.category}` tool"
        return f"{what}, outside the workspace too" if self.outside else what


def grant_for(request: ToolRequested, *, narrow: bool, workspace: str = "") -> Grant:
    """What "always" to this call means. `narrow`: for a command, or another thing that is run, no more than that."""
    if not narrow or request.category not in ("exec", "mcp"):
        return Grant(request.category, request.outside, workspace=workspace)
    # What a server makes of a text that it calls a command, nobody here knows.
    command = _command(request.args) if request.category == "exec" else None
    if command is None:
        return Grant(request.category, request.outside, request.name, workspace=workspace)
    from trunkline.core.command_words import first_words

    first = first_words(command)
    return Grant(request.category, request.outside, request.name, first or command, not first, workspace)


def _command(args: Mapping[str, Any]) -> str | None:
    """The command of a call; all of its arguments, if others could change what is run. None if there is none."""
    given = {key: value for key, value in args.items() if key not in _HARMLESS}
    command = given.get("command", given.get("cmd"))
    if command is None:
        return None
    if len(given) == 1 and isinstance(command, str):
        return command
    return jsontext.dumps(dict(sorted(given.items()))).decode()
