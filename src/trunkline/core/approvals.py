"""Who may use which tool without being asked.

The order of the checks is fixed: start-up approval of everything, the tool's name in the allow-list, the session's
mode, the categories granted with "always"; then a person is asked, or, where nobody can be, the answer is no. A call
that reaches outside the workspace is allowed by approval of everything and by the mode `yolo`, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from trunkline.core.agent import Decision, Deny
from trunkline.core.events import Category, Mode

if TYPE_CHECKING:
    import asyncio

Verdict = Literal["allow", "ask", "deny"]

#: Reading the workspace needs no approval unless the user says otherwise.
DEFAULT_ALLOW = ("Read", "Grep", "Glob")

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
        auto_approve: bool = False,
        allow: Iterable[str] = DEFAULT_ALLOW,
        interactive: bool = True,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"`{mode}` is no approval mode; there are {', '.join(MODES)}")
        if isinstance(allow, str):
            raise TypeError("`allow` is a collection of tool names, not one text")
        self.mode: Mode = mode
        self.grants: set[Category] = set()
        self._auto_approve = auto_approve
        self._allow = frozenset(allow)
        self._interactive = interactive

    def verdict(self, name: str, category: Category, *, outside: bool = False) -> Verdict:
        """What becomes of a call that nobody has decided yet."""
        if self._auto_approve or self.mode == "yolo":
            return "allow"
        if not outside and (name in self._allow or category in MODES[self.mode] or category in self.grants):
            return "allow"
        return "ask" if self._interactive else "deny"


class Decisions:
    """For those who write agents: the calls that wait for an answer.

    Ask before the `ToolRequested` is yielded, so that the answer cannot come too early:

        answer = decisions.ask(call_id)
        yield ToolRequested(call_id, ...)
        decision = await answer
    """

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Decision]] = {}

    def ask(self, call_id: str) -> asyncio.Future[Decision]:
        """A future for the decision on a call.

        Raises:
            ValueError: a call of that id waits already; the answers could not be told apart.
        """
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
