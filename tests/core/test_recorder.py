"""What is shown to whom: events that are private to the log, but for those who ask for one kind of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.support.fake_agent import FakeAgent
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Envelope,
    Event,
    Journaled,
    TextDelta,
    ToolJudged,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.log import LogLost, MemoryLog
from trunkline.core.recorder import Recorder
from trunkline.core.session import Session


class Watcher:
    """A sink that keeps what it is shown."""

    congested = False

    def __init__(self, *, sees_judged: bool = False) -> None:
        self.sees_judged = sees_judged
        self.shown: list[type[Event]] = []

    def show(self, envelopes: Sequence[Envelope]) -> None:
        assert envelopes
        self.shown += [type(envelope.event) for envelope in envelopes]

    async def drain(self) -> None: ...


async def test_what_the_policy_decides_is_shown_to_those_alone_who_want_it() -> None:
    fake = FakeAgent()
    session = await Session.open(fake, MemoryLog("s1"), Policy("yolo"))
    curious, other = Watcher(sees_judged=True), Watcher()
    session.attach(curious)
    session.attach(other)
    session.submit(UserMessage("hi"))
    await session.settled()
    # The turn hears only what is said once it has begun.
    while not fake.busy:
        await session.settled()
        await asyncio.sleep(0)
    fake.say(ToolRequested("c", "Bash", "exec", {"command": "ls"}), ToolStarted("c", "Bash"), TurnEnded("success"))
    await session.at_rest()
    assert ToolJudged in curious.shown
    assert [kind for kind in curious.shown if kind is not ToolJudged] == other.shown
    read = [type(item.event) for item in session.read(0, session.shown, judged=True) if isinstance(item, Envelope)]
    assert read == curious.shown
    public = [type(item.event) for item in session.read(0, session.shown) if isinstance(item, Envelope)]
    assert public == other.shown
    await session.close()


async def test_what_is_held_behind_the_end_of_a_turn_is_shown_to_nobody_else_either() -> None:
    recorder = Recorder(MemoryLog("s1"), None, lambda: 0.0, None)
    curious, other = Watcher(sees_judged=True), Watcher()
    recorder.sinks += [curious, other]
    recorder.emit(1, ToolJudged("c1", "Bash", "exec", {}, "", "allow"))
    recorder.emit(1, TurnEnded("success"))
    recorder.emit(2, ToolJudged("c2", "Bash", "exec", {}, "", "allow"))
    recorder.flush()
    assert (curious.shown, other.shown) == ([ToolJudged], [])
    await recorder.shown()
    assert curious.shown == [ToolJudged, TurnEnded, ToolJudged]
    assert other.shown == [TurnEnded]


class OthersLog(MemoryLog):
    """One whose records are shown only when they are kept, and that is another's from the second time on."""

    shows_kept = True

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.synced = 0

    async def sync(self) -> None:
        self.synced += 1
        if self.synced > 1:
            raise LogLost("It is another's.")


async def test_what_is_not_kept_has_no_number_when_the_session_is_anothers() -> None:
    recorder = Recorder(OthersLog("s1"), None, lambda: 0.0, None)
    recorder.emit(1, TextDelta("kept "))
    await recorder.shown()
    assert recorder.shown_seq == 1
    for event in (Journaled({}), TextDelta("lost ")):
        recorder.emit(1, event)
        # Not even what nobody is shown: whoever goes on with the session counts from what is kept.
        assert recorder.shown_seq == 1
    await recorder.shown()
    assert recorder.is_lost
    assert (recorder.seq, recorder.shown_seq) == (1, 1)
