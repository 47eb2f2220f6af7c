"""Writes whose answer is lost: found, told, and never sent again."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.cycles import World, begin, comment
from tests.support.provider import BREAK, HANG
from tests.support.sns_stub import HANDLE, SLUG, SnsStub, hurry
from trunkline.runner import reconciling
from trunkline.runner.reconciling import GIVE_UP_SECONDS, LATE_SECONDS


def found(world: World) -> list[dict[str, Any]]:
    """What was found out."""
    return [told["result"] for told in world.told() if told["type"] == "write_feedback"]


@pytest.mark.parametrize("accident", [HANG, BREAK], ids=["hang", "break"])
async def test_a_write_whose_answer_is_lost_is_found_and_never_sent_again(
    world: World, sns: SnsStub, accident: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if accident is HANG:
        hurry(monkeypatch, sns, "POST /api/threads")
    sns.accident("POST /api/threads", accident)
    lost = await world.run([begin("Lost")])
    assert lost.error is None
    assert (lost.results[0]["ok"], lost.results[0]["unknown"]) == (False, True)

    report = await world.run([comment(sns.threads[0]["id"])])
    assert report.error is None
    feedback = next(told for told in world.told() if told["type"] == "write_feedback")
    assert feedback["result"] == {"ok": True, "threadId": sns.threads[0]["id"]}
    assert sns.count("POST /api/threads") == 1

    await world.run([comment(sns.threads[0]["id"], "Again")])
    assert len([told for told in world.told() if told["type"] == "write_feedback"]) == 1


async def test_a_write_that_turns_out_to_have_arrived_is_not_repeated_by_the_same_decision(
    world: World, sns: SnsStub
) -> None:
    sns.accident("POST /api/threads", BREAK)
    await world.run([begin("Lost")])
    again = await world.run([begin("Lost")])
    assert (again.results[0]["ok"], again.results[0]["alreadyWritten"]) == (True, True)
    assert again.results[0]["threadId"] == sns.threads[0]["id"]
    assert sns.count("POST /api/threads") == 1
    assert again.actions == ()

    # Decided on once more, it is meant.
    await world.run([begin("Lost")])
    assert sns.count("POST /api/threads") == 2


async def test_the_same_write_is_refused_while_its_fate_is_not_known(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    place = f"POST /api/threads/{thread}/comments"
    sns.refuse(place, 502, "Bad gateway")
    first = await world.run([comment(thread)])
    second = await world.run([comment(thread), comment(thread, "Another")])

    assert first.results[0]["unknown"]
    assert "not sent again" in second.results[0]["error"]
    assert sns.count(place) == 2
    assert sns.comments == []


async def test_a_lost_comment_and_a_lost_status_are_found(world: World, sns: SnsStub) -> None:
    thread = sns.thread("REQUEST_TO_HUMAN")
    sns.accident(f"POST /api/threads/{thread}/comments", BREAK)
    sns.accident(f"PATCH /api/threads/{thread}/request-status", BREAK)
    status = {"action": "set_request_status", "communitySlug": SLUG, "threadId": thread, "status": "resolved"}
    await world.run([comment(thread, "Lost"), status])
    await world.run([begin()])

    results = [told["result"] for told in world.told() if told["type"] == "write_feedback"]
    assert results == [{"ok": True, "commentId": sns.comments[0]["id"]}, {"ok": True, "status": "resolved"}]


async def test_a_write_that_never_arrived_is_told_when_it_cannot_arrive_any_more(world: World, sns: SnsStub) -> None:
    sns.refuse("POST /api/threads", 503, "later")
    await world.run([begin("Lost")])
    del sns.refusals["POST /api/threads"]
    await world.run([begin("Other")])
    assert all(told["type"] != "write_feedback" for told in world.told())

    # Later than any network accepts it: its signature is good for two minutes, and its clock may be two behind.
    await world.run([begin("Third")])
    world.age(235)
    await world.run([begin("Fourth")])
    assert all(told["type"] != "write_feedback" for told in world.told())
    world.age(11)
    await world.run([begin("Fifth")])
    (feedback,) = [told for told in world.told() if told["type"] == "write_feedback"]
    assert (feedback["title"], feedback["result"]["ok"]) == ("Lost", False)


async def test_a_lost_joke_is_found_and_so_is_a_comment_far_down_in_a_thread(world: World, sns: SnsStub) -> None:
    thread = sns.thread()
    sns.page = 2
    sns.accident(f"POST /api/threads/{thread}/comments", BREAK)
    jokes = [comment(thread, f"Joke {number}", commentKind="JOKE") for number in range(4)]
    await world.run([jokes[0]])
    sns.accident(f"POST /api/threads/{thread}/comments", BREAK)
    await world.run([jokes[3]])
    for other in range(5):
        sns.comments.append({**sns.comments[0], "id": f"cother{other}", "author": "Other", "body": "Words"})
    sns.comments.insert(0, sns.comments.pop())
    await world.run([begin()])
    assert found(world) == [
        {"ok": True, "commentId": sns.comments[1]["id"]},
        {"ok": True, "commentId": sns.comments[2]["id"]},
    ]


async def test_a_thread_with_too_many_comments_leaves_it_open_until_it_is_given_up(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = sns.thread()
    sns.refuse(f"POST /api/threads/{thread}/comments", 502, "Bad gateway")
    await world.run([comment(thread)])
    sns.page = 1
    monkeypatch.setattr(reconciling, "MAX_PAGES", 1)
    for number in range(2):
        other = {"id": f"c{number}", "threadId": thread, "body": "b", "author": "Other", "kind": "JOKE"}
        sns.comments.append({**other, "createdAt": "2026-01-01T00:00:00.000Z"})
    world.age(LATE_SECONDS + 6)
    await world.run([begin()])
    assert found(world) == []
    world.age(GIVE_UP_SECONDS)
    await world.run([begin("Other")])
    assert found(world) == [{"ok": False, "error": "It could not be found out whether it arrived."}]


@pytest.mark.parametrize(
    "change", [{"author": "Somebody"}, {"createdAt": "2020-01-01T00:00:00.000Z"}, {"body": "Something else"}]
)
async def test_what_another_wrote_or_was_written_before_is_not_the_lost_one(
    world: World, sns: SnsStub, change: dict[str, str]
) -> None:
    sns.refuse("POST /api/threads", 503, "later")
    await world.run([begin("Lost")])
    sns.refusals.clear()
    sns.thread(title="Lost", author=HANDLE)
    sns.threads[0] |= {"body": "A body", **change}
    await world.run([comment(sns.threads[0]["id"])])
    assert found(world) == []


@pytest.mark.parametrize(("behind", "is_found"), [(115, True), (125, False)])
async def test_the_networks_clock_may_be_behind_as_far_as_it_accepts_signatures(
    world: World, sns: SnsStub, behind: float, is_found: bool
) -> None:
    sns.accident("POST /api/threads", BREAK)
    await world.run([begin("Lost")])
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - behind))
    sns.threads[0]["createdAt"] = moment
    await world.run([comment(sns.threads[0]["id"])])
    assert bool(found(world)) is is_found


async def test_an_older_post_of_the_same_words_that_was_answered_is_not_taken_for_the_lost_one(
    world: World, sns: SnsStub
) -> None:
    thread = sns.thread()
    await world.run([comment(thread, "Again")])
    sns.refuse(f"POST /api/threads/{thread}/comments", 502, "Bad gateway")
    await world.run([comment(thread, "Again")])
    sns.refusals.clear()
    await world.run([begin()])
    assert found(world) == []
    world.age(LATE_SECONDS + 6)
    await world.run([begin("Other")])
    assert [result["ok"] for result in found(world)] == [False]


async def test_more_than_can_be_looked_for_are_given_up_and_told(
    world: World, sns: SnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "MAX_WRITES", 2)
    sns.refuse("POST /api/threads", 503, "later")
    await world.run([begin(f"Lost {number}") for number in range(5)])
    await world.run([begin("Lost 4")])
    told = [each for each in world.told() if each["type"] == "write_feedback"]
    assert [each["title"] for each in told] == ["Lost 0", "Lost 1", "Lost 2"]
    assert all("could not be found out" in each["result"]["error"] for each in told)
