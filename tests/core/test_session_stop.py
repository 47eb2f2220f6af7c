"""Who stopped a turn, in a session that several share."""

from __future__ import annotations

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, StopAsked, TextDelta, TurnEnded, TurnStarted, UserMessage
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session


async def test_the_log_has_who_stopped_a_turn_and_nobody_is_shown_it() -> None:
    log = MemoryLog("s")
    session = await Session.open(FakeAgent(), log, Policy())
    session.stop("nobody: there is no turn")
    session.submit(UserMessage("Go"))
    session.stop("ana")
    session.stop("too late")
    await session.at_rest()
    kept = [item.event for item in log.read() if isinstance(item, Envelope)]
    assert [event for event in kept if isinstance(event, StopAsked)] == [StopAsked("ana")]
    assert [event.outcome for event in kept if isinstance(event, TurnEnded)] == ["cancelled"]
    assert StopAsked.private
    await session.close()


async def test_where_one_alone_may_stop_nothing_is_noted() -> None:
    log = MemoryLog("s")
    session = await Session.open(FakeAgent(), log, Policy())
    session.submit(UserMessage("Go"))
    session.stop()
    await session.at_rest()
    assert not any(isinstance(item, Envelope) and isinstance(item.event, StopAsked) for item in log.read())
    await session.close()


def _kept(log: MemoryLog) -> list[Event]:
    return [item.event for item in log.read() if isinstance(item, Envelope)]


def _ends(log: MemoryLog) -> list[tuple[int, str]]:
    return [
        (item.turn, item.event.outcome)
        for item in log.read()
        if isinstance(item, Envelope) and isinstance(item.event, TurnEnded)
    ]


async def test_a_turn_that_waits_is_withdrawn_and_nobody_elses() -> None:
    log, agent = MemoryLog("s"), FakeAgent()
    session = await Session.open(agent, log, Policy())
    turns = [session.submit(UserMessage(name, id=name)) for name in ("first", "second", "third")]
    assert [session.waits(name) for name in ("first", "second", "third")] == [False, True, True]
    session.stop("ana", turns[1])
    session.stop("ana", turns[1])
    assert session.turn == turns[0]
    # It keeps its place, in which it ends.
    assert session.turn_of("second") == turns[1]
    assert [session.waits(name) for name in ("first", "second", "third")] == [False, False, True]
    for _ in range(2):
        await until(lambda: agent.busy)
        agent.say(TextDelta("Yes"), TurnEnded("success"))
        await until(lambda: not agent.busy)
    await session.at_rest()
    assert _ends(log) == [(1, "success"), (2, "cancelled"), (3, "success")]
    assert [message.text for message in agent.heard] == ["first", "third"]
    (asked,) = [item for item in log.read() if isinstance(item, Envelope) and isinstance(item.event, StopAsked)]
    assert (asked.turn, asked.event) == (0, StopAsked("ana", ("second",)))
    await session.close()


async def test_the_turn_in_progress_is_stopped_by_its_number_and_those_behind_it_stay() -> None:
    log, agent = MemoryLog("s"), FakeAgent()
    session = await Session.open(agent, log, Policy())
    mine, theirs = session.submit(UserMessage("mine")), session.submit(UserMessage("theirs"))
    await until(lambda: agent.busy)
    session.stop("ana", mine)
    await until(lambda: [message.text for message in agent.heard] == ["mine", "theirs"])
    assert session.turn == theirs
    session.stop("ana", mine)
    assert session.turn == theirs
    agent.say(TurnEnded("success"))
    await session.at_rest()
    session.stop("ana", theirs)
    session.stop("ana", 99)
    assert _ends(log) == [(1, "cancelled"), (2, "success")]
    assert [event for event in _kept(log) if isinstance(event, StopAsked)] == [StopAsked("ana")]
    await session.close()


async def test_a_stop_of_everything_names_the_messages_that_waited() -> None:
    log = MemoryLog("s")
    session = await Session.open(FakeAgent(), log, Policy())
    for name in ("a", "b", "c"):
        session.submit(UserMessage(name, id=name))
    assert [session.turn_of(name) for name in ("a", "b", "c", "d")] == [0, 2, 3, 0]
    session.stop("ana")
    await session.at_rest()
    assert [event for event in _kept(log) if isinstance(event, StopAsked)] == [StopAsked("ana", ("b", "c"))]
    assert [event.message.text for event in _kept(log) if isinstance(event, TurnStarted)] == ["a", "b", "c"]
    await session.close()
