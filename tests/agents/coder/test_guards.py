"""Circles are noticed, work is not."""

from __future__ import annotations

import pytest

from trunkline.agents.coder import guards
from trunkline.agents.coder.guards import Guards
from trunkline.models.messages import ToolResultBlock, ToolUse


def call(**args: object) -> ToolUse:
    return ToolUse("t", "Bash", args)


def result(text: str = "no", *, error: bool = True) -> ToolResultBlock:
    return ToolResultBlock("t", text, error)


def rounds_until_the_end(pairs: list[tuple[ToolUse, ToolResultBlock]]) -> int | None:
    watch = Guards()
    for number, (use, outcome) in enumerate(pairs, 1):
        if watch.saw([use], [outcome]) is not None:
            return number
    return None


def test_the_same_failing_call_ends_the_turn_the_third_time() -> None:
    assert rounds_until_the_end([(call(command="x"), result())] * 5) == guards.SAME_FAILURES


def test_failures_of_different_calls_are_borne_longer() -> None:
    assert rounds_until_the_end([(call(command=str(n)), result()) for n in range(20)]) == guards.FAILED_ROUNDS


def test_a_denial_is_no_failure_of_the_model() -> None:
    denied = result("Tool denied: No.")
    others = [(call(command=str(n)), denied) for n in range(50)]
    assert rounds_until_the_end(others) == guards.DENIED_ROUNDS
    assert rounds_until_the_end([(call(command="x"), denied)] * 20) == guards.SAME_ROUNDS
    # In between it does not hide failures either.
    mixed = [*others[:20], *[(call(command="x"), result())] * 3]
    assert rounds_until_the_end(mixed) == 20 + guards.SAME_FAILURES


def test_calls_that_nobody_understands_end_the_turn() -> None:
    pairs = [(ToolUse("t", "Bash", None, raw=f"{{{n}"), result(str(n))) for n in range(9)]
    assert rounds_until_the_end(pairs) == guards.MALFORMED_ROUNDS


def test_the_same_successful_call_over_and_over_ends_the_turn() -> None:
    assert rounds_until_the_end([(call(command="x"), result("ok", error=False))] * 20) == guards.SAME_ROUNDS


@pytest.mark.parametrize("every", [2, 3])
def test_a_success_in_between_starts_the_count_again(every: int) -> None:
    pairs = [(call(command=str(n)), result(error=n % every == 0)) for n in range(40)]
    assert rounds_until_the_end(pairs) is None


def test_the_reason_names_the_tool_and_the_count() -> None:
    watch = Guards()
    reasons = [watch.saw([call(command="x")], [result()]) for _ in range(3)]
    assert reasons[-1] == "The model repeated the same failing call of `Bash` 3 times."
