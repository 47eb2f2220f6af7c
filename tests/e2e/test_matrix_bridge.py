"""The whole bridge in a room on a real homeserver, as its owner starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support.mcp_environment import INSTALL_SECONDS
from tests.support.synapse import Person, Server, homeserver
from trunkline.base.config import user_file
from trunkline.base.process import Child, spawn

# The first run makes the environment.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

STOP_SECONDS = 15.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require("matrix-nio", find_spec("nio") is not None, "pip install -e '.[matrix]'")
    with homeserver(tmp_path_factory.mktemp("synapse")) as made:
        yield made


@contextmanager
def bridge(bot: Person, friend: Person, workspace: Path) -> Iterator[Child]:
    command = [sys.executable, "-m", "trunkline", "bridge", "run", "matrix", "--agent", "echo"]
    arguments = ["--allow", f"matrix:{friend.id}", "--workspace", str(workspace)]
    environ = {**os.environ, "MATRIX_TOKEN": bot.token}
    with spawn([*command, *arguments], env=environ, stdout="null", stderr="inherit") as child:
        yield child


def configure(server: Server) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'[bridge.matrix]\nhomeserver = "{server.url}"\n')


async def ended(child: Child) -> int:
    return await asyncio.to_thread(child.wait, STOP_SECONDS)


def _body(event: dict[str, Any]) -> str:
    content = event["content"]
    return str(content.get("m.new_content", content).get("body", ""))


async def test_an_echo_in_a_room_answers_each_message_once_whatever_happens_to_its_bridge(
    server: Server, tmp_path: Path
) -> None:
    configure(server)
    async with await server.person("ann") as ann, await server.person("bot") as bot:
        room = await ann.make_room(bot.id)

        said = ["one **bold** word", "two", "while it was away"]

        async def echo(text: str) -> None:
            await ann.hear(room, lambda event: event["sender"] == bot.id and text in _body(event))

        with bridge(bot, ann, tmp_path) as child:
            for text in said[:2]:
                await ann.say(room, text)
                await echo(text)
            os.kill(child.pid, signal.SIGKILL)
            await ended(child)
        await ann.say(room, said[2])
        with bridge(bot, ann, tmp_path) as child:
            await echo(said[2])
            await ann.say(room, "/status")
            await echo("`echo`")
            os.kill(child.pid, signal.SIGTERM)
            assert await ended(child) == 128 + signal.SIGTERM
        shown = await ann.shown(room, bot.id)
    assert [text for text in shown if text in said] == said


async def test_a_stranger_in_the_room_is_refused_by_name(server: Server, tmp_path: Path) -> None:
    configure(server)
    async with (
        await server.person("ann") as ann,
        await server.person("eve") as eve,
        await server.person("bot") as bot,
    ):
        room = await ann.make_room(bot.id, eve.id)
        await eve.join(room)
        with bridge(bot, ann, tmp_path):
            await eve.say(room, "rm -rf /")
            refusal = await eve.hear(room, lambda event: event["sender"] == bot.id and "body" in event["content"])
    assert f"matrix:{eve.id}" in refusal["content"]["body"]
