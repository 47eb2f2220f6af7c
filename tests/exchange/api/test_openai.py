"""OpenAI's HTTP on an exchange: its people, its sessions, its approvals, its budgets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import BROKEN, FAKE, World, token, world
from tests.support.loop import until
from tests.support.openai_world import Caller, error_of
from trunkline.core import events as core
from trunkline.core.usage import Usage
from trunkline.exchange.settings import AgentBudget
from trunkline.store.database import DatabaseGone

HELLO = [{"role": "user", "content": "Hello there"}]
ASKED = core.ToolRequested("c1", "Bash", "exec", {"command": "ls"}, "Run ls")


async def chat(net: World, who: str | None = "talker", model: str = "echo", **more: Any) -> Any:
    headers: Mapping[str, str] = {"content-type": "application/json", **more.pop("headers", {})}
    return await net.post("/v1/chat/completions", {"model": model, "messages": HELLO, **more}, who, headers=headers)


async def respond(net: World, input: str, who: str = "talker", model: str = "echo", **more: Any) -> Any:
    headers = {"content-type": "application/json"}
    return await net.post("/v1/responses", {"model": model, "input": input, **more}, who, headers=headers)


def call(net: World, path: str, body: Mapping[str, Any], who: str = "talker") -> Caller:
    headers = {"authorization": f"Bearer {token(who)}", "host": "127.0.0.1:4400"}
    return Caller(net.app, f"/v1/{path}", body, headers)


async def sessions(net: World) -> list[str]:
    return [each["id"] for each in (await net.get("/api/sessions")).json()["sessions"]]


async def test_every_agent_is_a_model_and_then_come_the_models_of_this_machine(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = (await net.get("/v1/models", "observer")).json()["data"]
        names = [each["id"] for each in found]
        assert names[:3] == [FAKE, "echo", BROKEN]
        assert "model:mock" in names
        assert all(name.startswith("model:") for name in names[3:])


async def test_people_need_their_token_and_a_role_that_may_talk(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert error_of(await chat(net, None), 401)["code"] == "invalid_api_key"
        assert error_of(await net.get("/v1/models", None), 401)["code"] == "invalid_api_key"
        assert error_of(await chat(net, "observer"), 403)["code"] == "insufficient_permissions"
        for who in ("talker", "approver", "admin"):
            assert (await chat(net, who)).json()["choices"][0]["message"]["content"] == "Hello there"


async def test_pages_from_elsewhere_are_refused_in_openais_form(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
            error_of(await chat(net, headers=headers), 403)


async def test_a_stateless_turn_leaves_no_session_behind(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert "x-trunkline-session" not in (await chat(net)).headers
        assert await sessions(net) == []
        assert (await respond(net, "Hello", store=False)).json()["status"] == "completed"
        assert await sessions(net) == []


async def test_one_session_id_is_the_same_everywhere(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await respond(net, "One", conversation="mine")).json()["id"] == "resp_1_mine"
        assert (await chat(net, headers={"X-Trunkline-Session": "mine"})).headers["x-trunkline-session"] == "mine"
        assert await net.say("mine", "Three") == 3
        assert await sessions(net) == ["mine"]
        later = await respond(net, "Four", previous_response_id="resp_3_mine")
        assert later.json()["id"] == "resp_4_mine"
        begun = await net.session("echo", session_id="theirs")
        assert (await respond(net, "One", conversation=begun)).json()["conversation"] == {"id": "theirs"}
        error_of(await respond(net, "One", model=FAKE, conversation="theirs"), 409)
        error_of(await respond(net, "One", conversation="a/b"), 400)


async def test_a_session_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        one = (await respond(net, "One")).json()
    async with world(tmp_path) as net:
        two = (await respond(net, "Two", previous_response_id=one["id"])).json()
        assert two["conversation"] == one["conversation"]
        assert two["id"].startswith("resp_2_")
        again = (await net.get(f"/v1/responses/{one['id']}", "talker")).json()
        assert again["output"][0]["content"][0]["text"] == "One"


async def test_what_waits_for_approval_waits_for_anybody_else_and_the_stream_goes_on(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        caller = call(net, "chat/completions", {"model": FAKE, "messages": HELLO, "stream": True})
        await until(lambda: net.fakes and net.fake.busy)
        net.fake.say(ASKED)
        await until(lambda: "Waiting for approval: Bash: Run ls" in caller.text)
        (waiting,) = (await net.get("/api/approvals", "approver")).json()["approvals"]
        answered = await net.post(f"/api/approvals/{waiting['id']}", {"decision": "approve"}, "approver")
        assert answered.status_code == 200, answered.text
        await until(lambda: net.fake.decisions)
        net.fake.say(core.ToolStarted("c1", "Bash"), core.ToolFinished("c1", "Bash", "success", "x"))
        net.fake.say(core.TextDelta("Done."), core.TurnEnded("success", Usage(3, 2)))
        await caller.whole()
        assert "Approved by approver." in caller.text
        assert caller.events[-1] is None


async def test_a_client_that_leaves_stops_its_own_turn_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        first = call(net, "responses", {"model": FAKE, "input": "One", "conversation": "s1", "stream": True})
        await until(lambda: net.fakes and net.fake.busy)
        second = call(net, "responses", {"model": FAKE, "input": "Two", "conversation": "s1", "stream": True}, "admin")
        await until(lambda: "response.created" in second.text)
        await second.leave()
        net.fake.say(core.TextDelta("Hello"), core.TurnEnded("success"))
        await first.whole()
        assert '"status":"completed"' in first.text
        third = call(net, "chat/completions", {"model": FAKE, "messages": HELLO})
        await until(lambda: len(net.fake.heard) == 2 and net.fake.busy)
        await third.leave()
        assert await sessions(net) == ["s1"]


async def test_a_spent_budget_is_429_with_the_time_to_try_again(tmp_path: Path) -> None:
    async with world(tmp_path, budget=AgentBudget(turns_per_hour=1)) as net:
        assert (await chat(net)).status_code == 200
        refused = await chat(net)
        assert error_of(refused, 429)["code"] == "insufficient_quota"
        assert int(refused.headers["retry-after"]) > 0


async def test_an_agent_that_cannot_be_made_is_5xx_and_an_unknown_one_404(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert "It lacks a key." in error_of(await chat(net, model=BROKEN), 500)["message"]
        assert error_of(await chat(net, model="nobody"), 404)["code"] == "model_not_found"
        error_of(await net.get("/v1/nothing"), 404)


@pytest.mark.parametrize("who", ["observer", "talker", "admin"])
async def test_whoever_may_talk_may_follow_an_older_response_and_only_an_admin_forget_a_session(
    tmp_path: Path, who: str
) -> None:
    async with world(tmp_path) as net:
        await respond(net, "One", conversation="s1")
        await respond(net, "Two", conversation="s1")
        fork = await respond(net, "Three", who, previous_response_id="resp_1_s1")
        if who == "observer":
            error_of(fork, 403)
        else:
            assert fork.status_code == 200, fork.text
            assert fork.json()["conversation"]["id"] != "s1"
        forgotten = await net.ask("DELETE", "/v1/conversations/s1", who=who)
        assert forgotten.status_code == (200 if who == "admin" else 403)


async def test_a_database_that_does_not_answer_is_a_503_in_openais_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as net:

        async def gone(*args: object, **kwargs: object) -> None:
            raise DatabaseGone("the disk is gone")

        for name in ("open", "submit"):
            with monkeypatch.context() as patch:
                patch.setattr(net.exchange.switchboard, name, gone)
                for refused in (await chat(net), await respond(net, "One", conversation="s1")):
                    assert error_of(refused, 503)["code"] == "unavailable"
                    assert refused.headers["retry-after"] == "5"
                    assert "x-should-retry" not in refused.headers


async def test_a_picture_is_a_file_of_the_session(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        body = {"model": FAKE, "messages": [{"role": "user", "content": [part]}]}
        caller = call(net, "chat/completions", body)
        await until(lambda: net.fakes and net.fake.busy)
        (path,) = net.fake.heard[0].files
        assert path.endswith(".png")
        net.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert caller.status == 200


async def test_a_plain_model_answers_without_a_section_in_the_file(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = await chat(net, model="model:mock")
        assert found.status_code == 200, found.text
        assert found.json()["choices"][0]["message"]["content"]


async def test_an_exchange_that_stops_ends_its_streams_and_keeps_what_waits(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        body = {"model": FAKE, "input": "One", "conversation": "s1", "stream": True}
        caller = call(net, "responses", body)
        await until(lambda: net.fakes and net.fake.busy)
        net.app.state.faces.end()
        await caller.whole()
        assert caller.ended
        assert "The server is stopping" in caller.text
        error_of(await chat(net), 503)
