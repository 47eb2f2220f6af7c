"""To-dos as a model writes them: kept as a plan, bounded, and refused in words where they are none."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.core.events import Plan, PlanEntry
from trunkline.tools.todo_write import MOST_CHARS, MOST_TODOS, TodoWrite
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import Toolbox


async def written(todos: Any) -> tuple[list[Plan], ToolOutput]:
    """What people are shown of a call, and what the model is told."""
    plans: list[Plan] = []
    return plans, await Toolbox([TodoWrite(plans.append)]).run("TodoWrite", {"todos": todos}, print)


async def test_the_list_is_shown_and_the_model_is_told_shortly() -> None:
    plans, output = await written(
        [
            {"content": "Look", "status": "completed"},
            {"content": "Fix it", "status": "in_progress"},
            {"content": "Test", "status": "pending"},
        ]
    )
    entries = PlanEntry("Look", status="completed"), PlanEntry("Fix it", status="in_progress"), PlanEntry("Test")
    assert plans == [Plan(entries)]
    assert output == ToolOutput("The to-do list was kept: 1 of 3 done. Now: Fix it")


async def test_members_that_other_agents_models_send_do_no_harm() -> None:
    plans, output = await written(
        [
            {"content": "Fix it", "status": "in-progress", "activeForm": "Fixing it", "id": 7, "priority": "high"},
            {"content": "  Test\n it ", "activeForm": None, "priority": 3},
        ]
    )
    assert output.status == "success"
    assert plans[0].entries == (PlanEntry("Fix it", "high", "in_progress"), PlanEntry("Test it"))


async def test_a_list_can_be_emptied() -> None:
    plans, output = await written([])
    assert plans == [Plan()]
    assert output.text == "The to-do list is empty now."


@pytest.mark.parametrize(
    ("todos", "problem"),
    [
        ("Look", "`todos` must be an array"),
        (["Look"], "Entry 1 of `todos` must be an object"),
        ([{"content": "Look", "status": "done?"}], "`status` must be one of pending, in_progress, completed"),
        ([{"content": "Look", "status": "pending"}, {"content": " "}], "Entry 2 of `todos` has no `content`"),
        ([{"content": 5, "status": "pending"}], "Entry 1 of `todos` has no `content`"),
        ([{"content": "x"}] * (MOST_TODOS + 1), f"at most {MOST_TODOS}"),
    ],
)
async def test_what_is_no_list_is_refused_in_words_and_shown_to_nobody(todos: Any, problem: str) -> None:
    plans, output = await written(todos)
    assert plans == []
    assert output.status == "error"
    assert problem in output.text


async def test_a_long_entry_is_cut() -> None:
    plans, _ = await written([{"content": "x" * 10_000, "status": "pending"}] * MOST_TODOS)
    assert {len(entry.content) for entry in plans[0].entries} == {MOST_CHARS + 3}
