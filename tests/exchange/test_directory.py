"""The agents of an exchange: a program that dies is started again, and its health is told; others do not notice."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.attached import echo, exchange
from tests.support.misbehaving import argv
from trunkline.base import backoff
from trunkline.core.events import Envelope, Failed, Notice, TextDelta, TurnEnded, UserMessage
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.settings import AgentSettings

pytestmark = pytest.mark.process


def program(home: Path, habit: str) -> AgentSettings:
    return AgentSettings("", f"jsonstream:{shlex.join(argv(habit))}", str(home))


async def say(running: Exchange, live: LiveSession, text: str) -> list[Envelope]:
    """The events of one turn."""
    before = live.session.seq
    await running.switchboard.submit(live, UserMessage(text, sender="ana"))
    await live.session.at_rest()
    await live.written()
    return [each for each in live.session.read(before, live.session.seq) if isinstance(each, Envelope)]


async def test_a_program_that_dies_in_each_turn_is_started_again_later_and_later_and_others_do_not_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    measured = backoff.delay

    def noted(failures: int, first: float, longest: float) -> float:
        rests.append(measured(failures, first, longest))
        return 0.0

    monkeypatch.setattr(backoff, "delay", noted)
    agents = {"dying": program(tmp_path, "dies"), "steady": program(tmp_path, "none"), "echo": echo(tmp_path)}
    async with exchange(tmp_path, **agents) as running:
        dying, steady, other = [await running.switchboard.open(name, by="ana") for name in ("dying", "steady", "echo")]
        for number in range(4):
            events = [each.event for each in await say(running, dying, "Go")]
            assert [each.outcome for each in events if isinstance(each, TurnEnded)] == ["unknown"]
            (failed,) = [each for each in events if isinstance(each, Failed)]
            assert "exit code 7" in failed.message
            started = [each for each in events if isinstance(each, Notice) and "it was started again" in each.message]
            assert len(started) == (number > 0)
            entry = running.directory.find("dying")
            assert (entry.healthy, "exit code 7" in entry.last_error) == (False, True)
            for live in (steady, other):
                answered = [each.event for each in await say(running, live, "Hello")]
                assert [each.outcome for each in answered if isinstance(each, TurnEnded)] == ["success"]
                assert any(isinstance(each, TextDelta) for each in answered)
                assert running.directory.find(live.agent).healthy
    assert rests == [0.0, 0.25, 0.5, 1.0]
