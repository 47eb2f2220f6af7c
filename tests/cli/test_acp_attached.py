"""`trunkline acp --attach`: editors share the sessions of an exchange, with each other and with clients elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from tests.exchange.test_process import Running, running
from tests.support.acp_remote import HELLO, Editor, ask, browser, chosen, message, prompt, socket
from tests.support.attached import ASKING
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.process

FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "exchange"
[agents.e]
agent = "scripted:play.yaml"
[people.ana]
token_env = "ANA_TOKEN"
role = "approver"
"""


class Pipes:
    """The standard streams of a program, as a link."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, message: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(message.encode() + b"\n")
        await self.process.stdin.drain()

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            yield line


class AttachedEditor(Editor):
    """An editor whose agent is a program that is attached."""

    def __init__(self, pipes: Pipes) -> None:
        super().__init__(pipes)
        self.process = pipes.process

    async def leave(self) -> int:
        """Close its end; gives how the program ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def attached(home: Path) -> AsyncIterator[AttachedEditor]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "trunkline", "acp", "e", "--attach"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TRUNKLINE_HOME": str(home)},
    )
    try:
        made = AttachedEditor(Pipes(process))
        await made.request("initialize", HELLO, "hello")
        yield made
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Address:
    """Where clients elsewhere find the exchange."""

    def __init__(self, world: Running) -> None:
        self.url = f"{world.process.where}/acp"


async def test_two_editors_and_a_client_elsewhere_share_a_session_and_the_first_answer_wins(tmp_path: Path) -> None:
    (tmp_path / "play.yaml").write_text(ASKING)
    async with running(tmp_path, FILE) as world, AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(attached(tmp_path)) for _ in range(2)]
        talking = await stack.enter_async_context(socket(Address(world), "", authorization="Bearer ana's token"))
        three = Editor(talking)
        await three.request("initialize", HELLO, "hello")
        made = await one.request("session/new", {"cwd": str(tmp_path), "mcpServers": []}, 1)
        session = made["result"]["sessionId"]
        for other in (two, three):
            loaded = await other.request("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []}, 1)
            assert "error" not in loaded
        await one.send("session/prompt", prompt(session, "Go"), 2)
        everybody = (one, two, three)
        await until(lambda: all(each.questions for each in everybody))
        await three.reply(three.questions[0]["id"], chosen(three.questions[0]))
        # The others' questions are taken back, and their late answers change nothing.
        for other in (one, two):
            await until(lambda: any(each.get("method") == "$/cancel_request" for each in other.told))  # noqa: B023
            await other.reply(other.questions[0]["id"], chosen(other.questions[0], "reject_once"))
        await until(lambda: one.answer(2) is not None)
        assert one.answer(2)["result"]["stopReason"] == "end_turn"
        await until(lambda: all(each.text == "beforeafter" for each in everybody))
        for other in (two, three):
            assert [each["content"]["text"] for each in other.updates("user_message_chunk")] == ["Go"]
        # One that leaves does not take the session with it.
        assert await one.leave() == 0
        await two.send("session/prompt", prompt(session, "Again"), 3)
        await until(lambda: len(two.questions) == len(three.questions) == 2)
        await two.reply(two.questions[-1]["id"], chosen(two.questions[-1]))
        await until(lambda: two.answer(3) is not None)
        assert two.answer(3)["result"]["stopReason"] == "end_turn"
        assert (await world.ana.get(f"/api/sessions/{session}")).json()["agent"] == "e"
        assert await two.leave() == 0


async def test_everybody_hears_that_the_exchange_ends(tmp_path: Path) -> None:
    (tmp_path / "play.yaml").write_text(ASKING)
    token = {"authorization": "Bearer ana's token"}
    async with AsyncExitStack() as stack:
        async with running(tmp_path, FILE) as world:
            at = Address(world)
            talking = await stack.enter_async_context(socket(at, "", **token))
            await ask(talking, message("initialize", HELLO, 1))
            watching = await stack.enter_async_context(browser(at, **token))
            await watching.initialize()
            await watching.listen()
            editor = await stack.enter_async_context(attached(tmp_path))
            made = await editor.request("session/new", {"cwd": str(tmp_path), "mcpServers": []}, 1)
            await editor.send("session/prompt", prompt(made["result"]["sessionId"]), 2)
            await until(lambda: editor.questions)
        with pytest.raises(ConnectionClosed):
            await talking.recv()
        await until(watching.has_ended)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await editor.process.wait() == 1
