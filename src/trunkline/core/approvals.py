"""Who may use which tool without being asked.

The order of the checks is fixed: the mode `yolo`, the tool's name in the allow-list, the session's mode, what was
granted with "always"; then a person is asked, or, where nobody can be, the answer is no. A call that reaches outside
the workspace is allowed by the mode `yolo`, by a grant that was given to such a call, by the allow-list if that is
configured to reach outside, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from trunkline.base.vocabulary import DEFAULT_ALLOW, Mode
from trunkline.core.agent import Decision, Deny
from trunkline.core.events import Category
from trunkline.core.grants import Grant

if TYPE_CHECKING:
    import asyncio

Verdict = Literal["allow", "ask", "deny"]

#: The tools that the coding agent always has.
BUILT_IN = ("Read", "Write", "Edit", "Glob", "Grep", "Bash", "Spawn")
#: What the tools of MCP servers begin with whose own names are taken.
MCP_PREFIX = "mcp__"

MODES: dict[Mode, frozenset[Category]] = {
    "default": frozenset(),
    "auto_edit": frozenset({"info", "edit"}),
    "yolo": frozenset({"info", "edit", "exec", "mcp"}),
}


class Policy:
    """The approval rules of one session. Its turns change `mode` and `grants`, and release what these then allow."""

    def __init__(
        self,
        mode: Mode = "default",
        *,
        allow: Iterable[str] = DEFAULT_ALLOW,
        allow_outside: bool = False,
        interactive: bool = True,
        workspace: str = "",
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"`{mode}` is not an approval mode; the modes are {', '.join(MODES)}")
        if isinstance(allow, str):
            raise TypeError("`allow` is a collection of tool names, not one text")
        self.mode: Mode = mode
        self.grants: dict[Grant, None] = {}
        """In the order in which they were given."""
        self.allow = tuple(dict.fromkeys(allow))
        self.workspace = workspace
        """Where granted commands run, in full; nothing: where this process does. Set by the session."""
        self._allow_outside = allow_outside
        self._interactive = interactive

    def verdict(
        self, name: str, category: Category, *, outside: bool = False, args: Mapping[str, Any] | None = None
    ) -> Verdict:
        """What becomes of a call that nobody has decided yet."""
        if self.mode == "yolo" or (name in self.allow and (self._allow_outside or not outside)):
            return "allow"
        if category in MODES[self.mode] and not outside:
            return "allow"
        where = self.workspace
        if any(
            grant.covers(name, category, outside=outside, args=args, workspace=where or ".") for grant in self.grants
        ):
            return "allow"
        return "ask" if self._interactive else "deny"


def unknown_tool(name: str, *, more_tools: bool) -> str:
    """Why a name is not that of a tool of the coding agent, for people; nothing if it may be.

    `more_tools`: there are, or will be, MCP servers, whose tools have any name and are not known yet. Then only what
    looks like a slip is told.
    """
    if name in BUILT_IN or name.startswith(MCP_PREFIX):
        return ""
    from trunkline.base.nearest import suggestion

    slip = suggestion(name.capitalize(), BUILT_IN)
    return f"There is no tool `{name}` to allow.{slip}" if slip or not more_tools else ""


class Decisions:
    """The calls that wait for an answer, for authors of agents.

    Ask before the `ToolRequested` is yielded, so that the answer cannot come too early:

        answer = decisions.ask(call_id)
        yield ToolRequested(call_id, ...)
        decision = await answer
    """

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Decision]] = {}
        self._expected: dict[str, asyncio.Future[Decision]] = {}

    def ask(self, call_id: str) -> asyncio.Future[Decision]:
        """A future for the decision on a call.

        Raises:
            ValueError: a call of that id waits already; the answers could not be told apart.
        """
        if call_id in self._expected:
            return self._expected.pop(call_id)
        return self._new(call_id)

    def expect(self, call_id: str) -> None:
        """A person was asked before, and will be waited for soon: the answer may come before that."""
        self._expected[call_id] = self._new(call_id)

    def _new(self, call_id: str) -> asyncio.Future[Decision]:
        import asyncio

        if call_id in self._waiting:
            raise ValueError(f"call id `{call_id}` is used for two calls at once")
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = future
        return future

    def resolve(self, call_id: str, decision: Decision) -> None:
        """What `Conversation.decide` calls. Unknown and repeated ids are ignored: the session has checked them."""
        future = self._waiting.pop(call_id, None)
        if future is not None and not future.done():
            future.set_result(decision)

    def deny_all(self, reason: str) -> None:
        """What `Conversation.cancel` calls: nobody waits any longer."""
        for call_id in tuple(self._waiting):
            self.resolve(call_id, Deny(reason))
