"""A server that is spoken to as an agent: which answer belongs to which turn, and what remains when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.agents.helpers import MemoryJournal, play, request, text_of
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served, served
from tests.support.tryll_voice import silence, tone, words
from trunkline.agents.external.tryll_conversation import JOURNAL_KEY
from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_agent import OVER, TalkAgent
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.core.agent import AddHistory
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, Failed, Notice, TurnEnded, UserMessage
from trunkline.core.faults import AgentFailed, Fault
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.wires.tryll.drive import Sound
from trunkline.wires.tryll.errors import TryllError


class Ears:
    """A listener that remembers what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.ends: list[Fault | None] = []

    def heard(self, text: str | None) -> None: ...

    def spoken(self, text: str) -> None:
        self.said.append(text)

    def play(self, sound: Sound) -> None: ...

    def hush(self) -> None: ...

    def ended(self, problem: Fault | None) -> None:
        self.ends.append(problem)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


class Spoken:
    """A session with a server that is spoken to."""

    def __init__(self, agent: TalkAgent, ears: Ears, session: Session, log: MemoryLog) -> None:
        self.agent = agent
        self.ears = ears
        self.session = session
        self._log = log

    async def say(self, count: int) -> None:
        """Say so many words, and wait until the server has answered them."""
        await self.agent.talk.press()
        await self.agent.talk.hear(tone(100 * count) + silence(100))
        await self.agent.talk.release()
        await until(lambda: words(1, count) in self.ears.said)
        await self.agent.talk.answered()

    async def turn(self, text: str) -> list[Event]:
        """What happens in a turn of that message."""
        number = self.session.submit(UserMessage(text))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.session.at_rest()
        found = [item for item in self._log.read(0) if isinstance(item, Envelope)]
        return [item.event for item in found if item.turn == number]


@asynccontextmanager
async def speaking(server: Served) -> AsyncIterator[Spoken]:
    ears = Ears()
    agent = TalkAgent(server.host, server.port, TalkOptions("mock", "mock", "mock"), ears)
    log = MemoryLog("s")
    session = await Session.open(agent, log, Policy())
    try:
        yield Spoken(agent, ears, session, log)
    finally:
        await session.close()


async def test_a_turn_follows_the_answer_that_the_server_has_begun(server: Served) -> None:
    async with speaking(server) as spoken:
        await spoken.say(3)
        assert text_of(await spoken.turn(words(1, 3))) == f"You said: {words(1, 3)}"
        assert text_of(await spoken.turn("And in writing?")) == "You said: And in writing?"
        assert spoken.ears.said == [words(1, 3)]


async def test_what_was_said_and_never_became_a_turn_does_not_make_the_next_be_asked_again(server: Served) -> None:
    async with speaking(server) as spoken:
        await spoken.say(3)
        await spoken.say(5)
        asked: list[str] = []
        spoken.agent.talk.say = asked.append  # type: ignore[method-assign,assignment]
        assert text_of(await spoken.turn(words(1, 5))) == f"You said: {words(1, 5)}"
        assert asked == []


async def test_nobody_waits_for_an_answer_when_the_conversation_is_over(server: Served) -> None:
    async with speaking(server) as spoken:
        await spoken.agent.talk.finish()
        await until(lambda: spoken.ears.ends == [None])
        *_, failed, ended = await spoken.turn("Are you still there?")
        assert failed == Failed("agent", OVER)
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "error"


async def test_a_defect_of_ours_ends_a_spoken_conversation_as_our_own_fault(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defective(*_: object) -> None:
        raise ZeroDivisionError

    async with speaking(server) as spoken:
        monkeypatch.setattr(TryllTalk, "_understood", defective)
        await spoken.agent.talk.press()
        await spoken.agent.talk.hear(tone(300) + silence(100))
        await spoken.agent.talk.release()
        await until(lambda: spoken.ears.ends)
        (problem,) = spoken.ears.ends
        assert isinstance(problem, AgentFailed)
        assert problem.message == "The conversation failed."
        with pytest.raises(AgentFailed, match="The conversation failed"):
            await spoken.agent.talk.next_event()


async def test_whoever_types_to_a_server_that_has_gone_is_told(server: Served) -> None:
    async with speaking(server) as spoken:
        await server.server.close()
        *_, failed, ended = await spoken.turn("Are you still there?")
        assert isinstance(failed, Failed)
        assert "cannot be reached" in failed.message
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "error"


async def test_what_the_host_says_came_before_is_told_to_the_server_once(server: Served) -> None:
    async with speaking(server) as spoken:
        await spoken.session.configure(AddHistory("Be kind."))
        assert text_of(await spoken.turn("Hello.")) == "You said: Be kind.\n\nHello."
        assert text_of(await spoken.turn("And now?")) == "You said: And now?"


async def test_whoever_goes_on_is_told_if_the_server_does_not_know_what_was_said(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: TryllTalk, exchanges: object) -> None:
        raise TryllError(3001, "It is too long.")

    monkeypatch.setattr(TryllTalk, "restore", refuse)
    journal = MemoryJournal()
    journal.append({JOURNAL_KEY: ["Hello.", "Hi."]})
    agent = TalkAgent(server.host, server.port, TalkOptions("mock", "mock", "mock"), Ears())
    conversation = await agent.open(request(journal=journal, resumed=True))
    events = await play(conversation, "Do you know me?")
    await conversation.close()
    assert events[0] == Notice("The server did not accept the earlier conversation: It is too long.")
    assert text_of(events) == "You said: Do you know me?"
