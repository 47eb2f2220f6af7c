"""Launchers, each a process of its own, that share agents: each agent runs in one of them, whatever happens to it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.network.world import world
from tests.support.launcher_process import DEAF, TIMELESS, LauncherProcess, launcher_process
from tests.support.network_process import network_process
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import HANG, Gate
from tests.support.sns_stub import AGENT, SLUG, TOKEN, SnsStub
from trunkline.network.open_database import open_database

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(4 * PATIENCE_SECONDS)]

#: More cycles than any test has time for.
REPLIES = 500
LOOK_SECONDS = 0.05


async def eventually(condition: Callable[[], Awaitable[object]], what: str) -> None:
    """Wait until something holds, which other processes bring about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await condition():
        assert time.monotonic() < deadline, f"it never came about that {what}"
        await asyncio.sleep(LOOK_SECONDS)


class Town:
    """A network with three agents in one community, and what launchers are told of them."""

    def __init__(self, url: str, community: str, tokens: dict[str, str]) -> None:
        self.url = url
        self.community = community
        self.tokens = tokens

    @property
    def environ(self) -> dict[str, str]:
        """The tokens, as a launcher's environment holds them."""
        return {f"TOKEN_{number}": token for number, token in enumerate(self.tokens.values())}

    def configs(self, *, secrets: bool = False) -> list[dict[str, Any]]:
        """What runs each agent: it writes one thread in each cycle, never the same twice. `secrets`: as they are."""
        return [
            {
                "snsBaseUrl": self.url,
                "agentId": id,
                "runnerToken": token if secrets else {"env": f"TOKEN_{number}"},
                "timeoutSec": PATIENCE_SECONDS,
                "runtime": {"intervalSec": 1},
                "brain": {"kind": "scripted", "replies": [_thread(f"{id} {n}") for n in range(REPLIES)]},
            }
            for number, (id, token) in enumerate(self.tokens.items())
        ]


def _thread(title: str) -> list[dict[str, Any]]:
    return [{"action": "create_thread", "communitySlug": "counter", "title": title, "body": "A body"}]


@asynccontextmanager
async def town(url: str, place: Path) -> AsyncIterator[Town]:
    """The network, on the same database that the launchers share."""
    database = await open_database(url)
    async with world(database) as net:
        community = await net.community()
        agents = [await net.agent(community, f"agent{number}", f"0x{number:040x}") for number in range(3)]
    await database.close()
    with network_process(url, place / "network", TRUNKLINE_NETWORK_RATE_LIMIT="off") as network:
        yield Town(network.url, community, {agent.id: agent.token for agent in agents})


async def titles(url: str) -> list[str]:
    """Of all threads that agents wrote, oldest first."""
    database = await open_database(url)
    rows = await database.read(
        lambda tx: tx.all("SELECT title FROM thread WHERE agent_id IS NOT NULL ORDER BY created_at, id")
    )
    await database.close()
    return [row["title"] for row in rows]


def decided(*launchers: LauncherProcess) -> list[str]:
    """The titles of all threads that agents decided on, as their launchers logged it."""
    entries = [
        json.loads(line)
        for launcher in launchers
        for path in launcher.home.rglob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    said = [json.loads(entry["content"]) for entry in entries if entry["direction"] == "agent_to_runner"]
    return [action["title"] for decision in said for action in decision]


async def each_runs_once(first: LauncherProcess, second: LauncherProcess, agents: set[str]) -> bool:
    """Whether each agent runs in one of the two, and both have some."""
    one, other = await asyncio.gather(first.running(), second.running())
    return one | other == agents and not one & other and bool(one) and bool(other)


async def test_each_agent_runs_in_one_of_two_launchers_and_in_the_other_as_soon_as_that_one_is_stopped(
    postgres_url: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(town(postgres_url, tmp_path))
        agents = set(place.tokens)
        # Longer than the test: nobody takes anything over whose time has run out.
        first, second = [
            await stack.enter_async_context(
                launcher_process(postgres_url, tmp_path / name, lease=PATIENCE_SECONDS * 10, environ=place.environ)
            )
            for name in ("first", "second")
        ]
        for config in place.configs():
            await first.ask("start", config)
        # The second learns of them, and gets its share.
        await eventually(lambda: each_runs_once(first, second, agents), "each agent runs in one of them")
        status = await second.status()
        (standing, *_) = [each for each in status.values() if not each["running"]]
        assert (standing["state"], standing["runsAt"].rpartition(":")[2]) == ("standing by", first.port)
        assert await second.ended(signal.SIGTERM) == 128 + signal.SIGTERM

        async def all_in_the_first() -> bool:
            return await first.running() == agents

        await eventually(all_in_the_first, "the first runs all of them")
        seen = len(await titles(postgres_url))

        async def more_is_written() -> bool:
            return len(await titles(postgres_url)) > seen + 3

        await eventually(more_is_written, "they write")
        # Who stops one, at whichever launcher, stops it everywhere; and a launcher that ends stops nothing for good.
        third = await stack.enter_async_context(
            launcher_process(postgres_url, tmp_path / "third", lease=PATIENCE_SECONDS * 10, environ=place.environ)
        )
        (one, *_) = agents
        await eventually(lambda: each_runs_once(first, third, agents), "the third has its share")
        await third.ask("stop", {"agentId": one})

        async def stopped() -> bool:
            return one not in await first.running() | await third.running()

        await eventually(stopped, "one of them is stopped")
        assert await first.ended(signal.SIGTERM) == 128 + signal.SIGTERM

        async def others_in_the_third() -> bool:
            return await third.running() == agents - {one}

        await eventually(others_in_the_third, "the third runs the others")
        written, thought = await titles(postgres_url), decided(first, second, third)
        assert len(set(written)) == len(written)
        assert len(set(thought)) == len(thought)
        assert set(written) <= set(thought)
        for launcher in (first, second, third):
            assert not any("Traceback" in line for line in launcher.said), launcher.said


@pytest.mark.long
async def test_when_one_is_killed_the_other_takes_over_and_nothing_is_done_twice(
    postgres_url: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(town(postgres_url, tmp_path))
        agents = set(place.tokens)
        first, second = [
            await stack.enter_async_context(launcher_process(postgres_url, tmp_path / name))
            for name in ("first", "second")
        ]
        # Started at both, with their secrets: one runs them, and the other one stands by.
        for config in place.configs(secrets=True):
            answers = await asyncio.gather(*(each.ask("start", config) for each in (first, second)))
            assert sorted(answer["status"]["state"] for answer in answers) == ["running", "standing by"]
        await eventually(lambda: each_runs_once(first, second, agents), "each agent runs in one of them")
        for _ in range(3):
            seen = len(await titles(postgres_url))

            async def goes_on(seen: int = seen) -> bool:
                return len(await titles(postgres_url)) > seen + 6

            await eventually(goes_on, "they write")
            # In the middle of whatever they do.
            await first.ended(signal.SIGKILL)

            async def taken_over(survivor: LauncherProcess = second) -> bool:
                return await survivor.running() == agents

            await eventually(taken_over, "the other one runs all of them")
            fresh = await stack.enter_async_context(
                launcher_process(postgres_url, tmp_path / f"again{seen}", environ=place.environ)
            )
            for config in place.configs(secrets=True):
                await fresh.ask("start", config)
            await eventually(lambda fresh=fresh, left=second: each_runs_once(left, fresh, agents), "both have some")  # type: ignore[misc]
            first, second = second, fresh
        written = await titles(postgres_url)
        assert len(set(written)) == len(written)
        for agent in agents:
            # In the order of the decisions, with a gap where one was interrupted.
            numbers = [int(title.split()[1]) for title in written if title.startswith(agent)]
            assert numbers == sorted(numbers)


def stub_config(sns: SnsStub, *decisions: Any) -> dict[str, Any]:
    brain = {"kind": "scripted", "replies": list(decisions)}
    return {
        "snsBaseUrl": sns.url, "agentId": AGENT, "runnerToken": TOKEN, "timeoutSec": PATIENCE_SECONDS,
        "runtime": {"intervalSec": 1}, "brain": brain,
    }  # fmt: skip


def begin(title: str) -> dict[str, Any]:
    return {"action": "create_thread", "communitySlug": SLUG, "title": title, "body": "A body"}


@asynccontextmanager
async def standing_by(
    url: str, place: Path, config: dict[str, Any], *, lease: float = 4.0, more: str = ""
) -> AsyncIterator[tuple[LauncherProcess, ...]]:
    """Two launchers: the first is about to run an agent, and the second stands by for it. `more`: see the first."""
    async with (
        launcher_process(url, place / "first", lease=lease, more=more) as first,
        launcher_process(url, place / "second", lease=lease) as second,
    ):
        starting = asyncio.create_task(first.ask("start", config))

        async def runs() -> bool:
            return await first.running() == {AGENT}

        await eventually(runs, "the first runs it")
        answer = await second.ask("start", config)
        assert answer["message"] == "Another launcher runs it, and this one stands by"
        yield first, second
        # It is answered after the first cycle, or when the agent is laid down.
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_post_whose_answer_the_first_never_got_is_found_by_the_second_and_not_made_again(
    postgres_url: str, tmp_path: Path, number: int
) -> None:
    async with SnsStub() as sns:
        # The network has it, and the answer never comes. Whoever decides again decides the same, and then goes on.
        sns.accident("POST /api/threads", HANG)
        config = stub_config(sns, begin("Once"), begin("Once"), begin("Next"), [])
        async with standing_by(postgres_url, tmp_path, config) as (first, second):

            async def posted() -> bool:
                return len(sns.threads) == 1

            await eventually(posted, "the first has posted")
            first.signal(number)

            async def goes_on() -> bool:
                return [thread["title"] for thread in sns.threads] == ["Once", "Next"]

            await eventually(goes_on, "the second goes on")
            if number == signal.SIGSTOP:
                await deposed(first)
            assert [thread["title"] for thread in sns.threads] == ["Once", "Next"]
            told = [json.loads(line)["content"] for line in _log(second).splitlines()]
            assert any('"write_feedback"' in text and '"ok": true' in text for text in told)


async def test_who_was_frozen_before_it_sent_a_post_does_not_send_it_after_another_took_over(
    postgres_url: str, tmp_path: Path
) -> None:
    async with SnsStub() as sns:
        # It has decided, has noted what it is about to send, and waits for its nonce.
        gate, nonce = Gate(), "f" * 32
        sns._nonces.add(nonce)
        sns.accident("POST /api/agents/nonce", gate, json.dumps({"nonce": nonce}).encode())
        config = stub_config(sns, [begin("Of the first"), begin("Of the first, too")], begin("Of the second"), [])
        async with standing_by(postgres_url, tmp_path, config) as (first, second):
            await asyncio.wait_for(gate.reached.wait(), PATIENCE_SECONDS)
            first.signal(signal.SIGSTOP)

            async def taken_over() -> bool:
                return [thread["title"] for thread in sns.threads] == ["Of the second"]

            await eventually(taken_over, "the second acts for it")
            # Now it gets its nonce, and could post.
            gate.open()
            await deposed(first)
            assert await second.running() == {AGENT}
            assert [thread["title"] for thread in sns.threads] == ["Of the second"]


@pytest.mark.parametrize("more", [DEAF, TIMELESS], ids=["deaf", "timeless"])
async def test_one_that_does_not_notice_that_its_time_is_over_sends_nothing_all_the_same(
    postgres_url: str, tmp_path: Path, more: str
) -> None:
    async with SnsStub() as sns:
        gate, nonce = Gate(), "f" * 32
        sns._nonces.add(nonce)
        sns.accident("POST /api/agents/nonce", gate, json.dumps({"nonce": nonce}).encode())
        config = stub_config(sns, [begin("Of the first"), begin("Of the first, too")], begin("Of the second"), [])
        # It does not renew its lease: within that time it has to begin, and the second to find it at work.
        async with standing_by(postgres_url, tmp_path, config, lease=12.0, more=more) as (first, second):
            await asyncio.wait_for(gate.reached.wait(), PATIENCE_SECONDS)

            async def taken_over() -> bool:
                return [thread["title"] for thread in sns.threads] == ["Of the second"]

            await eventually(taken_over, "the second acts for it")
            gate.open()

            async def gives_up() -> bool:
                return not await first.running()

            await eventually(gives_up, "the first gives up")
            assert [thread["title"] for thread in sns.threads] == ["Of the second"]
            assert await second.running() == {AGENT}


async def deposed(launcher: LauncherProcess) -> None:
    """Let a launcher go on that was frozen, and see that it lays its agent down."""
    asked = launcher.said.copy()
    launcher.signal(signal.SIGCONT)

    async def stands_by() -> bool:
        return str((await launcher.status())[AGENT]["state"]) == "standing by"

    await eventually(stands_by, "it stands by")
    assert any("Another launcher may run" in line for line in launcher.said[len(asked) :])


def _log(launcher: LauncherProcess) -> str:
    return "".join(path.read_text() for path in launcher.home.rglob("*.jsonl"))
