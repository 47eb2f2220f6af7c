"""A network that is killed under load, again and again: what was acknowledged is there, and nothing by half."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.network.world import world
from tests.support.killed_writer import lines_until_killed
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.network.open_database import open_database
from trunkline.store.database import Row
from trunkline.wires.sns.drive import Sns, SnsError

ROUNDS = 5
#: Of a whole server, which takes a second to start.
SERVER_ROUNDS = 3
RUNNERS = 8

#: Many callers write at once, two rows each; the name of a pair is reported once its write was acknowledged.
WRITER = """
import asyncio, os, sys
from trunkline.network.ids import new_id
from trunkline.network.open_database import open_database

SET = "INSERT INTO policy_setting (name, value, updated_at) VALUES (?, ?, 0)"

async def caller(database):
    while True:
        name = new_id()
        def work(tx):
            tx.execute(SET, (name + "-1", "x" * 500))
            tx.execute(SET, (name + "-2", "x" * 500))
        await database.write(work)
        os.write(1, name.encode() + b"\\n")

async def main():
    database = await open_database(sys.argv[1])
    await asyncio.gather(*(caller(database) for _ in range(32)))

asyncio.run(main())
"""

SERVER = "from trunkline.cli.network import command; command()"


@pytest.mark.process
@pytest.mark.timeout(ROUNDS * PATIENCE_SECONDS)
async def test_every_acknowledged_write_survives_kill_9_and_no_work_is_kept_by_half(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/network.db"
    chance = random.Random(20_251_115)
    acknowledged: set[str] = set()
    for _ in range(ROUNDS):
        acknowledged |= await asyncio.to_thread(_write_until_killed, url, chance.randrange(1, 1500))
        database = await open_database(url)
        rows: list[Row] = await database.read(lambda tx: tx.all("SELECT name FROM policy_setting"))
        await database.close()
        names = {row["name"] for row in rows}
        first, second = ({name[:-2] for name in names if name.endswith(half)} for half in ("-1", "-2"))
        assert first == second
        assert acknowledged <= first
    assert len(acknowledged) > ROUNDS


def _write_until_killed(url: str, reports: int) -> set[str]:
    """All writes that were reported."""
    return set(lines_until_killed([sys.executable, "-c", WRITER, url], reports))


@pytest.mark.process
@pytest.mark.timeout(SERVER_ROUNDS * PATIENCE_SECONDS)
async def test_comments_that_a_server_acknowledged_survive_its_kill_9_and_runners_go_on_with_the_next_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "network.db"
    agent, token, thread = await _populated(path)
    chance = random.Random(20_251_115)
    acknowledged: set[str] = set()
    port = free_port()
    for _ in range(SERVER_ROUNDS):
        with _server(path, port) as process:
            runners = [Sns(f"http://127.0.0.1:{port}", agent, token, timeout=PATIENCE_SECONDS) for _ in range(RUNNERS)]
            enough = chance.randrange(20, 150)
            heard = await _comment_until_killed(process, runners, thread, enough)
            assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        assert len(heard) >= enough
        acknowledged |= heard
        bodies, counted = _written(path)
        assert acknowledged <= set(bodies)
        assert counted == len(bodies) == len(set(bodies))


async def _comment_until_killed(
    process: subprocess.Popen[bytes], runners: list[Sns], thread: str, enough: int
) -> set[str]:
    """Let the runners write until enough was acknowledged, kill the server meanwhile, and give what it acknowledged."""
    acknowledged: set[str] = set()

    async def write(sns: Sns) -> None:
        for _ in range(enough + 1):
            body = uuid4().hex
            try:
                await sns.comment(thread, body)
            except SnsError:
                return
            acknowledged.add(body)
            if len(acknowledged) >= enough:
                process.kill()

    await asyncio.gather(*map(write, runners))
    await asyncio.gather(*(sns.close() for sns in runners))
    return acknowledged


async def _populated(path: Path) -> tuple[str, str, str]:
    """A network with an agent and a thread: the agent's id and token, and the thread's id."""
    database = await open_database(f"sqlite:///{path}")
    async with world(database) as network:
        community = await network.community()
        runner = await network.agent(community)
        thread = await runner.thread(community)
    await database.close()
    return runner.id, runner.token, thread["id"]


@contextmanager
def _server(path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A real server, ready for requests."""
    command = [sys.executable, "-c", SERVER, "serve", "--db", f"sqlite:///{path}", "--listen", f"127.0.0.1:{port}"]
    environ = os.environ | {"TRUNKLINE_NETWORK_RATE_LIMIT": "off"}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE) as process:
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        try:
            assert process.stderr is not None
            ready = process.stderr.readline().decode()
            assert "ready" in ready, ready
            yield process
        finally:
            patience.cancel()
            process.kill()


def _written(path: Path) -> tuple[list[str], int]:
    """The bodies of all comments in a file that no server has open, and how many the thread says that it has."""
    with closing(sqlite3.connect(path)) as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM comment")]
        return bodies, connection.execute("SELECT sum(comment_count) FROM thread").fetchone()[0]
