"""Characters that talk to a server, and how many of them there can be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.tryll_served import served
from trunkline.cli.tryll_load import LEAVE_SECONDS, LoadPlan, Round, RoundSoFar, find, play, quantile
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.drive.connection import ClientConnection


def met(characters: int, first: float = 0.1, *, failed: int = 0, turns: int = 1) -> Round:
    return Round(characters, 1.0, turns, failed, first, first, 10.0)


@pytest.mark.parametrize("true", [0, 1, 2, 3, 7, 11, 31, 64])
async def test_the_number_is_found_by_doubling_and_then_between(true: int) -> None:
    asked: list[int] = []

    async def measure(count: int) -> Round:
        asked.append(count)
        return met(count, 0.5 if count <= true else 2.5)

    assert await find(measure, 2.0, lambda _: None, most=64) == true
    assert len(asked) == len(set(asked)) <= 13


async def test_a_round_in_which_turns_fail_or_nobody_is_answered_is_too_much() -> None:
    assert met(1).within(2.0)
    assert met(1, 2.0).within(2.0)
    assert not met(1, 2.001).within(2.0)
    assert not met(1, failed=1).within(2.0)
    assert not met(1, turns=0).within(2.0)


def test_a_quantile_is_a_value_that_was_measured() -> None:
    assert quantile([], 0.5) == 0
    assert quantile([3.0], 0.95) == 3.0
    assert [quantile([4.0, 1.0, 3.0, 2.0], share) for share in (0.25, 0.5, 0.95)] == [1.0, 2.0, 4.0]
    assert quantile(list(map(float, range(1, 101))), 0.95) == 95.0


@pytest.mark.virtual_time
async def test_characters_talk_each_for_itself_and_are_gone_afterwards(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(server.host, server.port, reconnect=None) as tryll:
        found = await play(tryll, LoadPlan("any", 60, 5.0, 8), 3, RoundSoFar())
        assert (found.characters, found.failed) == (3, 0)
        # Each thinks for 2.5 to 7.5 s between two turns, and answers take no time on this clock.
        assert 3 * 60 / 7.5 - 3 <= found.turns <= 3 * 60 / 2.5 + 3
        assert 0 < found.first_p50 <= found.first_p95
        assert found.turns_per_second == found.turns / found.seconds
        assert server.server.agents == 0


@pytest.mark.virtual_time
async def test_turns_that_fail_are_counted_and_end_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, turns_per_minute=4) as server, Tryll(server.host, server.port) as tryll:
        found = await play(tryll, LoadPlan("any", 40, 5.0, 8), 3, RoundSoFar())
        # The first one of each is one of the four, and is not measured.
        assert found.turns == 1
        assert found.failed > 0


@pytest.mark.virtual_time
async def test_what_a_round_has_measured_is_known_also_when_it_is_stopped(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(server.host, server.port, reconnect=None) as tryll:
        heard = RoundSoFar()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await play(tryll, LoadPlan("any", 3600, 5.0, 8), 2, heard)
        found = heard.round(2, complete=False)
        assert (found.complete, found.failed) == (False, 0)
        assert found.turns >= 2 * 30 / 7.5 - 2
        assert 20 < found.seconds <= 30
        assert server.server.agents == 0


@pytest.mark.virtual_time
async def test_a_round_is_stopped_also_when_the_server_does_not_answer_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, silent_at, stopped_at = asyncio.get_running_loop(), 30.0, 60.0
    update = ClientConnection.buffer_updated

    def hears(self: ClientConnection, nbytes: int) -> None:
        if loop.time() < silent_at:
            update(self, nbytes)

    monkeypatch.setattr(ClientConnection, "buffer_updated", hears)
    async with served(tmp_path) as server, Tryll(server.host, server.port, reconnect=None) as tryll:
        heard = RoundSoFar()
        # What stopped it comes out, and not that the server is silent.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(stopped_at):
                await play(tryll, LoadPlan("any", 3600, 5.0, 8), 8, heard)
        assert loop.time() == stopped_at + LEAVE_SECONDS
        found = heard.round(8, complete=False)
        assert (found.complete, found.failed) == (False, 0)
        assert found.turns > 0
