"""`/acp`: the exchange's sessions for ACP's clients elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.exchange.api_world import World, token, world
from tests.support.acp_remote import HELLO, Editor, ask, browser, chosen, message, prompt, socket
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.core.agent import Approve
from trunkline.core.events import TextDelta, ToolFinished, ToolRequested, TurnEnded
from trunkline.exchange.api.faces import MAX_FRAME
from trunkline.exchange.people import People
from trunkline.wires.acp import remote

REQUEST = ToolRequested("c1", "Bash", "exec", {"command": "make"}, "make it")


class Exchange:
    """An exchange at its address."""

    def __init__(self, net: World, url: str) -> None:
        self.net = net
        self.url = url


@asynccontextmanager
async def reachable(home: Path, **more: Any) -> AsyncIterator[Exchange]:
    async with world(home, **more) as net:
        stop = asyncio.Event()
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def begun(host: str, port: int) -> None:
            found.set_result(f"http://{host}:{port}/acp")

        serving = asyncio.create_task(
            asgi.serve(net.app, "127.0.0.1", 0, stop, begun, stopping=net.app.state.faces.end, websockets=MAX_FRAME)
        )
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield Exchange(net, await found)
        finally:
            stop.set()
            await serving
            await net.app.state.faces.ended()


def bearer(who: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token(who)}"}


@asynccontextmanager
async def editor(at: Exchange, who: str = "admin", query: str = "?agent=fake") -> AsyncIterator[Editor]:
    async with socket(at, query, **bearer(who)) as talking:
        made = Editor(talking)
        await made.request("initialize", HELLO, "hello")
        yield made


async def opened(client: Editor) -> str:
    made = await client.request("session/new", {"cwd": "/", "mcpServers": []}, "new")
    return str(made["result"]["sessionId"])


async def test_a_session_has_one_id_everywhere(tmp_path: Path) -> None:
    async with reachable(tmp_path) as at, editor(at) as client:
        session = await opened(client)
        assert (await at.net.get(f"/api/sessions/{session}")).json()["agent"] == "fake"
        other = await at.net.session("fake")
        loaded = await client.request("session/load", {"sessionId": other, "cwd": "/", "mcpServers": []}, 2)
        assert "error" not in loaded
        unknown = await client.request("session/load", {"sessionId": "none", "cwd": "/", "mcpServers": []}, 3)
        assert unknown["error"]["code"] == -32002


async def test_two_editors_in_one_session_see_all_and_the_first_answer_wins(tmp_path: Path) -> None:
    async with reachable(tmp_path) as at, editor(at) as one, editor(at, "approver") as two:
        async with browser(at, **bearer("observer")) as watching:
            session = await opened(one)
            loading = {"sessionId": session, "cwd": "/", "mcpServers": []}
            await two.request("session/load", loading, 1)
            await watching.initialize()
            await watching.listen()
            await watching.post("session/load", loading, 1)
            await until(lambda: watching.told[""])
            await watching.listen(session)
            await one.send("session/prompt", prompt(session, "Go"), "p")
            await until(lambda: at.net.fake.busy)
            at.net.fake.say(TextDelta("before"), REQUEST)
            await until(lambda: one.questions and two.questions)
            await two.reply(two.questions[0]["id"], chosen(two.questions[0]))
            await until(lambda: at.net.fake.decisions == [("c1", Approve())])
            # The other one's question is taken back, and what it answers nevertheless changes nothing.
            await until(lambda: any(each.get("method") == "$/cancel_request" for each in one.told))
            await one.reply(one.questions[0]["id"], chosen(one.questions[0], "reject_once"))
            at.net.fake.say(ToolFinished("c1", "Bash", "success", "made"), TextDelta("after"), TurnEnded("success"))
            await until(lambda: one.answer("p") is not None)
            assert one.answer("p")["result"]["stopReason"] == "end_turn"
            await until(lambda: two.text == "beforeafter")
            assert one.text == "beforeafter"
            # Everybody sees what the other one has said; an observer sees all, and is asked nothing.
            assert [each["content"]["text"] for each in two.updates("user_message_chunk")] == ["Go"]
            await until(lambda: "after" in str(watching.told[session]))
            assert "request_permission" not in str(watching.told)
            assert at.net.fake.decisions == [("c1", Approve())]


async def test_what_a_role_does_not_allow_is_refused(tmp_path: Path) -> None:
    async with reachable(tmp_path) as at, editor(at, "observer") as client, editor(at, "talker") as talker:
        refused = await client.request("session/new", {"cwd": "/", "mcpServers": []}, 1)
        assert "needs the role" in refused["error"]["message"]
        session = await opened(talker)
        await talker.send("session/prompt", prompt(session), "p")
        await until(lambda: at.net.fake.busy)
        at.net.fake.say(REQUEST)
        await until(lambda: talker.updates("tool_call"))
        assert not talker.questions
        mode = await talker.request("session/set_mode", {"sessionId": session, "modeId": "yolo"}, 2)
        assert "needs the role" in mode["error"]["message"]


async def test_only_an_admin_hands_in_servers_of_tools_which_are_programs_here(tmp_path: Path) -> None:
    server = {"name": "tools", "command": str(tmp_path / "program"), "args": [], "env": []}
    async with reachable(tmp_path) as at:
        for who, changes in (("talker", 0), ("admin", 1)):
            async with editor(at, who) as client:
                await client.request("session/new", {"cwd": "/", "mcpServers": [server]}, 1)
                assert len(at.net.fake.changes) == changes
                if not changes:
                    await until(lambda: "needs the role `admin`" in client.text)


async def test_a_client_that_leaves_is_asked_no_more_and_its_session_goes_on(tmp_path: Path) -> None:
    async with reachable(tmp_path) as at:
        async with editor(at) as client:
            session = await opened(client)
            await client.send("session/prompt", prompt(session), "p")
            await until(lambda: at.net.fake.busy)
            at.net.fake.say(REQUEST)
            await until(lambda: client.questions)
        live = at.net.exchange.switchboard.live(session)
        assert live is not None
        await until(lambda: not live.clients)
        assert [each.call_id for each in live.session.waiting] == ["c1"]
        async with editor(at) as again:
            await again.request("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []}, 1)
            await until(lambda: again.questions)
            await again.reply(again.questions[0]["id"], chosen(again.questions[0]))
            await until(lambda: at.net.fake.decisions)


async def test_nobody_comes_in_without_a_token_nor_a_page_from_elsewhere(tmp_path: Path) -> None:
    async with reachable(tmp_path) as at:
        for headers, status in (
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({"origin": "https://elsewhere.example", **bearer("admin")}, 403),
            ({"host": "elsewhere.example", **bearer("admin")}, 403),
        ):
            with pytest.raises(InvalidStatus) as refused:
                async with socket(at, "", **headers):
                    pass
            assert refused.value.response.status_code == status
            async with browser(at, **headers) as client:
                assert (await client.initialize()).status_code == status
        async with browser(at, **bearer("admin")) as client:
            refusal = await client.initialize("?agent=nobody")
            assert refusal.status_code == 404
            assert "nobody" in refusal.json()["error"]["message"]


async def test_a_token_that_counts_no_more_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "KEEPALIVE_SECONDS", 0.01)
    async with reachable(tmp_path) as at, socket(at, "", **bearer("talker")) as talking:
        await ask(talking, message("initialize", HELLO, 1))
        at.net.exchange.people = People(())
        with pytest.raises(ConnectionClosed):
            await talking.recv()
