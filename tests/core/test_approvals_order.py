"""The order in which a call is judged: what counts more comes first, whatever the rest says."""

from __future__ import annotations

import pytest

from trunkline.base.vocabulary import EXIT_PLAN, MODES, Mode
from trunkline.core.actions import Decide, Emit
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import NOBODY_TO_APPROVE, NOBODY_TO_ASK, ONLY_PLANNING, Policy, Ruling
from trunkline.core.events import Category, Granted, ModeChanged, ToolJudged, ToolRequested, UserMessage
from trunkline.core.grants import Grant
from trunkline.core.rules import Rules
from trunkline.core.turns import Turns


def request(name: str = "Bash", category: Category = "exec", **more: object) -> ToolRequested:
    return ToolRequested("c1", name, category, {}, **more)  # type: ignore[arg-type]


def test_each_check_beats_those_behind_it() -> None:
    everything = Policy("yolo", allow=("Bash",), rules=Rules(("Bash",), ("Bash",), ("Bash",)))
    assert everything.judge(request(asking="allow")) == Ruling("deny", "The permission rule `Bash` denies it")
    asked = Policy("yolo", allow=("Bash",), rules=Rules(("Bash",), ("Bash",)))
    assert asked.judge(request(asking="deny", why="no")) == Ruling("deny", "no")
    assert asked.judge(request(asking="allow")).verdict == "ask"
    allowed = Policy(rules=Rules(("Bash", "Read")))
    assert allowed.judge(request(asking="ask")).verdict == "ask"
    assert allowed.judge(request(asking="confirm")).verdict == "ask"
    assert allowed.judge(request("Read", "info", outside=True)).verdict == "ask"
    assert allowed.judge(request()).verdict == "allow"


def test_what_is_to_be_confirmed_is_not_in_yolo_and_what_is_to_be_asked_is() -> None:
    policy = Policy("yolo")
    assert policy.judge(request(asking="confirm")).verdict == "allow"
    assert policy.judge(request(EXIT_PLAN, "info", asking="ask")).verdict == "ask"


def test_a_grant_does_not_beat_what_is_to_be_confirmed() -> None:
    policy = Policy()
    policy.grants[Grant("exec")] = None
    assert policy.judge(request()).verdict == "allow"
    assert policy.judge(request(asking="confirm")).verdict == "ask"


def test_where_nobody_can_be_asked_the_answer_is_no() -> None:
    assert Policy(interactive=False).judge(request(asking="ask")) == Ruling("deny", NOBODY_TO_ASK)


@pytest.mark.parametrize(("name", "category"), [("Write", "edit"), ("Bash", "exec"), ("Spawn", "exec"), ("x", "mcp")])
def test_while_planning_nothing_is_changed_and_nobody_is_asked(name: str, category: Category) -> None:
    policy = Policy("plan", allow=(name,), rules=Rules((name,)))
    policy.grants[Grant(category)] = None
    assert policy.judge(request(name, category, asking="allow")) == Ruling("deny", ONLY_PLANNING)


def test_while_planning_no_command_in_the_background_is_ended() -> None:
    policy = Policy("plan", allow=("BashOutput", "KillBash"))
    assert policy.judge(request("BashOutput", "info", asking="allow")).verdict == "allow"
    assert policy.judge(request("KillBash", "info", asking="allow")).verdict == "deny"
    assert Policy().judge(request("KillBash", "info", asking="allow")).verdict == "allow"


def test_while_planning_files_are_read_and_pages_are_asked_about() -> None:
    policy = Policy("plan")
    assert policy.judge(request("Read", "info")).verdict == "allow"
    assert policy.judge(request("WebFetch")).verdict == "ask"


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_that_is_approved_leads_back_to_the_mode_before_it(mode: Mode) -> None:
    turns = Turns(Policy(mode))
    turns.set_mode("plan")
    turns.submit(UserMessage("plan it"))
    turns.agent_says(1, request(EXIT_PLAN, "info", asking="ask"))
    actions = turns.answer("c1", Approve())
    before: Mode = "default" if mode == "plan" else mode
    assert turns.policy.mode == before
    assert Emit(1, ModeChanged(before)) in actions


def test_a_plan_is_approved_once_and_grants_nothing() -> None:
    turns = Turns(Policy("plan"))
    turns.submit(UserMessage("plan it"))
    turns.agent_says(1, request(EXIT_PLAN, "info", asking="ask"))
    actions = turns.answer("c1", Approve("always"))
    assert turns.policy.mode == "default"
    assert not turns.policy.grants
    assert not any(isinstance(action, Emit) and isinstance(action.event, Granted) for action in actions)


def test_with_a_plan_the_mode_before_releases_what_waits() -> None:
    turns = Turns(Policy("yolo"))
    turns.set_mode("plan")
    turns.submit(UserMessage("plan it"))
    turns.agent_says(1, request("WebFetch").replace(call_id="c0"))
    turns.agent_says(1, request(EXIT_PLAN, "info", asking="ask"))
    assert [each.call_id for each in turns.pending] == ["c0", "c1"]
    assert Decide(1, "c0", Approve()) in turns.answer("c1", Approve())
    assert turns.pending == ()


def test_what_waits_when_planning_begins_is_not_done() -> None:
    turns = Turns(Policy())
    turns.submit(UserMessage("do it"))
    turns.agent_says(1, request())
    turns.agent_says(1, request("WebFetch").replace(call_id="c2"))
    assert Decide(1, "c1", Deny(ONLY_PLANNING)) in turns.set_mode("plan")
    assert [each.call_id for each in turns.pending] == ["c2"]


def test_where_nobody_can_approve_a_plan_the_model_is_told_what_to_do_with_it() -> None:
    policy = Policy("plan", interactive=False)
    assert policy.judge(request(EXIT_PLAN, "info", asking="ask")) == Ruling("deny", NOBODY_TO_APPROVE)


def test_the_log_says_why_a_call_was_denied() -> None:
    turns = Turns(Policy("plan"))
    turns.submit(UserMessage("do it"))
    judged = turns.agent_says(1, request())[0]
    assert isinstance(judged, Emit)
    assert isinstance(judged.event, ToolJudged)
    assert (judged.event.verdict, judged.event.why) == ("deny", ONLY_PLANNING)
