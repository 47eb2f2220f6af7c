"""Who stopped a turn, in a session that several share."""

from __future__ import annotations

from tests.support.fake_agent import FakeAgent
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, StopAsked, TurnEnded, UserMessage
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
