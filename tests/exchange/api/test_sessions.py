"""Sessions over HTTP: begun, said something in, watched, stopped, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.exchange.api_world import world
from tests.support.loop import until
from trunkline.core.events import TurnEnded
from trunkline.core.ids import LONGEST_ID
from trunkline.exchange.api.endpoint import MAX_BODY
from trunkline.exchange.reach import MAX_FILES
from trunkline.exchange.settings import AgentBudget


async def test_what_is_said_is_answered_and_shown_to_who_watches(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        reader = net.read(id)
        assert await net.say(id, "Hello", who="talker") == 1
        await until(lambda: "turn_ended" in reader.kinds)
        assert reader.kinds == ["turn_started", "text_delta", "turn_ended"]
        started, delta, ended = (data for _, data in reader.events)
        assert (started["message"], started["by"], started["turn"]) == ("Hello", "talker", 1)
        assert (delta["session"], delta["seq"], delta["text"]) == (id, 2, "Hello")
        assert ended["outcome"] == "success"


async def test_the_same_message_twice_is_one_message(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert await net.say(id, "one", msg_id="m1") == 1
        assert await net.say(id, "two", msg_id="m2") == 2
        await until(lambda: net.fake.busy)
        net.fake.say(TurnEnded("success"))
        await until(lambda: len(net.fake.heard) == 2)
        assert (await net.say(id, "one", msg_id="m1"), await net.say(id, "two", msg_id="m2")) == (1, 2)
        assert [message.text for message in net.fake.heard] == ["one", "two"]


async def test_messages_that_wait_for_their_turn_are_told_until_they_begin_or_are_dropped(tmp_path: Path) -> None:
    async with world(tmp_path) as net:

        async def queued() -> list[tuple[str, str, str]]:
            found = (await net.get(f"/api/sessions/{id}", "observer")).json()["queued"]
            return [(each["msg_id"], each["text"], each["by"]) for each in found]

        id = await net.session()
        assert await queued() == []
        for number, text in enumerate(("one", "two", "three"), 1):
            await net.say(id, text, msg_id=f"m{number}", who="talker")
        await until(lambda: net.fake.busy)
        assert await queued() == [("m2", "two", "talker"), ("m3", "three", "talker")]
        net.fake.say(TurnEnded("success"))
        await until(lambda: len(net.fake.heard) == 2)
        assert await queued() == [("m3", "three", "talker")]
        live = net.exchange.switchboard.live(id)
        assert live is not None
        await net.post(f"/api/sessions/{id}/stop", {})
        await live.session.at_rest()
        assert await queued() == []


async def test_one_that_does_not_want_to_wait_is_refused_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        await net.say(id, "one", when="reject")
        refused = await net.post(f"/api/sessions/{id}/messages", {"text": "two", "when": "reject"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")


async def test_an_agent_that_cannot_be_steered_gets_the_message_after_the_turn(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert await net.say(id, "one") == 1
        assert await net.say(id, "two", when="steer") == 2


async def test_a_steered_message_belongs_to_the_turn_in_progress(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        net.fake.steer = lambda message: True  # type: ignore[attr-defined]  # what its conversations have that can
        await net.say(id, "one")
        await until(lambda: net.fake.busy)
        reader = net.read(id)
        assert await net.say(id, "two", when="steer", who="talker") == 1
        await until(lambda: "steered" in reader.kinds)
        found = dict(reader.events)["steered"]
        assert (found["message"], found["by"], found["turn"]) == ("two", "talker", 1)


async def test_a_command_that_changes_something_needs_an_approver(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        refused = await net.post(f"/api/sessions/{id}/messages", {"text": "/undo"}, who="talker")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert "it needs the role `approver`" in refused.json()["error"]["message"]
        assert await net.say(id, "/undo", who="approver") == 1
        assert await net.say(id, "/help", who="talker") == 2


async def test_a_spent_budget_is_429_and_says_when_there_is_more(tmp_path: Path) -> None:
    async with world(tmp_path, budget=AgentBudget(turns_per_hour=1)) as net:
        id = await net.session("echo")
        reader = net.read(id)
        await net.say(id)
        await until(lambda: "turn_ended" in reader.kinds)
        refused = await net.post(f"/api/sessions/{id}/messages", {"text": "two"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget")
        assert 3500 < int(refused.headers["retry-after"]) <= 3600
        net.clock.now += 3_600_000
        assert await net.say(id, "two") == 2


async def test_an_id_that_exists_is_gone_on_with_and_belongs_to_its_agent(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert await net.session("echo", session_id="mine") == "mine"
        assert await net.session("echo", session_id="mine") == "mine"
        refused = await net.post("/api/sessions", {"agent": "fake", "session_id": "mine"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_exists")
        assert len((await net.get("/api/sessions")).json()["sessions"]) == 1


async def test_a_session_goes_on_in_the_next_process(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo", session_id="Ana's")
        await net.say(id, "one")
    async with world(tmp_path) as net:
        assert (await net.get("/api/sessions/Ana's")).json()["state"] == "asleep"
        assert await net.say("Ana's", "two") == 2
        reader = net.read("Ana's")
        await until(lambda: reader.kinds.count("turn_ended") == 2)


async def test_sessions_are_listed_newest_first_and_page_by_page(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        ids = [await net.session("echo") for _ in range(5)]
        other = await net.session("fake")

        async def listed(query: str) -> list[str]:
            return [each["id"] for each in (await net.get(f"/api/sessions{query}")).json()["sessions"]]

        assert await listed("") == await listed("?agent=&limit=&before=") == [other, *reversed(ids)]
        assert await listed("?agent=echo&limit=2") == [ids[4], ids[3]]
        assert await listed(f"?agent=echo&limit=2&before={ids[3]}") == [ids[2], ids[1]]
        assert await listed(f"?before={ids[0]}") == []
        assert await listed("?agent=nobody") == []
        assert (await net.get("/api/sessions?before=gone")).status_code == 404
        for limit in ("0", "-1", "x", "1001", "9" * 99):
            assert (await net.get(f"/api/sessions?limit={limit}")).status_code == 400


async def test_a_session_tells_who_began_it_and_how_it_does(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        made = await net.post("/api/sessions", {"agent": "fake"}, "talker")
        assert made.json() == {"id": made.json()["id"], "agent": "fake"}
        id = made.json()["id"]
        await net.say(id)
        found = (await net.get(f"/api/sessions/{id}", "observer")).json()
        assert (found["by"], found["state"], found["turn"], found["mode"]) == ("talker", "running", 1, "default")
        assert found["workspace"] == str(tmp_path / "workspace")


async def test_a_turn_is_stopped_and_the_session_lives_on(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        assert (await net.post(f"/api/sessions/{id}/stop")).json() == {"stopped": False}
        reader = net.read(id)
        await net.say(id)
        await until(lambda: net.fake.busy)
        assert (await net.post(f"/api/sessions/{id}/stop", who="talker")).json() == {"stopped": True}
        await until(lambda: "turn_ended" in reader.kinds)
        assert dict(reader.events)["turn_ended"]["outcome"] == "cancelled"
        assert await net.say(id, "again") == 2


async def test_the_mode_is_changed_and_everybody_sees_it(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id)
        assert (await net.post(f"/api/sessions/{id}/mode", {"mode": "yolo"})).json() == {"mode": "yolo"}
        await until(lambda: "mode_changed" in reader.kinds)
        assert (await net.post(f"/api/sessions/{id}/mode", {"mode": "wild"})).status_code == 400
        assert (await net.get(f"/api/sessions/{id}")).json()["mode"] == "yolo"


async def test_a_removed_session_is_gone_and_its_id_can_be_had_again(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("fake", session_id="s1")
        await net.say(id)
        assert (await net.ask("DELETE", f"/api/sessions/{id}")).json() == {"id": "s1"}
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/events")):
            assert (await net.ask(method, f"/api/sessions/{id}{path}")).status_code == 404
        assert await net.say(await net.session("echo", session_id="s1"), "new") == 1


@pytest.mark.parametrize(("agent", "status", "code"), [("nobody", 404, "unknown_agent"), ("broken", 503, "config")])
async def test_an_agent_that_cannot_be_had_is_an_error_that_says_so(
    tmp_path: Path, agent: str, status: int, code: str
) -> None:
    async with world(tmp_path) as net:
        refused = await net.post("/api/sessions", {"agent": agent})
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
        assert (await net.get("/api/sessions")).json() == {"sessions": []}
        if agent == "broken":
            assert refused.json()["error"]["message"] == "It lacks a key."
            # The next try is not due yet.
            again = await net.post("/api/sessions", {"agent": agent})
            assert (again.status_code, again.json()["error"]["code"]) == (status, code)
            assert "next try is in 0.2 s: It lacks a key." in again.json()["error"]["message"]
            assert [answer.headers["retry-after"] for answer in (refused, again)] == ["1", "1"]


async def test_a_workspace_that_is_missing_is_the_agents_fault_unless_somebody_asked_for_it(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        asked = await net.post("/api/sessions", {"agent": "echo", "workspace": str(tmp_path / "nowhere")})
        assert (asked.status_code, asked.json()["error"]["code"]) == (400, "config")
        (tmp_path / "workspace").rmdir()
        own = await net.post("/api/sessions", {"agent": "echo"})
        assert (own.status_code, own.headers["retry-after"]) == (503, "1")
        told = f"The workspace `{tmp_path / 'workspace'}` is not a directory. Create it, or name another."
        assert own.json()["error"]["message"] == told
        # Nobody has to wait once it is there.
        (tmp_path / "workspace").mkdir()
        await net.session("echo")


@pytest.mark.parametrize(
    "id", ["", ".", "..", "a/b", "a\nb", "\0", "x" * (LONGEST_ID + 1), "\ud800", "\u202e", 7, ["a"], {}]
)  # fmt: skip
async def test_ids_that_cannot_be_told_on_every_wire_are_refused(tmp_path: Path, id: object) -> None:
    async with world(tmp_path) as net:
        assert (await net.post("/api/sessions", {"agent": "echo", "session_id": id})).status_code == 400
        session = await net.session("echo")
        path = f"/api/sessions/{session}/messages"
        assert (await net.post(path, {"text": "Hello", "msg_id": id})).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"7", b'"x"', b"null", b"\xff", b"NaN", b"{}", b'{"text": 7}', b'{"text": null}',
        b'{"text": "x", "text": "y"}', b'{"text": ' + b"1" * 9999 + b"}", b'{"text": "x", "when": "later"}',
        b'{"text": "x", "files": "a"}', b'{"text": "x", "files": [7]}',
        b'{"text": "x", "files": [""]}', b'{"text": "x", "files": ["\\u0000"]}', b'{"text": "x", "files": ["\\ud800"]}',
        b"[" * 100_000, b'{"text": ' + b"[" * 5000 + b"]" * 5000 + b"}", b"[" + b"0," * 50_000 + b"0]",
    ],
)  # fmt: skip
async def test_a_body_that_is_no_message_is_refused_and_nothing_happens(tmp_path: Path, body: bytes) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        refused = await net.post(f"/api/sessions/{id}/messages", content=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
        assert "sys." not in refused.json()["error"]["message"]
        assert net.fake.heard == []


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        whole = json.dumps({"text": "x" * MAX_BODY}).encode()
        for headers in ({}, {"content-length": "9" * 5000}):
            refused = await net.post(f"/api/sessions/{id}/messages", content=whole, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_entity_too_large")


async def test_a_message_of_any_text_comes_through(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        text = "\u0000 é \ud83d\ude00 \r\n" + "x" * 100_000
        await net.say(id, text)
        await until(lambda: net.fake.heard)
        assert net.fake.heard[0].text == text.encode("utf-16", "surrogatepass").decode("utf-16")


async def test_only_an_admin_reaches_beyond_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "link").symlink_to(tmp_path)
    (tmp_path / "workspace" / "inside").mkdir()
    async with world(tmp_path) as net:
        id = await net.session()
        urls = ("file:///etc/passwd", "http://169.254.169.254/")
        for outside in ("/etc/passwd", "../secret", str(tmp_path / "secret"), "link/secret", "~/.ssh/id_rsa", *urls):
            body = {"text": "Look", "files": [outside]}
            assert (await net.post(f"/api/sessions/{id}/messages", body, "approver")).status_code == 403
            assert (await net.post(f"/api/sessions/{id}/messages", body, "admin")).status_code == 202
        assert await net.say(id, who="talker", files=["inside/a.txt", str(tmp_path / "workspace" / "b.txt")])
        for place, status in (("/", 403), (str(tmp_path), 403), (str(tmp_path / "workspace" / "inside"), 200)):
            made = await net.post("/api/sessions", {"agent": "fake", "workspace": place}, "talker")
            assert made.status_code == status
        assert (await net.post("/api/sessions", {"agent": "fake", "workspace": str(tmp_path)})).status_code == 200
        nowhere = await net.post("/api/sessions", {"agent": "fake", "workspace": str(tmp_path / "nowhere")})
        assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (400, "config")


async def test_more_files_than_anybody_sends_are_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        body = {"text": "x", "files": ["a"] * (MAX_FILES + 1)}
        assert (await net.post(f"/api/sessions/{id}/messages", body)).status_code == 400


async def test_what_is_the_exchanges_own_is_nobodys_to_name_though_it_is_in_a_workspace(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        own = net.exchange.settings.agents["fake"].replace(workspace=str(tmp_path))
        net.exchange.directory.take_up({"fake": own})
        id = await net.session()
        for path in ("exchange.db", str(tmp_path / "sessions")):
            found = await net.post(f"/api/sessions/{id}/messages", {"text": "x", "files": [path]}, "talker")
            assert found.status_code == 403, path
        found = await net.post("/api/sessions", {"agent": "fake", "workspace": str(tmp_path)}, "talker")
        assert found.status_code == 403
