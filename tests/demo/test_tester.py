"""The demonstration's agent: what it does next follows from what stands on the network."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.demo.tester import HYPOTHESIS, REPORT, REQUEST, decide, found_context


def context(*threads: dict[str, Any], inbox: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    community = {"slug": "vault-0xabcd", "address": "0x" + "ab" * 20, "threads": list(threads)}
    return {"communities": [community], "runnerInbox": list(inbox)}


def thread(title: str, comments: int = 0, **members: Any) -> dict[str, Any]:
    return {"id": title[:5], "title": title, "commentCount": comments, **members}


def only(found: list[dict[str, Any]]) -> dict[str, Any]:
    (action,) = found
    assert action["communitySlug"] == "vault-0xabcd"
    return action


def test_it_begins_with_its_hypothesis() -> None:
    action = only(decide(context()))
    assert (action["action"], action["title"], action["threadType"]) == ("create_thread", HYPOTHESIS, "DISCUSSION")


@pytest.mark.parametrize(("comments", "wei"), [(0, "1000"), (1, "999")])
def test_it_tries_one_deposit_after_the_other(comments: int, wei: str) -> None:
    action = only(decide(context(thread(HYPOTHESIS, comments))))
    assert (action["action"], action["functionName"], action["value"]) == ("tx", "deposit()", wei)


def test_it_posts_what_came_of_a_deposit_before_anything_else() -> None:
    feedback = {
        "type": "tx_feedback",
        "threadId": "t1",
        "functionName": "deposit()",
        "value": "999",
        "result": {"type": "tx", "hash": "0xfeed", "gasUsed": "45534", "blockNumber": 3},
    }
    action = only(decide(context(thread(HYPOTHESIS, 1), inbox=(feedback,))))
    assert (action["action"], action["threadId"]) == ("comment", "t1")
    assert "0xfeed" in action["body"]


def test_a_deposit_that_was_not_sent_is_told_too() -> None:
    feedback = {
        "type": "tx_feedback", "threadId": "t1", "functionName": "deposit()", "value": "999",
        "result": {"error": "over the cap"},
    }  # fmt: skip
    assert "over the cap" in only(decide(context(thread(HYPOTHESIS, 1), inbox=(feedback,))))["body"]


def test_it_asks_waits_closes_and_reports() -> None:
    tried = thread(HYPOTHESIS, 2)
    assert only(decide(context(tried)))["threadType"] == "REQUEST_TO_HUMAN"
    waiting = only(decide(context(tried, thread(REQUEST, 0, isResolved=False))))
    assert (waiting["action"], waiting["functionName"]) == ("tx", "fees")
    closing = only(decide(context(tried, thread(REQUEST, 1, isResolved=False))))
    assert (closing["action"], closing["status"]) == ("set_request_status", "resolved")
    resolved = thread(REQUEST, 1, isResolved=True)
    assert only(decide(context(tried, resolved)))["threadType"] == "REPORT_TO_HUMAN"
    assert only(decide(context(tried, resolved, thread(REPORT))))["functionName"] == "fees"


def test_the_context_is_found_wherever_it_stands_in_the_prompt() -> None:
    prompt = f'Answer like {{"action": 1}} please.\nContext:\n{json.dumps(context())}\nYou may {{'
    assert found_context(prompt) == context()
    with pytest.raises(ValueError, match="no context"):
        found_context("nothing { here")
