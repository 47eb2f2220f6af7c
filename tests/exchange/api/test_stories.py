"""Forks, handovers, scripts and explanations over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import World, world
from tests.support.loop import until
from trunkline.core.turns import State

SCRIPT = """
turns:
- steps:
  - text: ["One ", "moment. "]
  - tool: {name: Write, args: {file_path: a.txt, content: x}, output: done}
  - text: "Written."
- steps: [{text: "The second answer."}]
- steps: [{text: "Now I "}, {hang: true}]
"""


async def asked(net: World, **more: Any) -> str:
    """A session in which a person is asked about a call."""
    id = await net.session("scripted", **more)
    await net.say(id, "Write it", who="talker")
    live = await net.exchange.switchboard.find(id)
    await until(lambda: live.session.status is State.AWAITING_APPROVAL)
    await live.written()
    return id


async def approved(net: World) -> str:
    """A session whose one turn has ended."""
    id = await asked(net)
    (approval,) = (await net.get("/api/approvals?state=pending")).json()["approvals"]
    await net.post(f"/api/approvals/{approval['id']}", {"decision": "approve"}, who="approver")
    await rest(net, id)
    return id


async def rest(net: World, id: str) -> None:
    live = await net.exchange.switchboard.find(id)
    await live.session.at_rest()
    await live.written()


async def events(net: World, id: str, last: str) -> list[dict[str, Any]]:
    reader = net.read(id)
    await until(lambda: last in reader.kinds)
    found = [{"kind": kind, **data} for kind, data in reader.events]
    await reader.leave()
    return found


async def story(net: World, id: str) -> dict[str, Any]:
    found = await net.get(f"/api/sessions/{id}/explanation", who="observer")
    assert found.status_code == 200, found.text
    said: dict[str, Any] = found.json()
    return said


async def test_a_fork_has_the_same_events_through_n_and_goes_on(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await approved(net)
        await net.say(id, "And then?")
        await rest(net, id)
        before = await events(net, id, "turn_ended")
        end = next(event["seq"] for event in before if event["kind"] == "turn_ended")
        made = await net.post(f"/api/sessions/{id}/fork", {"at": end})
        assert made.status_code == 200
        other = made.json()["id"]
        assert made.json() == {"id": other, "agent": "scripted"}
        assert other != id
        kept = await events(net, other, "turn_ended")
        assert kept == [{**event, "session": other} for event in before if event["seq"] <= end]
        assert await net.say(other, "And then?") == 2
        await rest(net, other)
        texts = [event["text"] for event in await events(net, other, "turn_ended") if event["kind"] == "text_delta"]
        assert texts[-1] == "The second answer."
        # The one that it came from did not notice.
        assert len(await events(net, id, "turn_ended")) == len(before)


async def test_a_fork_without_n_has_all_events(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await approved(net)
        other = (await net.post(f"/api/sessions/{id}/fork", {})).json()["id"]
        whole = await events(net, id, "turn_ended")
        assert await events(net, other, "turn_ended") == [{**event, "session": other} for event in whole]


async def test_what_waits_for_an_answer_is_asked_in_one_session_only(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await asked(net)
        other = (await net.post(f"/api/sessions/{id}/fork", {})).json()["id"]
        kinds = [event["kind"] for event in await events(net, other, "turn_ended")]
        assert kinds[-3:] == ["tool_requested", "tool_cancelled", "turn_ended"]
        pending = (await net.get("/api/approvals?state=pending")).json()["approvals"]
        assert [each["session"] for each in pending] == [id]
        (turn,) = (await story(net, other))["turns"]
        assert (turn["outcome"], turn["cause"]) == ("cancelled", "admin forked the session here.")


@pytest.mark.parametrize("at", [-1, 10_000, 2**60, "x", 1.5])
async def test_a_fork_after_an_event_that_is_not_there_is_refused(tmp_path: Path, at: object) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await approved(net)
        found = await net.post(f"/api/sessions/{id}/fork", {"at": at})
        assert found.status_code == 400
        assert len(await net.exchange.switchboard.rows()) == 1


async def test_another_agent_goes_on_with_what_was_said_and_done(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await approved(net)
        made = (await net.post(f"/api/sessions/{id}/handover", {"to": "fake"})).json()
        assert made["agent"] == "fake"
        (told,) = (await net.exchange.switchboard.find(made["id"])).session.state.history
        for part in ("User (talker): Write it", "One moment.", "Write(file_path=a.txt", "gave: done", "Written."):
            assert part in told
        assert "Files touched so far:\n- a.txt (changed)" in told
        row = await net.exchange.switchboard.row(made["id"])
        old = await net.exchange.switchboard.row(id)
        assert row is not None
        assert old is not None
        assert row.workspace == old.workspace


async def test_nothing_is_left_of_a_handover_to_an_agent_that_cannot_be_had(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await approved(net)
        for to, status in (("nobody", 404), ("broken", 503)):
            assert (await net.post(f"/api/sessions/{id}/handover", {"to": to})).status_code == status
        assert [row.id for row in await net.exchange.switchboard.rows()] == [id]


async def test_an_explanation_names_who_said_decided_and_stopped_what(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await approved(net)
        await net.say(id, "Second")
        await rest(net, id)
        await net.say(id, "Third", who="talker")
        live = await net.exchange.switchboard.find(id)
        reader = net.read(id, who="observer")
        await until(lambda: "Now I " in reader.text)
        await net.post(f"/api/sessions/{id}/stop", who="talker")
        await rest(net, id)
        await reader.leave()
        await live.written()
        found = await story(net, id)
        assert [(turn["outcome"], turn["cause"]) for turn in found["turns"]] == [
            ("success", "The agent had finished its answer."),
            ("success", "The agent had finished its answer."),
            ("cancelled", "talker stopped it."),
        ]
        assert set(found["people"]) == {"admin", "approver", "talker", "observer"}
        told = [(entry["kind"], entry["who"], entry["text"]) for entry in found["timeline"]]
        assert ("message", "talker", "Write it") in told
        assert ("tool_answered", "approver", "approved Write") in told
        assert ("act", "observer", "joined: http") in told
        assert ("act", "observer", "left: http") in told
        assert [entry["seq"] for entry in found["timeline"]] == sorted(entry["seq"] for entry in found["timeline"])


async def test_a_turn_that_its_process_did_not_live_to_end_says_so(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await asked(net)
        # As `kill -9` leaves it: the log as it is, and no rows of what came later.
        await net.exchange.switchboard.written()
        log = next((tmp_path / "sessions").glob("*.log"))
        left = log.read_bytes()
    log.write_bytes(left)
    async with world(tmp_path, script=SCRIPT) as net:
        await net.exchange.switchboard.find(id)
        found = await story(net, id)
        assert found["turns"][0]["outcome"] == "unknown"
        assert "process ended before the call did" in found["turns"][0]["cause"]
        assert any(entry["text"].startswith("The session was woken: process ") for entry in found["timeline"])


async def test_a_script_of_a_session_is_made_of_turns_that_have_ended(tmp_path: Path) -> None:
    async with world(tmp_path, script=SCRIPT) as net:
        id = await asked(net)
        early = await net.get(f"/api/sessions/{id}/script", who="observer")
        assert early.status_code == 400
        assert "nothing to record yet" in early.json()["error"]["message"]
        await net.post(f"/api/sessions/{id}/stop")
        await rest(net, id)
        found = (await net.get(f"/api/sessions/{id}/script", who="observer")).json()
        assert [turn["message"] for turn in found["script"]["turns"]] == ["Write it"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "fork", {}),
        ("POST", "handover", {"to": "echo"}),
        ("GET", "script", None),
        ("GET", "explanation", None),
    ],
)
async def test_a_session_that_is_not_there_is_told_so(tmp_path: Path, method: str, path: str, body: object) -> None:
    async with world(tmp_path) as net:
        found = await net.ask(method, f"/api/sessions/none/{path}", body)
        assert (found.status_code, found.json()["error"]["code"]) == (404, "session_not_found")


@pytest.mark.parametrize(("path", "body"), [("fork", {}), ("handover", {"to": "echo"})])
async def test_only_an_admin_makes_one_session_of_another(tmp_path: Path, path: str, body: object) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        assert (await net.post(f"/api/sessions/{id}/{path}", body, who="approver")).status_code == 403
