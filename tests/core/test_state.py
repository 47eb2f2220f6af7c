"""What a session has come to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.core.event_strategies import envelopes
from trunkline.base import jsontext
from trunkline.base.shapes import ShapeError
from trunkline.core.events import (
    Envelope,
    Event,
    Granted,
    GrantRevoked,
    HistoryInjected,
    Journaled,
    JournalReplaced,
    ModeChanged,
    SessionIdentified,
    TextDelta,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.grants import Grant
from trunkline.core.state import SessionState, Snapshot
from trunkline.core.usage import Usage


def folded(*events: Event, turn: int = 1, state: SessionState | None = None) -> SessionState:
    state = state or SessionState()
    for seq, event in enumerate(events, start=1):
        state.apply(Envelope("s", seq, turn, 0.0, event))
    return state


def members(state: SessionState) -> dict[str, Any]:
    return {**vars(state), "open_turns": {turn: open_turn.calls for turn, open_turn in state.open_turns.items()}}


def open_calls(state: SessionState) -> dict[int, list[str]]:
    return {turn: list(open_turn.calls) for turn, open_turn in state.open_turns.items()}


START = TurnStarted(UserMessage("hi"))


def test_a_new_session_has_come_to_nothing() -> None:
    state = SessionState()
    assert (state.turns, state.mode, state.total, state.open_turns) == (0, None, None, {})
    assert state.snapshot() == {"turns": 0, "grants": [], "given": [], "history": [], "journal": []}


def test_a_turn_is_open_from_its_start_to_its_end() -> None:
    state = folded(START, turn=3)
    assert (state.turns, open_calls(state)) == (3, {3: []})
    assert state.open_turns[3].message == UserMessage("hi")
    folded(TurnEnded("cancelled"), turn=3, state=state)
    assert (state.turns, state.open_turns) == (3, {})


def test_calls_are_open_until_they_end_and_no_longer_than_their_turn() -> None:
    asked = ToolRequested("a", "Bash", "exec", {})
    state = folded(START, asked, ToolStarted("a", "Bash"), ToolStarted("b", "Read"), ToolRequested("c", "X", "mcp", {}))
    assert open_calls(state) == {1: ["a", "b", "c"]}
    folded(ToolFinished("b", "Read", "success", ""), ToolCancelled("a", "denied"), ToolCancelled("z", ""), state=state)
    assert open_calls(state) == {1: ["c"]}
    folded(TurnEnded("error"), state=state)
    assert state.open_turns == {}
    folded(START, asked, START, state=state)
    assert open_calls(state) == {1: []}


def test_a_message_refused_in_the_middle_of_a_turn_leaves_that_turn_open() -> None:
    state = folded(START, ToolStarted("a", "Bash"), turn=1)
    folded(START, TurnEnded("error"), turn=2, state=state)
    assert open_calls(state) == {1: ["a"]}


def test_a_turn_waits_for_a_person_if_nothing_else_of_it_may_be_under_way() -> None:
    one, two = ToolRequested("a", "Bash", "exec", {}), ToolRequested("b", "Write", "edit", {})
    assert folded(START).open_turns[1].waiting == ()
    assert folded(START, one, two).open_turns[1].waiting == (one, two)
    for begun in (ToolAnswered("a", True), ToolAnswered("a", False), ToolStarted("a", "Bash")):
        assert folded(START, one, two, begun).open_turns[1].waiting == ()
    for over in (ToolFinished("a", "Bash", "success", ""), ToolCancelled("a", "denied")):
        assert folded(START, one, two, ToolAnswered("a", True), over).open_turns[1].waiting == (two,)
    assert folded(START, one, ToolCancelled("a", ""), one).open_turns[1].waiting == (one,)


def test_usage_adds_up_over_turns_and_what_is_unknown_stays_so() -> None:
    state = folded(TurnEnded("success"))
    assert (state.last, state.total) == (None, None)
    folded(TurnEnded("success", Usage(1, 2)), TurnEnded("success", Usage(10, None, 5)), state=state)
    assert state.last == Usage(10, None, 5)
    assert state.total == Usage(11, 2, 5, None)
    state = folded(TurnEnded("error"), state=state)
    assert (state.last, state.total) == (None, Usage(11, 2, 5, None))


def test_modes_grants_history_and_identity_are_kept() -> None:
    state = folded(
        ModeChanged("yolo"), ModeChanged("auto_edit"), Granted("exec"), Granted("edit"), Granted("exec"),
        HistoryInjected("one"), HistoryInjected("two"), SessionIdentified("early"), SessionIdentified("late"),
    )  # fmt: skip
    assert state.mode == "auto_edit"
    assert state.grants == [Grant("edit"), Grant("exec")]
    assert state.history == ["one", "two"]
    assert state.agent_session == "late"


def test_the_journal_grows_and_can_be_replaced() -> None:
    state = folded(Journaled(1), Journaled({"a": None}), Journaled(None))
    assert state.journal == [1, {"a": None}, None]
    folded(JournalReplaced(("summary",)), Journaled(2), state=state)
    assert state.journal == ["summary", 2]


def test_events_that_change_nothing_are_welcome() -> None:
    assert members(folded(TextDelta("x"))) == members(SessionState())


@given(envelopes("s"), envelopes("s"))
def test_a_checkpoint_anywhere_between_turns_changes_nothing(before: list[Envelope], after: list[Envelope]) -> None:
    straight = SessionState()
    ends = [Envelope("s", 1, envelope.turn, 0.0, TurnEnded("success")) for envelope in before]
    for envelope in [*before, *ends]:
        straight.apply(envelope)
    resumed = SessionState.from_snapshot(jsontext.loads(jsontext.dumps(straight.snapshot())))
    for envelope in after:
        straight.apply(envelope)
        resumed.apply(envelope)
    assert members(resumed) == members(straight)


def test_a_snapshot_is_not_changed_by_what_happens_later() -> None:
    state = folded(Granted("exec"), HistoryInjected("one"), Journaled(1))
    taken = state.snapshot()
    folded(Granted("edit"), HistoryInjected("two"), Journaled(2), state=state)
    assert (taken["history"], taken["journal"], [each["category"] for each in taken["given"]]) == (
        ["one"],
        [1],
        ["exec"],
    )


def test_a_state_that_begins_with_a_snapshot_does_not_change_it() -> None:
    snapshot = Snapshot(turns=4, grants=("exec",), journal=(1,))
    state = SessionState(snapshot)
    folded(Granted("edit"), Journaled(2), state=state)
    assert snapshot == Snapshot(turns=4, grants=("exec",), journal=(1,))
    assert (state.turns, state.grants, state.journal) == (4, [Grant("exec"), Grant("edit")], [1, 2])


def test_a_grant_that_is_taken_back_is_gone_and_the_others_are_kept_as_they_are() -> None:
    command = Granted("exec", tool="Bash", command="git status")
    state = folded(Granted("edit"), Granted("edit", outside=True), command, GrantRevoked("edit"))
    kept = [Grant("edit", outside=True), Grant("exec", tool="Bash", command="git status")]
    assert state.grants == kept
    assert SessionState.from_snapshot(state.snapshot()).grants == kept


def test_grants_keep_their_order_over_a_checkpoint() -> None:
    state = folded(Granted("exec", tool="Bash", command="git status"), Granted("edit"), Granted("info", outside=True))
    assert SessionState.from_snapshot(state.snapshot()).grants == state.grants


def test_an_older_checkpoint_knows_categories_alone_and_counts_only_by_itself() -> None:
    assert SessionState.from_snapshot({"grants": ["exec", "edit"]}).grants == [Grant("exec"), Grant("edit")]
    assert SessionState.from_snapshot({"grants": ["exec"], "given": [{"category": "edit"}]}).grants == [Grant("edit")]


@pytest.mark.parametrize("data", [None, [], {"turns": "x"}, {"mode": "telepathy"}, {"grants": ["x"]}, {"journal": {}}])
def test_what_is_no_snapshot_is_refused(data: Any) -> None:
    with pytest.raises(ShapeError):
        SessionState.from_snapshot(data)
