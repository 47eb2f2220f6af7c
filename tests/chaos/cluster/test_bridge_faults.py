"""A chat account served by a real cluster whose nodes are killed and suspended: every message is answered once, or its
writer is told that nobody knows."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.cluster.agent import DONE
from tests.chaos.cluster.history import read_done
from tests.support.cluster_process import ClusterProcesses, NodeProcess, cluster
from tests.support.telegram_server import TelegramServer
from trunkline.store.jetstream.stream import LEASE_SECONDS

CHATS = (7, 8, 9)
MESSAGES = 25


def settings(server: TelegramServer) -> str:
    allow = ", ".join(f'"telegram:{chat}"' for chat in CHATS)
    return f"""[agents.worker]
agent = "tests.chaos.cluster.agent:worker"
workspace = "."

[wires.telegram]
token_env = "TELEGRAM_TOKEN"
api_url = "{server.url}"
allow = [{allow}]
verbosity = "quiet"
"""


def serving(nodes: ClusterProcesses) -> NodeProcess:
    """The node that has said so last."""
    found: dict[str, str] = {}
    for name, node in nodes.items():
        lines = (node.directory / "log").read_text(errors="replace").splitlines()
        found[name] = max((line for line in lines if "serves telegram now" in line), default="")
    return nodes[max(found, key=lambda name: found[name])]


async def write(server: TelegramServer, chance: random.Random) -> None:
    """People write, more often than an answer takes."""
    for number in range(MESSAGES):
        for chat in CHATS:
            server.world.says(chat=chat, sender=chat, text=f"sleep {chance.uniform(0, 0.8):.2f}; say {chat}n{number}")
        await asyncio.sleep(chance.uniform(0.5, 1.5))


async def harm(node: NodeProcess, number: int) -> None:
    """Kill a node, suspend it for longer than its lease lasts, or end it; it is there again afterwards."""
    if number == signal.SIGSTOP:
        assert node.process is not None
        node.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2 * LEASE_SECONDS)
        node.process.send_signal(signal.SIGCONT)
        return
    await asyncio.to_thread(node.stop, number)
    node.start()
    await asyncio.to_thread(node.wait)


def texts(server: TelegramServer, chat: int) -> list[str]:
    return [shown.text for shown in server.world.said(chat)]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_nothing_is_doubled_or_lost_in_chats_whatever_happens_to_the_node_that_serves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tmp_path / "done"
    monkeypatch.setenv(DONE, str(done))
    monkeypatch.setenv("TELEGRAM_TOKEN", TelegramServer().token)
    async with TelegramServer() as server, AsyncExitStack() as stack:
        manager = cluster(tmp_path, settings(server))
        nodes = await asyncio.to_thread(manager.__enter__)
        # In a thread: while nodes end, they still ask the server, which is in this loop.
        stack.push_async_callback(asyncio.to_thread, manager.__exit__, None, None, None)
        writing = asyncio.create_task(write(server, random.Random(3)))
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            await asyncio.sleep(4)
            await harm(serving(nodes), number)
        await writing
        for chat in CHATS:
            server.world.says(chat=chat, sender=chat, text="say last")
        for chat in CHATS:
            await server.until(partial(lambda chat: "last" in texts(server, chat), chat))
    turns = Counter(deed for deed in read_done(done) if deed[0] == "turn")
    assert max(turns.values()) == 1, turns
    for chat in CHATS:
        found = Counter(texts(server, chat))
        answers = [f"{chat}n{number}" for number in range(MESSAGES)]
        assert max(found[answer] for answer in answers) == 1, found
        missing = [answer for answer in answers if not found[answer]]
        notices = [text for text in texts(server, chat) if text not in answers and text != "last"]
        # Of each that has no answer its writer has heard.
        assert len(missing) <= len(notices), (missing, notices)
        assert len(missing) < MESSAGES / 2, missing
