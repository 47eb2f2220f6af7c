"""The whole bridge in Telegram: people on one side, agents on the other, a Bot API over real HTTP between them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.fake_cli import install_fake
from tests.support.fake_dialogue import COMMAND
from tests.support.patience import PATIENCE_SECONDS
from tests.support.telegram_server import TelegramServer
from tests.support.telegram_world import MAX_UNITS
from trunkline.agents import registry
from trunkline.agents.script import load as load_script
from trunkline.agents.scripted import ScriptedAgent
from trunkline.base import config
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener
from trunkline.chat.senders import Senders
from trunkline.chat.settings import BridgeSettings
from trunkline.chat.telegram.platform import TelegramPlatform
from trunkline.core.agent import Agent
from trunkline.core.events import TextDelta, TurnEnded
from trunkline.core.usage import NOTHING_USED

ADA, STRANGER, GROUP = 7, 666, -10050
ENDED = TurnEnded("success", NOTHING_USED)


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is seen is the same; only the pace is not what Telegram would like.
    monkeypatch.setattr("trunkline.chat.telegram.platform.EDIT_SECONDS", 0.02)


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.world.chat(ADA)
        yield server


@pytest.fixture
def fake() -> FakeAgent:
    return FakeAgent()


@asynccontextmanager
async def bridge(server: TelegramServer, workspace: Path, agent: str, fake: FakeAgent) -> AsyncIterator[Bridge]:
    """A bridge that serves the server's bot, with a store that outlives it."""

    def make(spec: str, options: object) -> Agent:
        if spec == "tour":
            return ScriptedAgent(load_script("tour"))
        return fake if spec == "fake" else registry.make(spec, {})

    settings = BridgeSettings(
        agent=agent,
        agents={name: name for name in ("echo", "tour", "fake", agent)},
        workspace=str(workspace),
    )
    store = ChatStore()
    served = Bridge(
        TelegramPlatform(server.token, api_url=server.url),
        store,
        Opener(settings, make=make),
        Senders((f"telegram:{ADA}",), (), rate=settings.rate),
    )
    await served.start()
    serving = asyncio.create_task(served.serve())
    try:
        yield served
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await served.close()
        store.close()


def said(server: TelegramServer, chat: int = ADA) -> list[str]:
    return [message.text for message in server.world.said(chat)]


async def test_a_message_is_answered_where_it_was_written(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    async with bridge(server, tmp_path, "echo", fake):
        server.world.says(ADA, ADA, "**Hello** there")
        await server.until(lambda: said(server) == ["Hello there"])
        server.world.says(GROUP, ADA, "nobody asked you")
        asked = server.world.says(GROUP, ADA, "@trunk_bot hi")["message_id"]
        await server.until(lambda: said(server, GROUP) == ["hi"])
        assert server.world.said(GROUP)[0].replies_to == asked
    assert server.world.said(ADA)[0].styled("bold") == ["Hello"]
    assert (ADA, "typing") in server.world.actions


async def test_an_answer_grows_in_one_message(server: TelegramServer, tmp_path: Path, fake: FakeAgent) -> None:
    async with bridge(server, tmp_path, "fake", fake):
        server.world.says(ADA, ADA, "count")
        await server.until(lambda: server.world.actions and fake.busy)
        for text, shown in [("one **tw", "one **tw"), ("o**", "one two"), (" three", "one two three")]:
            fake.say(TextDelta(text))
            await server.until(lambda shown=shown: said(server) == [shown])  # type: ignore[misc]  # no type for `shown`
        fake.say(ENDED)
    [message] = server.world.said(ADA)
    assert message.edits >= 2
    assert message.styled("bold") == ["two"]


async def test_strangers_are_told_their_id_once_and_nothing_more(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    async with bridge(server, tmp_path, "echo", fake):
        server.world.says(STRANGER, STRANGER, "let me in")
        server.world.says(STRANGER, STRANGER, "let me in!")
        server.world.says(ADA, ADA, "done")
        await server.until(lambda: said(server) == ["done"])
        await server.until(lambda: said(server, STRANGER))
    [refusal] = server.world.said(STRANGER)
    assert refusal.styled("code") == [f"telegram:{STRANGER}"]


async def test_what_an_agent_asks_is_answered_with_buttons(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    async with bridge(server, tmp_path, "tour", fake):
        server.world.says(ADA, ADA, "create hello.py")
        await server.until(lambda: any(message.buttons for message in server.world.said(ADA)))
        question = next(message for message in server.world.said(ADA) if message.buttons)
        assert {"Approve", "Deny"} <= set(question.buttons)
        server.world.presses(ADA, STRANGER, "Approve")
        query = server.world.presses(ADA, ADA, "Deny")
        await server.until(lambda: any("Then I leave it" in text for text in said(server)))
        await server.until(lambda: query in server.world.answered)
        await server.until(lambda: not any(message.buttons for message in server.world.said(ADA)))
    settled = next(message for message in server.world.said(ADA) if message.id == question.id)
    assert "denied" in settled.text.lower()


@pytest.mark.process
@pytest.mark.parametrize("name", ["claude-code", "codex"])
async def test_what_a_program_of_the_hub_asks_is_answered_with_the_same_buttons(
    name: str, server: TelegramServer, tmp_path: Path, fake: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake(tmp_path, name)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    async def press(button: str, expected: str) -> str:
        await server.until(lambda: any(message.buttons for message in server.world.said(ADA)))
        question = next(message for message in server.world.said(ADA) if message.buttons)
        assert {"Approve", "Always (exec)", "Deny"} <= set(question.buttons)
        server.world.presses(ADA, ADA, button)
        await server.until(lambda: any(expected in text for text in said(server)))
        await server.until(lambda: not any(message.buttons for message in server.world.said(ADA)))
        return question.text

    async with bridge(server, tmp_path, f"agentproc:{name}", fake):
        server.world.says(ADA, ADA, "ask")
        assert COMMAND in await press("Deny", "You said: denied")
        server.world.says(ADA, ADA, "ask twice")
        assert COMMAND in await press("Always (exec)", "You said: allowed, allowed")
        server.world.says(ADA, ADA, "ask edit")
        await server.until(lambda: any(message.buttons for message in server.world.said(ADA)))
        server.world.says(ADA, ADA, "/stop")
        await server.until(lambda: not any(message.buttons for message in server.world.said(ADA)))
        server.world.says(ADA, ADA, "still there?")
        await server.until(lambda: any("You said: still there?" in text for text in said(server)))


async def test_stop_ends_the_answer_and_the_bridge_goes_on(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    async with bridge(server, tmp_path, "fake", fake):
        server.world.says(ADA, ADA, "go on for ever")
        await server.until(lambda: server.world.actions and fake.busy)
        fake.say(TextDelta("on and on"))
        await server.until(lambda: said(server) == ["on and on"])
        server.world.says(ADA, ADA, "/stop")
        await server.until(lambda: any("(stopped)" in text for text in said(server)))
        server.world.says(ADA, ADA, "/agent echo")
        server.world.says(ADA, ADA, "still there?")
        await server.until(lambda: "still there?" in said(server))


async def test_a_long_answer_with_code_is_split_and_each_part_shows_code(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    lines = [f"print({number}) # 😀" for number in range(900)]
    code = "Look:\n```python\n" + "\n".join(lines) + "\n```\nThat is all."
    async with bridge(server, tmp_path, "fake", fake):
        server.world.says(ADA, ADA, "a long program")
        await server.until(lambda: server.world.actions and fake.busy)
        fake.say(*(TextDelta(code[start : start + 500]) for start in range(0, len(code), 500)), ENDED)
        await server.until(lambda: said(server) and said(server)[-1].endswith("That is all."))
    messages = server.world.said(ADA)
    assert len(messages) > 3
    assert all(len(message.text.encode("utf-16-le")) // 2 <= MAX_UNITS for message in messages)
    shown = [line for message in messages for part in message.styled("pre") for line in part.split("\n")]
    assert shown == lines
    languages = {entity["language"] for message in messages for entity in message.entities}
    assert languages == {"python"}


async def test_files_go_both_ways(server: TelegramServer, tmp_path: Path, fake: FakeAgent) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
    (tmp_path / "chart.png").write_bytes(picture)
    async with bridge(server, tmp_path, "fake", fake):
        server.world.says(ADA, ADA, "what is it?", files={"document": ("../notes.txt", b"some notes")})
        await server.until(lambda: server.world.actions and fake.busy)
        [message] = fake.heard
        assert message.text == "what is it?"
        assert Path(message.files[0]).read_bytes() == b"some notes"  # noqa: ASYNC240
        fake.say(TextDelta("See ![the chart](chart.png)"), ENDED)
        await server.until(lambda: any(message.file for message in server.world.said(ADA)))
    [shown] = [message.file for message in server.world.said(ADA) if message.file]
    assert server.world.files[shown[-1]["file_id"]] == picture


@pytest.mark.slow
async def test_throttling_delays_an_answer_and_loses_nothing(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    server.fail("sendMessage", 429, "Too Many Requests: retry after 1", retry_after=1)
    async with bridge(server, tmp_path, "echo", fake):
        server.world.says(ADA, ADA, "patience")
        await server.until(lambda: said(server) == ["patience"])


async def test_what_was_written_while_the_bridge_was_away_is_answered_once(
    server: TelegramServer, tmp_path: Path, fake: FakeAgent
) -> None:
    async with bridge(server, tmp_path, "echo", fake):
        server.world.says(ADA, ADA, "one")
        await server.until(lambda: said(server) == ["one"])
    server.world.says(ADA, ADA, "two")
    async with bridge(server, tmp_path, "echo", fake):
        await server.until(lambda: said(server) == ["one", "two"])
        server.world.says(ADA, ADA, "three")
        await server.until(lambda: "three" in said(server))
    # An answer can be read before its turn is over; whoever writes by then is told to wait, and answered, too.
    assert [text for text in said(server) if "is waiting" not in text] == ["one", "two", "three"]


def interrupted(server: TelegramServer) -> bool:
    return any("interrupted" in message.text and message.buttons for message in server.world.said(ADA))


@contextmanager
def settings_file(server: TelegramServer) -> Iterator[None]:
    """The user's configuration for a bridge in a process of its own."""
    path = Path(config.user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'[bridge]\nagent = "echo"\nallow = ["telegram:{ADA}"]\n[bridge.agents]\necho = "echo"\n'
        f'[bridge.telegram]\ntoken = "{server.token}"\napi_url = "{server.url}"\n'
    )
    path.chmod(0o600)
    yield


@asynccontextmanager
async def process(log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """`trunkline bridge run telegram`, killed at the end of the block. What it says goes to the log."""
    with log.open("ab") as stderr:
        started = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trunkline", "bridge", "run", "telegram",
            stdin=asyncio.subprocess.DEVNULL, stdout=stderr, stderr=stderr, cwd=log.parent,
        )  # fmt: skip
    try:
        yield started
    finally:
        if started.returncode is None:
            os.kill(started.pid, signal.SIGKILL)
        await started.wait()


@pytest.mark.process
async def test_a_bridge_that_is_killed_as_it_sends_neither_loses_nor_doubles_an_answer(
    server: TelegramServer, tmp_path: Path
) -> None:
    log = tmp_path / "bridge.log"
    with settings_file(server):
        async with process(log):
            server.world.says(ADA, ADA, "one")
            await server.until(lambda: said(server) == ["one"])
            # The next answer arrives, and the bridge never hears of it.
            server.hold("sendMessage")
            server.world.says(ADA, ADA, "two")
            await server.until(lambda: "two" in said(server))
            server.world.says(ADA, ADA, "three")
            await server.until(lambda: not server.world.updates)
        server.release("sendMessage")
        server.world.says(ADA, ADA, "four")
        async with process(log) as second:
            await server.until(lambda: "four" in said(server) and ("three" in said(server) or interrupted(server)))
            if interrupted(server):
                # Its answer had begun: it is not asked again unless somebody says so.
                server.world.presses(ADA, ADA, "Ask again")
            await server.until(lambda: "three" in said(server))
            second.terminate()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await second.wait() == 128 + signal.SIGTERM
    texts = said(server)
    assert [texts.count(text) for text in ("one", "two", "three", "four")] == [1, 1, 1, 1], texts
    written = log.read_text()
    assert re.search("Serving telegram", written)
    assert server.token not in written
