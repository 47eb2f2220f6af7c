"""Approvals over HTTP: shown while they wait, answered once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import World, token, world
from tests.support.loop import until
from trunkline.base import log_context
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import ToolRequested, TurnEnded
from trunkline.core.faults import ConfigError
from trunkline.exchange.browsers import forgery_token
from trunkline.exchange.session_opening import CANNOT_CONTINUE

REQUEST = ToolRequested("c1", "Bash", "exec", {"command": "ls"}, "List files")


async def asked(net: World, request: ToolRequested = REQUEST) -> tuple[str, dict[str, Any]]:
    """A session in which a person is asked, and what."""
    id = await net.session()
    reader = net.read(id)
    await net.say(id)
    await until(lambda: net.fake.busy)
    net.fake.say(request)
    await until(lambda: "tool_requested" in reader.kinds)
    (approval,) = (await net.get("/api/approvals?state=pending", "observer")).json()["approvals"]
    return id, approval


async def test_what_is_asked_is_listed_as_soon_as_it_is_shown(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id, approval = await asked(net)
        assert approval["id"]
        assert approval["asked_at"] > 1_771_400_000_000
        assert {name: approval[name] for name in ("session", "agent", "call_id", "tool", "category", "state")} == {
            "session": id, "agent": "fake", "call_id": "c1", "tool": "Bash", "category": "exec", "state": "pending",
        }  # fmt: skip
        assert (approval["args"], approval["description"]) == ({"command": "ls"}, "List files")
        assert (await net.get(f"/api/approvals/{approval['id']}")).json() == approval
        assert (await net.get("/api/approvals?state=approved")).json() == {"approvals": []}
        assert (await net.get(f"/api/approvals?session={id}")).json() == {"approvals": [approval]}
        assert (await net.get("/api/approvals?session=other")).json() == {"approvals": []}


async def test_one_answer_wins_and_the_others_are_told_who_was_first(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id, approval = await asked(net)
        path = f"/api/approvals/{approval['id']}"
        people = ["approver", "admin"] * 5
        decisions = ["approve", "deny"] * 5
        answers = await asyncio.gather(
            *(net.post(path, {"decision": said}, who) for who, said in zip(people, decisions, strict=True))
        )
        won = [answer for answer in answers if answer.status_code == 200]
        assert len(won) == 1
        assert len(net.fake.decisions) == 1
        winner = won[0].json()
        for answer in answers:
            if answer.status_code != 200:
                found = answer.json()
                assert (answer.status_code, found["error"]["code"]) == (409, "decided")
                assert found["decided_by"] == winner["decided_by"]
                assert found["decision"] == {"approved": "approve", "denied": "deny"}[winner["state"]]
        (kept,) = (await net.get(f"/api/approvals?session={id}")).json()["approvals"]
        assert kept == winner


async def test_half_characters_of_an_agent_or_a_person_keep_no_approval_from_its_answer(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        request = ToolRequested("c\ud800", "B\udfffsh", "exec", {"command": "\ud800"}, "List \ud800")
        id, approval = await asked(net, request)
        assert (approval["call_id"], approval["tool"], approval["description"]) == ("c?", "B?sh", "List ?")
        path = f"/api/approvals/{approval['id']}"
        answer = await net.ask("POST", path, None, "admin", content=rb'{"decision": "deny", "reason": "no \ud800"}')
        assert (answer.status_code, answer.json()["state"], answer.json()["reason"]) == (200, "denied", "no ?")
        assert net.fake.decisions == [("c\ud800", Deny("no \ud800"))]
        assert (await net.get(f"/api/sessions/{id}/explanation")).status_code == 200


async def test_approving_runs_the_call_and_says_who_did(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id, approval = await asked(net)
        found = await net.post(
            f"/api/approvals/{approval['id']}", {"decision": "approve", "scope": "always"}, "approver"
        )
        assert (found.json()["state"], found.json()["decided_by"]) == ("approved", "approver")
        await until(lambda: net.fake.decisions)
        assert net.fake.decisions == [("c1", Approve("once"))]
        reader = net.read(id)
        await until(lambda: "granted" in reader.kinds)
        assert dict(reader.events)["tool_answered"]["by"] == "approver"


async def test_denying_tells_the_agent_why_and_keeps_the_reason(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        _, approval = await asked(net)
        found = await net.post(f"/api/approvals/{approval['id']}", {"decision": "deny", "reason": "Not on a Friday."})
        assert (found.json()["state"], found.json()["reason"]) == ("denied", "Not on a Friday.")
        await until(lambda: net.fake.decisions)
        assert net.fake.decisions == [("c1", Deny("Not on a Friday."))]


async def test_one_that_nobody_answered_is_closed_with_its_turn(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id, approval = await asked(net)
        reader = net.read(id)
        net.fake.say(TurnEnded("success"))
        await until(lambda: "turn_ended" in reader.kinds)
        (closed,) = (await net.get("/api/approvals?state=closed")).json()["approvals"]
        assert (closed["id"], closed["decided_by"]) == (approval["id"], None)
        assert closed["reason"]
        refused = await net.post(f"/api/approvals/{approval['id']}", {"decision": "approve"})
        assert refused.status_code == 409
        assert (refused.json()["decided_by"], refused.json()["decision"]) == (None, None)


@pytest.mark.parametrize(
    ("problem", "reason", "state"), [(None, CANNOT_CONTINUE, "idle"), ("It is ill.", "It is ill.", "asleep")],
    ids=["cannot continue", "cannot start"],
)  # fmt: skip
async def test_after_a_start_nobody_is_told_that_something_waits_which_nobody_can_answer_any_more(
    tmp_path: Path, problem: str | None, reason: str, state: str
) -> None:
    async with world(tmp_path) as net:
        id, approval = await asked(net)
        # It can, as long as nobody asks it to: the call is kept at the end, as `kill -9` would.
        net.fake.capabilities = net.fake.capabilities.replace(continues=True)
    gate = asyncio.Event()

    async def making() -> None:
        await gate.wait()
        if problem is not None:
            raise ConfigError(problem)

    async with world(tmp_path, making=making) as net:
        # What is asked at once waits until the session is awake, or its agent is known to be ill.
        assert (await net.get("/readyz")).status_code == 200
        one, session = f"/api/approvals/{approval['id']}", f"/api/sessions/{id}"
        requests = [
            net.get("/api/approvals?state=pending"), net.get(f"/api/approvals?state=closed&session={id}"),
            net.get(one), net.post(one, {"decision": "approve"}), net.get(session), net.get("/api/sessions"),
            net.post(f"{session}/stop"),
        ]  # fmt: skip
        tasks = [asyncio.create_task(request) for request in requests]
        reader = net.read(id)
        assert (await net.get("/api/approvals?session=other")).json() == {"approvals": []}
        assert not [task for task in tasks if task.done()]
        gate.set()
        pending, closed, shown, answered, found, listed, stopped = [await task for task in tasks]
        assert pending.json() == {"approvals": []}
        assert closed.json() == {"approvals": [shown.json()]}
        assert (shown.json()["state"], shown.json()["decided_by"]) == ("closed", None)
        assert reason in shown.json()["reason"]
        assert (answered.status_code, answered.json()["error"]["code"]) == (409, "decided")
        assert reason in answered.json()["error"]["message"]
        assert (found.json()["state"], found.json()["turn"]) == (state, 0)
        assert [(one["id"], one["state"], one["turn"]) for one in listed.json()["sessions"]] == [(id, state, 0)]
        assert stopped.json() == {"stopped": False}
        await until(lambda: "tool_requested" in reader.kinds)
        if problem is None:
            await until(lambda: "turn_ended" in reader.kinds)


@pytest.mark.parametrize(
    "body",
    [{}, {"decision": "yes"}, {"decision": True}, {"decision": "approve", "scope": "forever"}, [], "approve",
     {"decision": "deny", "reason": "x" * 10_001}],
)  # fmt: skip
async def test_what_is_no_decision_decides_nothing(tmp_path: Path, body: Any) -> None:
    async with world(tmp_path) as net:
        _, approval = await asked(net)
        assert (await net.post(f"/api/approvals/{approval['id']}", body)).status_code == 400
        assert (await net.get(f"/api/approvals/{approval['id']}")).json()["state"] == "pending"


async def test_an_approval_that_is_not_there_is_404_and_a_state_that_is_none_400(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/approvals/none")).status_code == 404
        assert (await net.post("/api/approvals/none", {"decision": "approve"})).status_code == 404
        assert (await net.get("/api/approvals?state=lost")).status_code == 400


async def test_an_answer_is_kept_with_the_wire_that_it_came_by(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        _, approval = await asked(net)
        assert approval["wire"] is None
        found = await net.post(f"/api/approvals/{approval['id']}", {"decision": "approve"})
        assert (found.json()["decided_by"], found.json()["wire"]) == ("admin", "http")

        _, approval = await asked(net)
        secret = await net.exchange.browsers.by_token(token("approver"))
        assert secret is not None
        own = {"cookie": f"trunkline-4400={secret}", "x-trunkline-page": forgery_token(secret)}
        path = f"/api/approvals/{approval['id']}"
        found = await net.post(path, {"decision": "deny", "reason": "No."}, None, headers=own)
        assert (found.json()["decided_by"], found.json()["wire"]) == ("approver", "console")

        id, approval = await asked(net)
        live = await net.exchange.switchboard.find(id)
        with log_context.about(wire="telegram"):
            live.session.answer("c1", Deny("Not here."), "telegram:1")
        await live.written()
        found = (await net.get(f"/api/approvals/{approval['id']}")).json()
        assert [found[name] for name in ("state", "decided_by", "wire", "reason")] == [
            "denied", "telegram:1", "telegram", "Not here.",
        ]  # fmt: skip


async def several(net: World, *requests: ToolRequested) -> list[str]:
    """The ids of approvals that wait, each in a session of its own."""
    found = []
    for request in requests:
        id = await net.session()
        await net.say(id)
        await until(lambda: net.fake.busy)
        net.fake.say(request)
        await until(lambda id=id: net.exchange.switchboard.live(id).session.waiting)  # type: ignore[misc,union-attr]
        (approval,) = (await net.get(f"/api/approvals?session={id}")).json()["approvals"]
        found.append(approval["id"])
    return found


async def test_filters_give_those_of_which_all_is_true(tmp_path: Path) -> None:
    edit = ToolRequested("c2", "Edit", "edit", {"file_path": "a"}, "Edit a")
    async with world(tmp_path) as net:
        one, two, three = await several(net, REQUEST, edit, REQUEST)
        await net.post(f"/api/approvals/{three}", {"decision": "approve"}, "approver")
        await net.post(f"/api/approvals/{one}", {"decision": "deny"}, "admin")

        async def listed(query: str) -> list[str]:
            answer = await net.get(f"/api/approvals?{query}", "observer")
            assert answer.status_code == 200, answer.text
            return [each["id"] for each in answer.json()["approvals"]]

        assert await listed("") == [one, two, three]
        assert await listed("tool=Edit") == await listed("category=edit") == await listed("state=pending") == [two]
        assert await listed("agent=fake") == [one, two, three]
        assert await listed("agent=other") == []
        assert await listed("by=approver") == [three]
        # In the order in which they were decided.
        assert await listed("state=decided") == [three, one]
        assert await listed(f"state=decided&before={one}") == [three]
        assert await listed("state=decided&limit=1") == [one]
        assert await listed("limit=2") == [two, three]
        assert await listed(f"limit=1&before={two}") == [one]
        for query, status in (
            ("state=open", 400), ("category=all", 400), ("limit=0", 400), ("limit=1001", 400), ("before=none", 404),
        ):  # fmt: skip
            assert (await net.get(f"/api/approvals?{query}")).status_code == status, query


async def test_several_are_denied_at_once_and_each_says_what_came_of_it(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        one, two = await several(net, REQUEST, REQUEST)
        await net.post(f"/api/approvals/{one}", {"decision": "approve"}, "admin")
        body = {"ids": [one, two, "none", two], "reason": "We are closed."}
        found = (await net.post("/api/approvals/deny", body, "approver")).json()["approvals"]
        assert [(each["id"], each["state"], each["decided_by"]) for each in found] == [
            (one, "approved", "admin"), (two, "denied", "approver"), ("none", None, None),
        ]  # fmt: skip
        assert [each["error"] for each in found] == [
            "It was approved already, by admin.", None, "There is no approval `none` here.",
        ]  # fmt: skip
        assert net.fake.decisions == [("c1", Approve()), ("c1", Deny("We are closed."))]
        assert (await net.get(f"/api/approvals/{two}")).json()["reason"] == "We are closed."


async def test_how_many_can_be_denied_at_once_and_by_whom(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        for count, status in ((0, 400), (1, 200), (200, 200), (201, 400)):
            body = {"ids": [f"n{number}" for number in range(count)]}
            assert (await net.post("/api/approvals/deny", body, "approver")).status_code == status, count
        too_long = {"ids": ["a"], "reason": "x" * 10_001}
        assert (await net.post("/api/approvals/deny", too_long, "approver")).status_code == 400
        for who in ("observer", "talker"):
            assert (await net.post("/api/approvals/deny", {"ids": ["a"]}, who)).status_code == 403


async def test_ids_that_no_database_holds_are_nobodys(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = await net.ask(
            "POST", "/api/approvals/deny", content=rb'{"ids": ["\ud800", "\u0000", "a"], "reason": ""}'
        )
        assert [each["state"] for each in found.json()["approvals"]] == [None, None, None]
        assert (await net.get("/api/approvals?agent=%00&tool=%00&by=%00")).status_code == 200
