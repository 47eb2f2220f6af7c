"""`ExitPlanMode`: offered and asked about while a session plans, and no trouble to anybody else."""

from __future__ import annotations

import pytest

from trunkline.tools.arguments import BadArguments
from trunkline.tools.exit_plan import APPROVED, MOST_PLAN_CHARS, NOT_PLANNING, ExitPlanMode
from trunkline.tools.toolbox import Toolbox


class Planner:
    """A session that plans, or not."""

    def __init__(self, *, is_on: bool, is_known: bool) -> None:
        self.is_on = is_on
        self.is_known = is_known

    def approved(self) -> None:
        self.is_known = False


def boxed(*, is_on: bool = True, is_known: bool = True) -> tuple[Toolbox, Planner]:
    planner = Planner(is_on=is_on, is_known=is_known)
    return Toolbox([ExitPlanMode(planner)]), planner


async def test_a_plan_that_was_approved_is_to_be_carried_out() -> None:
    box, planner = boxed()
    call = box.read("ExitPlanMode", {"plan": "1. Look."})
    assert (call.tool.category, call.description) == ("info", "Exit plan mode")
    assert (await call.run(print)).text == APPROVED
    assert planner.is_known is False


def test_the_model_is_told_of_it_while_it_plans_alone() -> None:
    assert boxed()[0].offered == ("ExitPlanMode",)
    assert boxed(is_on=False)[0].offered == ()


@pytest.mark.parametrize(("plan", "problem"), [(" \n", "is empty"), ("x" * (MOST_PLAN_CHARS + 1), "Shorten it")])
def test_a_plan_that_nobody_could_read_is_refused(plan: str, problem: str) -> None:
    with pytest.raises(BadArguments, match=problem):
        boxed()[0].read("ExitPlanMode", {"plan": plan})


async def test_outside_plan_mode_a_plan_is_a_question_too_and_leaves_nothing() -> None:
    box, _ = boxed(is_on=False, is_known=False)
    call = box.read("ExitPlanMode", {"plan": "x"})
    assert call.tool.asking == "ask"  # type: ignore[attr-defined]
    assert (await call.run(lambda line: None)).text == NOT_PLANNING


def test_a_model_that_was_not_told_yet_that_the_mode_is_over_may_still_show_its_plan() -> None:
    """The answer may have come already: then the session has left the mode when the call is read again."""
    box, _ = boxed(is_on=False)
    assert box.read("ExitPlanMode", {"plan": "x"}).args == {"plan": "x"}
