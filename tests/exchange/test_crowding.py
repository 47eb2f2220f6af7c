"""Sessions that are let go of, or refused, when few more files can be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.exchange_world import CommandedAgent, World
from trunkline.base import open_files
from trunkline.core.faults import AgentFailed
from trunkline.exchange import crowding
from trunkline.exchange.crowding import Crowding


async def test_unused_sessions_are_let_go_of_when_few_files_are_left_and_wake_again(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        board = life.switchboard

        def left() -> int:
            return crowding.KEPT_FREE + 3 - len(board.at_work)

        board._crowding = Crowding(left)
        at_work = await life.open("busy")
        await life.say(at_work, "wait")
        for number in range(40):
            await life.open(f"s{number}")
            assert left() >= crowding.LEAST_FREE
        assert board.live("busy") is at_work
        assert board.live("s0") is None
        live = await board.find("s0")
        await life.say(live, "say hello")
        await life.rest(live)
        agent.gate.set()
    assert world.ends("s0") == ["success"]


async def test_a_session_for_which_there_is_no_room_is_refused_for_now(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        life.switchboard._crowding = Crowding(lambda: crowding.LEAST_FREE - 1)
        with pytest.raises(AgentFailed, match="too many files open") as refused:
            await life.open("s")
        assert refused.value.retryable
        assert await life.switchboard.row("s") is None
        assert life.switchboard.directory.find("agent").healthy


async def test_files_are_not_counted_for_every_session_while_many_are_free() -> None:
    counts: list[int] = []

    def left() -> int:
        counts.append(1)
        return crowding.KEPT_FREE + 100 * crowding.FILES_EACH

    crowded = Crowding(left)
    for _ in range(101):
        await crowded.make_room((), lambda live: pytest.fail("nothing to let go of"))
    assert len(counts) == 1


def test_files_that_are_opened_are_not_left() -> None:
    before = open_files.left()
    with open(__file__):
        assert open_files.left() < before
