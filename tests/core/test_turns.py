"""What the machine of turns says of the answers to requests. All that can happen is in `test_turns_exhaustive.py`."""

from __future__ import annotations

from trunkline.core.actions import Decide, Emit
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import ToolAnswered, ToolRequested, UserMessage
from trunkline.core.turns import Turns

REQUEST = ToolRequested("t1", "Bash", "exec", {"command": "ls"})


def asking() -> Turns:
    """A turn in which a person is asked."""
    turns = Turns(Policy())
    turns.submit(UserMessage("Look."))
    turns.agent_says(1, REQUEST)
    assert turns.pending == (REQUEST,)
    return turns


def test_an_answer_is_recorded_with_who_gave_it_before_the_agent_hears_it() -> None:
    approved = asking().answer("t1", Approve(), "ana")
    assert approved[:2] == [Emit(1, ToolAnswered("t1", True, "ana")), Decide(1, "t1", Approve())]
    assert asking().answer("t1", Deny("no"), "bo")[0] == Emit(1, ToolAnswered("t1", False, "bo"))


def test_what_a_mode_allows_is_recorded_as_answered_by_nobody() -> None:
    """Else whoever goes on with the turn in another process would ask again, and run it again."""
    actions = asking().set_mode("yolo")
    recorded = Emit(1, ToolAnswered("t1", True))
    assert recorded in actions
    assert actions.index(recorded) < actions.index(Decide(1, "t1", Approve()))
