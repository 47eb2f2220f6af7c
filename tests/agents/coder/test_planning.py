"""What the model is told of the mode `plan`: when it begins and when it is over, once, also after a resume."""

from __future__ import annotations

from tests.agents.coder.test_history import Notebook
from trunkline.agents.coder.history import History
from trunkline.agents.coder.planning import Planning
from trunkline.agents.coder.words import PLAN_LEFT, PLANNING
from trunkline.base.vocabulary import Mode
from trunkline.models.messages import Text, ToolResultBlock, ToolUse
from trunkline.tools.exit_plan import APPROVED


class Planned:
    """A conversation whose mode is the test's."""

    def __init__(self, mode: Mode = "default", notebook: Notebook | None = None) -> None:
        self.mode = mode
        self.notebook = notebook or Notebook()
        self.history = History(self.notebook)
        self.planning = Planning(self.history, lambda: self.mode)
        self.history.on_replaced = self.planning.look

    def asked(self) -> list[str]:
        """What the model is told before it is asked."""
        news = self.planning.news()
        self.history.user((*news, Text("go")))
        return [text.text for text in news]


def test_it_is_told_once_when_planning_begins_and_when_it_is_over() -> None:
    plans = Planned()
    assert plans.asked() == []
    plans.mode = "plan"
    assert plans.asked() == [PLANNING]
    assert plans.asked() == []
    plans.mode = "yolo"
    assert plans.asked() == [PLAN_LEFT]
    assert plans.asked() == []


def test_another_process_knows_what_it_was_told() -> None:
    plans = Planned("plan")
    plans.asked()
    assert Planned("plan", plans.notebook).asked() == []
    assert Planned("default", plans.notebook).asked() == [PLAN_LEFT]


def test_a_plan_that_was_approved_says_so_itself() -> None:
    plans = Planned("plan")
    plans.asked()
    plans.history.assistant((ToolUse("t1", "ExitPlanMode", {"plan": "x"}),))
    plans.mode = "default"
    plans.planning.approved()
    plans.history.results([ToolResultBlock("t1", APPROVED)])
    assert plans.asked() == []
    assert Planned("default", plans.notebook).asked() == []


def test_what_was_taken_back_is_told_anew() -> None:
    plans = Planned()
    plans.history.user((Text("hello"),))
    plans.mode = "plan"
    plans.history.user((*plans.planning.news(), Text("plan it")), "turn-2")
    plans.history.rewind("turn-2")
    assert plans.asked() == [PLANNING]
    plans.mode = "default"
    plans.history.replace([])
    assert plans.asked() == []
