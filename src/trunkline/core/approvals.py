"""Who may use which tool without being asked.

The order of the checks is fixed, and `Policy.judge` is the one place that has it:

1. a deny rule, or the agent's own deny (a hook): the answer is no;
2. the mode `plan`: what would change something is not done, and nobody is asked; a call that reaches outside the
   workspace is allowed by the mode `yolo`, by a grant that was given to such a call, and by the allow-list if that is
   configured to reach outside, and by nothing else;
3. an ask rule, the agent's own ask, or its wish that this call be confirmed: somebody is asked;
4. an allow rule, the tool's name in the allow-list, or the agent's own word that nobody needs to be asked;
5. what was granted with "always";
6. the session's mode.

Then a person is asked, or, where nobody can be, the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from trunkline.base.values import Value
from trunkline.base.vocabulary import DEFAULT_ALLOW, EXIT_PLAN, Mode
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import Category, ToolRequested
from trunkline.core.grants import Grant
from trunkline.core.rules import NO_RULES, Kind, Rules, first_match, is_unclear, read_rule

if TYPE_CHECKING:
    import asyncio

Verdict = Literal["allow", "ask", "deny"]

#: The tools that the coding agent always has.
BUILT_IN = (
    "Read", "Write", "Edit", "Glob", "Grep", "Bash", "BashOutput", "KillBash",
    "Spawn", "WebFetch", "WebSearch", "Skill", "TodoWrite",
)  # fmt: skip
#: Those that it has in some modes, or with many tools.
_AT_TIMES = ("ToolSearch", EXIT_PLAN)
#: What the tools of MCP servers begin with whose own names are taken.
MCP_PREFIX = "mcp__"

MODES: dict[Mode, frozenset[Category]] = {
    "default": frozenset(),
    "auto_edit": frozenset({"info", "edit"}),
    "yolo": frozenset({"info", "edit", "exec", "mcp"}),
    "plan": frozenset(),
}
#: Categories whose calls change something. Nothing of the kind is done in the mode `plan`.
_CHANGING = frozenset(("edit", "exec", "mcp"))
#: Of these, the tools that only look.
_LOOKING = frozenset(("WebFetch", "WebSearch"))
#: Tools that need no approval, because what they end was approved, and change something all the same.
_ENDING = frozenset(("KillBash",))

NOBODY_TO_ASK = "Not allowed by the approval policy, and there is nobody to ask"
NOBODY_TO_APPROVE = (
    "There is nobody who could approve the plan, so the session stays in plan mode. Give the plan as your answer"
)
ONLY_PLANNING = (
    "Not done: the session is in plan mode, in which nothing is changed and nothing is run. Look at what you need with "
    "the tools that read, then show your plan with ExitPlanMode"
)


class Ruling(Value):
    """What becomes of a call, and, where the answer is no, why."""

    verdict: Verdict
    reason: str = ""

    @property
    def decision(self) -> Decision | None:
        """The answer; None: somebody is to give it."""
        return None if self.verdict == "ask" else Approve() if self.verdict == "allow" else Deny(self.reason)


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
        rules: Rules = NO_RULES,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"`{mode}` is not an approval mode; the modes are {', '.join(MODES)}")
        if isinstance(allow, str):
            raise TypeError("`allow` is a collection of tool names, not one text")
        self.mode: Mode = mode
        self.mode_before_plan: Mode = "default" if mode == "plan" else mode
        self.grants: dict[Grant, None] = {}
        """In the order in which they were given."""
        self.allow = tuple(dict.fromkeys(allow))
        """As it was given: names of tools, and rules."""
        self.workspace = workspace
        """Where granted commands run, in full; nothing: where this process does. Set by the session."""
        # A name in this list is that of one tool; a rule may say more.
        given = tuple(name for name in self.allow if "(" in name or name.startswith(MCP_PREFIX))
        self.rules = rules.replace(allow=(*rules.allow, *given)) if given else rules
        self._allow_outside = allow_outside
        self._interactive = interactive

    def enter(self, mode: Mode) -> None:
        """Change the mode; whoever leaves `plan` with a plan that was approved comes back to the one before it."""
        if mode == "plan" and self.mode != "plan":
            self.mode_before_plan = self.mode
        self.mode = mode

    def verdict(
        self, name: str, category: Category, *, outside: bool = False, args: Mapping[str, Any] | None = None
    ) -> Verdict:
        """What becomes of a call of which no more is known."""
        return self.judge(ToolRequested("", name, category, args or {}, outside=outside)).verdict

    def judge(self, request: ToolRequested) -> Ruling:
        """What becomes of a call that nobody has decided yet."""
        if rule := self._rule("deny", request):
            return Ruling("deny", f"The permission rule `{rule}` denies it")
        if request.asking == "deny":
            return Ruling("deny", request.why)
        if self.mode == "plan" and changes_something(request.name, request.category):
            return Ruling("deny", ONLY_PLANNING)
        if request.name == EXIT_PLAN and not self._interactive:
            return Ruling("deny", NOBODY_TO_APPROVE)
        if request.outside and not self._may_reach_outside(request):
            return self._ask(request)
        is_confirmed = request.asking == "confirm" and self.mode != "yolo"
        if is_confirmed or request.asking == "ask" or self._rule("ask", request) or self._is_unclear(request):
            return self._ask(request)
        is_allowed = request.asking == "allow" or self._is_allowed(request)
        if is_allowed or self._is_granted(request) or request.category in MODES[self.mode]:
            return Ruling("allow")
        return self._ask(request)

    def _ask(self, request: ToolRequested) -> Ruling:
        if self._interactive:
            return Ruling("ask")
        return Ruling("deny", f"{NOBODY_TO_ASK}: {request.why}" if request.why else NOBODY_TO_ASK)

    def _rule(self, kind: Kind, request: ToolRequested) -> str | None:
        rules = self.rules.of(kind)
        return first_match(kind, rules, request, self.workspace or ".", self._may_write) if rules else None

    def _is_unclear(self, request: ToolRequested) -> bool:
        return is_unclear(self.rules, request, self.workspace or ".")

    def _is_allowed(self, request: ToolRequested) -> bool:
        return request.name in self.allow or self._rule("allow", request) is not None

    def _may_write(self, path: str) -> bool:
        """Whether a command may write a file unasked: if the tool for that may."""
        from trunkline.core.rules_paths import leads_out

        outside = leads_out(path, self.workspace or ".")
        return self.verdict("Write", "edit", outside=outside, args={"file_path": path}) == "allow"

    def _may_reach_outside(self, request: ToolRequested) -> bool:
        if self.mode == "yolo" or (self._allow_outside and self._is_allowed(request)):
            return True
        return self._is_granted(request)

    def _is_granted(self, request: ToolRequested) -> bool:
        counting = [grant for grant in self.grants if grant.outside or not request.outside]
        if any(grant.is_named_by(request) for grant in counting):
            return True
        granted = [rule for grant in counting if grant.tool for rule in grant.rules]
        # Of a chain of commands, some may be granted, and others be allowed by rules.
        rules = (*granted, *self.rules.allow)
        return (
            bool(granted) and first_match("allow", rules, request, self.workspace or ".", self._may_write) is not None
        )


def changes_something(name: str, category: Category) -> bool:
    """Whether a tool does more than look. It is not used in the mode `plan`."""
    return (category in _CHANGING and name not in _LOOKING) or name in _ENDING


def unknown_tool(name: str, *, more_tools: bool, to_allow: str = " to allow") -> str:
    """Why a name is not that of a tool of the coding agent, for people; nothing if it may be. A rule has one, too.

    `more_tools`: there are, or will be, MCP servers, whose tools have any name and are not known yet. Then only what
    looks like a slip is told.
    """
    tool = read_rule(name)[0].tool
    if tool in BUILT_IN or tool in _AT_TIMES or tool.startswith(MCP_PREFIX) or "*" in tool:
        return ""
    from trunkline.base.nearest import suggestion

    slip = suggestion(tool.capitalize(), BUILT_IN)
    return f"There is no tool `{tool}`{to_allow}.{slip}" if slip or not more_tools else ""


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
