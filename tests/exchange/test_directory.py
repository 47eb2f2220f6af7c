"""The agents of an exchange, by name: made when they are first needed, and again after a rest if that failed. A program
that dies is started again, and its health is told; others do not notice.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.attached import echo, exchange
from tests.support.exchange_world import NOON, CommandedAgent
from tests.support.loop import until
from tests.support.misbehaving import argv
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import backoff
from trunkline.core.agent import Agent
from trunkline.core.events import Envelope, Failed, Notice, TextDelta, TurnEnded, UserMessage
from trunkline.core.faults import AgentCrashed, ConfigError, SessionDamaged, UnknownAgent
from trunkline.core.rules import NO_RULES, Rules
from trunkline.exchange.directory import FIRST_DELAY_MS, LONGEST_DELAY_MS, LOOK_AGAIN_MS, AgentEntry, Directory
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.settings import AgentSettings


class Maker:
    """Makes agents, or fails to, at times that are told."""

    def __init__(self, **agents: str) -> None:
        self.now = NOON
        self.made: list[str] = []
        self.problem: Exception | None = None
        settings = {name: AgentSettings(name, agent, "/") for name, agent in agents.items()}
        self.directory = Directory(settings, self.make, lambda: self.now)

    async def make(self, name: str, options: dict[str, Any]) -> Agent:
        await asyncio.sleep(0)
        self.made.append(name)
        if self.problem is not None:
            raise self.problem
        return CommandedAgent()


async def test_an_agent_is_made_once_when_it_is_first_needed() -> None:
    maker = Maker(helper="echo", other="coder")
    entry = maker.directory.find("helper")
    assert (entry.capabilities, maker.made) == (None, [])
    agents = await asyncio.gather(*(entry.agent() for _ in range(10)))
    assert maker.made == ["echo"]
    assert all(agent is agents[0] for agent in agents)
    assert entry.capabilities is not None


def test_a_name_that_nobody_has_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownAgent, match=r"`helpr`.*`helper`"):
        Maker(helper="echo").directory.find("helpr")


async def test_one_that_cannot_be_made_is_tried_again_later_and_later() -> None:
    maker = Maker(helper="echo")
    entry = maker.directory.find("helper")
    maker.problem = ConfigError("It is ill.")
    delay = FIRST_DELAY_MS
    for _ in range(12):
        with pytest.raises(ConfigError, match=r"^It is ill\.$") as failed:
            await entry.agent()
        assert failed.value.retry_after == delay / 1000
        maker.now += delay - 1
        with pytest.raises(ConfigError, match=r"next try is in 0\.0 s: It is ill\.") as failed:
            # Nobody asked it again.
            await entry.agent()
        assert (failed.value.retry_after, failed.value.retryable) == (0.001, False)
        maker.now += 1
        delay = min(2 * delay, LONGEST_DELAY_MS)
    assert len(maker.made) == 12
    assert (entry.healthy, entry.last_error) == (False, "It is ill.")
    maker.problem = None
    await entry.agent()
    entry.worked()
    assert entry.healthy


async def test_who_only_looks_learns_how_it_is_and_its_log_says_it_once() -> None:
    maker = Maker(helper="echo", other="echo")
    entry = maker.directory.find("helper")
    maker.problem = ConfigError("It lacks a model.")
    assert (entry.is_known, entry.is_due, entry.healthy) == (False, True, True)
    await maker.directory.look(PATIENCE_SECONDS)
    assert (entry.is_known, await entry.health()) == (True, (False, "It lacks a model."))
    for _ in range(5):
        maker.now += LONGEST_DELAY_MS
        await maker.directory.look(PATIENCE_SECONDS)
    assert len(maker.made) == 12
    assert [line.text for line in maker.directory.logs.of("helper")] == ["It lacks a model."]
    maker.problem = ConfigError("It lacks a key.")
    maker.now += LONGEST_DELAY_MS
    await maker.directory.look(PATIENCE_SECONDS)
    assert [line.text for line in maker.directory.logs.of("helper")] == ["It lacks a model.", "It lacks a key."]


async def test_one_that_lacked_something_is_well_once_it_can_be_made() -> None:
    maker = Maker(helper="echo")
    entry = maker.directory.find("helper")
    maker.problem = ConfigError("It lacks a model.")
    await entry.look()
    maker.problem = None
    await entry.look()
    assert not entry.healthy, "it is not tried again at once"
    maker.now += LONGEST_DELAY_MS
    assert entry.is_due
    await entry.look()
    assert (await entry.health(), entry.is_due) == ((True, "It lacks a model."), False)


async def test_what_an_agent_says_that_it_lacks_is_told_until_it_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks: list[str | None] = ["There is no program `x`."]
    monkeypatch.setattr(CommandedAgent, "problem", lambda self: lacks[0], raising=False)
    maker = Maker(helper="echo")
    entry = maker.directory.find("helper")
    await entry.look()
    assert await entry.health() == (False, "There is no program `x`.")
    assert not entry.is_due
    lacks[0] = None
    maker.now += LOOK_AGAIN_MS
    await maker.directory.look(PATIENCE_SECONDS)
    assert (await entry.health())[0]


async def test_one_that_hangs_does_not_keep_others_from_being_looked_at() -> None:
    maker = Maker(helper="echo", other="echo")
    gate = asyncio.Event()

    async def hanging(name: str, options: dict[str, Any]) -> Agent:
        await gate.wait()
        return CommandedAgent()

    helper, other = (maker.directory.find(name) for name in ("helper", "other"))
    helper._make = hanging
    maker.directory.look_soon()
    await until(lambda: other.is_known)
    assert not helper.is_known
    await maker.directory.close()
    await maker.directory.close()


async def test_those_who_waited_while_it_could_not_be_made_do_not_each_try_again_at_once() -> None:
    maker = Maker(helper="echo")
    maker.problem = ConfigError("It is ill.")
    entry = maker.directory.find("helper")
    found = await asyncio.gather(*(entry.agent() for _ in range(10)), return_exceptions=True)
    assert maker.made == ["echo"]
    assert sum("next try is in" in str(each) for each in found if isinstance(each, ConfigError)) == 9


def test_what_is_wrong_with_one_conversation_is_not_held_against_the_agent(tmp_path: Path) -> None:
    entry = AgentEntry(AgentSettings("helper", "echo", str(tmp_path)), Maker().make, lambda: NOON)
    entry.could_not_open(SessionDamaged("Its log is damaged."), str(tmp_path))
    entry.could_not_open(ConfigError("The directory is gone."), str(tmp_path / "gone"))
    assert entry.healthy
    for number, place in enumerate((str(tmp_path), None)):
        entry.could_not_open(ConfigError(f"It is ill {number}."), place)
        assert (entry.healthy, entry.last_error) == (False, f"It is ill {number}.")
        entry.worked()


def test_the_agents_own_directory_that_is_gone_is_held_against_it(tmp_path: Path) -> None:
    entry = AgentEntry(AgentSettings("helper", "echo", str(tmp_path / "gone")), Maker().make, lambda: NOON)
    entry.could_not_open(ConfigError("The directory is gone."), str(tmp_path / "gone"))
    assert not entry.healthy


async def test_what_one_conversation_could_not_be_opened_for_another_may_be_opened_for_later() -> None:
    entry = Maker(helper="echo").directory.find("helper")
    await entry.agent()
    entry.could_not_open(ConfigError("It is ill."))
    with pytest.raises(ConfigError, match="next try is in") as failed:
        await entry.agent()
    assert failed.value.retryable


async def test_one_that_raises_anything_when_it_is_made_is_as_ill_as_others() -> None:
    maker = Maker(helper="echo")
    maker.problem = ZeroDivisionError("by zero")
    entry = maker.directory.find("helper")
    for _ in range(2):
        with pytest.raises(AgentCrashed, match="ZeroDivisionError: by zero"):
            await entry.agent()
    assert (entry.healthy, entry.last_error, len(maker.made)) == (False, "ZeroDivisionError: by zero", 1)


async def test_the_rules_of_an_agents_own_configuration_count() -> None:
    entry = Maker(helper="coder").directory.find("helper")
    agent = await entry.agent()
    assert entry.policy(agent).rules is NO_RULES
    rules = Rules(deny=("Bash(rm:*)",))
    agent.settings = SimpleNamespace(allow=None, permissions=rules)  # type: ignore[attr-defined]  # what some have
    assert entry.policy(agent).rules is rules


def test_new_settings_replace_only_the_agents_that_changed() -> None:
    maker = Maker(stays="echo", changes="echo", goes="echo")
    stays, changes = maker.directory.find("stays"), maker.directory.find("changes")
    maker.directory.take_up(
        {name: AgentSettings(name, agent, "/") for name, agent in (("changes", "coder"), ("stays", "echo"))}
    )
    assert maker.directory.find("stays") is stays
    assert maker.directory.find("changes") is not changes
    assert "goes" not in maker.directory
    assert [entry.name for entry in maker.directory.entries] == ["changes", "stays"]


async def test_an_agent_is_made_anew_for_those_who_come_later() -> None:
    maker = Maker(helper="echo")
    before = await maker.directory.find("helper").agent()
    maker.directory.renew("helper")
    maker.directory.renew("nobody")
    assert await maker.directory.find("helper").agent() is not before
    assert [entry.name for entry in maker.directory.entries] == ["helper"]


def program(home: Path, habit: str) -> AgentSettings:
    return AgentSettings("", f"jsonstream:{shlex.join(argv(habit))}", str(home))


async def say(running: Exchange, live: LiveSession, text: str) -> list[Envelope]:
    """The events of one turn."""
    before = live.session.seq
    await running.switchboard.submit(live, UserMessage(text, sender="ana"))
    await live.session.at_rest()
    await live.written()
    return [each for each in live.session.read(before, live.session.seq) if isinstance(each, Envelope)]


@pytest.mark.process
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
