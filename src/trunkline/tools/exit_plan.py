"""`ExitPlanMode`: shows people the plan of a session that only plans, for them to approve. Approving it is what leaves
the mode `plan`; the session sees to that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.core.events import Asking, Category
from trunkline.tools.tool import Report, ToolOutput

#: Of a plan: more than anybody reads before saying yes.
MOST_PLAN_CHARS = 50_000

APPROVED = (
    "The user has approved the plan. The session is no longer in plan mode: carry the plan out now, as it was approved."
)
NOT_PLANNING = "The user agrees with the plan. The session was not in plan mode: go on with the work."


class Planner(Protocol):
    """Knows whether a session only plans."""

    @property
    def is_on(self) -> bool:
        """Whether the session is in the mode `plan`."""

    @property
    def is_known(self) -> bool:
        """Whether the model has been told that it is, and not yet that it no longer is."""

    def approved(self) -> None:
        """The model is about to be told that its plan was approved."""


class ExitPlanMode:
    """The end of planning as a tool. Somebody is asked about it in every mode."""

    name = EXIT_PLAN
    category: Category = "info"
    asking: Asking = "ask"
    limit = 10_000
    concurrent = True
    description = (
        "Show your plan to the user, who approves it or says what is wrong with it. Only in plan mode, and once you "
        "know what you will do: read what you need first. If it is approved, plan mode is over and you carry it out. "
        "Not for questions that need no change: answer those in words."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "plan": {
                "type": "string",
                "description": "The plan, in Markdown: what you will change, in which files, in which order, and how "
                "you will check it.",
            }
        },
        "required": ["plan"],
    }

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    @property
    def offered(self) -> bool:
        """Whether the model is told of it."""
        return self._planner.is_on

    def refusal(self, args: Mapping[str, Any]) -> str:
        """Why nobody needs to be asked about a call: it cannot work. Nothing if it can."""
        plan = args["plan"]
        if not plan.strip():
            return "`plan` is empty: write down what you will do."
        if len(plan) > MOST_PLAN_CHARS:
            return f"`plan` has {len(plan)} characters; at most {MOST_PLAN_CHARS} can be shown. Shorten it."
        return ""

    def describe(self, args: Mapping[str, Any]) -> str:
        return "Exit plan mode"

    def outside(self, args: Mapping[str, Any]) -> bool:
        return False

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        if not self._planner.is_known:
            return ToolOutput(NOT_PLANNING)
        self._planner.approved()
        return ToolOutput(APPROVED)
