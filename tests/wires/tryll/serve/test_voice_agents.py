"""What is said into a microphone, and the agents that hear of it. And microphones that never stop."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from time import process_time
from typing import TypeVar

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, Served, served
from tests.support.tryll_voice import FINAL, Microphone, kinds, microphone, silence, tone, words
from trunkline.models.mock_language import SLOW_SECONDS
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind
from trunkline.wires.tryll.serve import server as serving

T = TypeVar("T", bound=m.Message)

SLOW = "mock-slow"
LONG = " ".join(["word"] * 500)
#: What a turn may go on for after somebody has begun to speak, in pieces of its answer: 0.2 s of it.
MOST_LATE_PIECES = int(0.2 / SLOW_SECONDS)


def said(answers: list[m.AnswerText]) -> str:
    return "".join(answer.text for answer in answers)


async def history(peer: Peer, agent: int) -> list[str]:
    found = await peer.ask(m.SaveHistoryRequest(9, agent), m.SaveHistoryResponse)
    return [entry.text for entry in found.entries]


async def begun(peer: Peer, agent: int) -> None:
    """A turn is under way, and would be for ten seconds."""
    peer.say(m.SendMessageRequest(3, agent, LONG))
    await peer.get(m.AnswerText)


async def during(peer: Peer, kind: type[T]) -> tuple[list[m.Message], T]:
    """What comes up to the first message of a kind."""
    before: list[m.Message] = []
    while not isinstance(heard := await peer.hear(), kind):
        assert heard is not None
        before.append(heard)
    return before, heard


async def told(peer: Peer, kind: type[T], count: int) -> list[T]:
    """The next messages of a kind; whatever comes between them does not matter."""
    return [(await during(peer, kind))[1] for _ in range(count)]


# Autosend.


@pytest.mark.parametrize("hands_free", [False, True])
async def test_what_was_heard_is_said_to_the_agent_once(peer: Peer, hands_free: bool) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    for _ in range(2):
        pcm = tone(300) + silence(500 if hands_free else 0)
        peer.say(mic.begin(agent, hands_free=hands_free), *mic.sound(pcm))
        if not hands_free:
            peer.say(mic.end())
        assert (await mic.updates())[-1].text == "w1 w2 w3"
        if not hands_free:
            assert await peer.get(m.Ack) == m.Ack(21)
        answers, complete = await peer.turn()
        assert (said(answers), complete.request_id, complete.agent_id) == ("You said: w1 w2 w3", 0, agent)
        await mic.quiet()
    assert await history(peer, agent) == ["w1 w2 w3", "You said: w1 w2 w3"] * 2


async def test_nothing_is_said_to_nobody_and_silence_to_no_one(peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    assert (await mic.utter(tone(300)))[-1].text
    assert not (await mic.utter(silence(300), agent_id=agent))[-1].text
    await mic.quiet()
    assert not await history(peer, agent)


async def test_an_agent_that_is_not_there_is_refused_and_the_input_stays_idle(server: Served, peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    await peer.ask(m.DestroyAgentRequest(4, agent), m.Ack)
    assert await peer.refused(mic.begin(agent)) == 3002
    assert await peer.refused(mic.begin(agent + 1)) == 3001
    async with server.peer() as other:
        assert await peer.refused(mic.begin(await other.agent())) == 3001
    await mic.quiet()
    assert (await mic.utter(tone(100)))[-1].text == "w1"


async def test_a_busy_agent_goes_on_and_the_words_are_lost_but_told(peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent(SLOW)
    peer.say(m.SendMessageRequest(3, agent, "one two three"))
    await peer.get(m.AnswerText)
    peer.say(mic.begin(agent), *mic.sound(tone(300)), mic.end())
    before, error = await during(peer, m.ErrorResponse)
    assert isinstance(error, m.ErrorResponse)
    assert (error.request_id, error.code, error.agent_id, error.voice_input_id) == (0, 3004, agent, mic.id)
    updates = [each for each in before if isinstance(each, m.WireTranscriptUpdate)]
    assert (kinds(updates)[0], updates[-1].kind, updates[-1].text) == (Kind.SPEECH_START, FINAL, "w1 w2 w3")
    _, complete = await during(peer, m.TurnComplete)
    assert isinstance(complete, m.TurnComplete)
    assert (complete.request_id, complete.status) == (3, m.TurnStatus.SUCCESS)
    assert await history(peer, agent) == ["one two three", "You said: one two three"]


async def test_the_words_for_an_agent_that_was_destroyed_meanwhile_are_told(peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    await peer.ask(mic.begin(agent, barge_in=True), m.Ack)
    await peer.ask(m.DestroyAgentRequest(4, agent), m.Ack)
    peer.say(*mic.sound(tone(300)), mic.end())
    assert (await mic.updates())[-1].text == "w1 w2 w3"
    error = await peer.get(m.ErrorResponse)
    assert (error.request_id, error.code, error.agent_id, error.voice_input_id) == (0, 3002, agent, mic.id)
    assert await peer.get(m.Ack) == m.Ack(21)


@pytest.mark.parametrize("waiting", [False, True])
async def test_what_is_asked_after_an_utterance_was_begun_does_not_keep_it_from_beginning(
    peer: Peer, waiting: bool
) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    if waiting:
        peer.say(mic.begin(), *mic.sound(tone(100)), mic.end())
    peer.say(mic.begin(agent), *mic.sound(tone(200)), m.DestroyAgentRequest(4, agent), mic.end(), mic.begin(agent))
    if waiting:
        assert (await mic.updates())[-1].text == "w1"
    assert (await mic.updates())[-1].text == "w1 w2"
    before, error = await during(peer, m.ErrorResponse)
    assert isinstance(error, m.ErrorResponse)
    assert (error.request_id, error.code, error.voice_input_id) == (0, 3002, mic.id)
    # What was begun after it is refused, in its turn.
    before, error = await during(peer, m.ErrorResponse)
    assert isinstance(error, m.ErrorResponse)
    assert before == [m.Ack(21)]
    assert (error.request_id, error.code) == (20, 3002)
    await mic.quiet()


# Barge-in.


async def interrupted(mic: Microphone, agent: int) -> m.TurnComplete:
    """Speak into a turn, and hear the end of it in time."""
    peer = mic.peer
    peer.say(*mic.sound(tone(200)))
    before, start = await during(peer, m.WireTranscriptUpdate)
    assert isinstance(start, m.WireTranscriptUpdate)
    assert start.kind == Kind.SPEECH_START
    after, complete = await during(peer, m.TurnComplete)
    assert sum(isinstance(each, m.AnswerText) for each in after) <= MOST_LATE_PIECES
    assert isinstance(complete, m.TurnComplete)
    assert (complete.request_id, complete.agent_id, complete.status) == (3, agent, m.TurnStatus.CANCELLED)
    finals = [each for each in (*before, *after) if isinstance(each, m.AnswerText) and each.is_final]
    assert len(finals) == 1
    return complete


async def test_speech_ends_a_turn_and_is_said_to_the_agent(peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent(SLOW)
    await begun(peer, agent)
    await peer_begins(mic, agent)
    await interrupted(mic, agent)
    peer.say(mic.end())
    assert (await mic.updates())[-1].text == "w1 w2"
    await peer.get(m.Ack)
    answers, complete = await peer.turn()
    assert (said(answers), complete.request_id, complete.status) == ("You said: w1 w2", 0, m.TurnStatus.SUCCESS)
    kept = await history(peer, agent)
    assert kept[0] == LONG
    assert kept[1].startswith("You said: word") or kept[1].startswith("You")
    assert len(kept[1]) < len(LONG)
    assert kept[2:] == ["w1 w2", "You said: w1 w2"]


async def peer_begins(mic: Microphone, agent: int, *, hands_free: bool = False, barge_in: bool = True) -> None:
    mic.peer.say(mic.begin(agent, hands_free=hands_free, barge_in=barge_in))
    await during(mic.peer, m.Ack)


async def test_silence_and_other_peoples_speech_end_no_turn(peer: Peer) -> None:
    mic, agent, other = await microphone(peer), await peer.agent(SLOW), await peer.agent()
    await begun(peer, agent)
    await peer_begins(mic, agent)
    peer.say(*mic.sound(silence(2000) + tone(2000, height=500)), mic.end())
    before, _ = await during(peer, m.Ack)
    (final,) = (each for each in before if isinstance(each, m.WireTranscriptUpdate))
    assert (final.kind, final.text) == (FINAL, "")
    # Speech to another agent, and to nobody.
    for whom in (other, 0):
        await peer_begins(mic, whom)
        peer.say(*mic.sound(tone(300)), mic.end())
        before, _ = await during(peer, m.Ack)
        assert not [each for each in before if isinstance(each, m.TurnComplete) and each.agent_id == agent]
    # And without being asked to.
    await peer_begins(mic, agent, barge_in=False)
    peer.say(*mic.sound(tone(300)), mic.cancel())
    before, _ = await during(peer, m.Ack)
    assert not [each for each in before if isinstance(each, m.TurnComplete) and each.agent_id == agent]
    peer.say(m.CancelTurnRequest(8, agent))
    _, complete = await during(peer, m.TurnComplete)
    assert isinstance(complete, m.TurnComplete)
    assert complete.status == m.TurnStatus.CANCELLED


async def test_a_short_utterance_ends_a_turn_and_is_answered_after_it(peer: Peer) -> None:
    mic, agent = await microphone(peer, vad_min_silence_ms=100), await peer.agent(SLOW)
    await begun(peer, agent)
    await peer_begins(mic, agent, hands_free=True)
    # So short that it may be over before the turn is.
    peer.say(*mic.sound(tone(200) + silence(100)))
    before, complete = await during(peer, m.TurnComplete)
    assert isinstance(complete, m.TurnComplete)
    assert (complete.request_id, complete.status) == (3, m.TurnStatus.CANCELLED)
    after, answered = await during(peer, m.TurnComplete)
    assert isinstance(answered, m.TurnComplete)
    assert [each.text for each in (*before, *after) if isinstance(each, m.WireTranscriptUpdate)] == ["", "w1 w2"]
    assert said([each for each in after if isinstance(each, m.AnswerText)]) == "You said: w1 w2"
    assert answered.request_id == 0


async def test_a_second_utterance_interrupts_the_answer_to_the_first(peer: Peer) -> None:
    mic, agent = await microphone(peer), await peer.agent(SLOW)
    peer.say(mic.begin(agent, barge_in=True), *mic.sound(tone(6000)), mic.end())
    _, answer = await during(peer, m.AnswerText)
    assert isinstance(answer, m.AnswerText)
    assert answer.request_id == 0
    peer.say(mic.begin(agent, barge_in=True), *mic.sound(tone(100)), mic.end())
    _, complete = await during(peer, m.TurnComplete)
    assert isinstance(complete, m.TurnComplete)
    assert complete.status == m.TurnStatus.CANCELLED
    await mic.updates()
    await peer.get(m.Ack)
    answers, complete = await peer.turn()
    assert said(answers) == "You said: w1"


# Microphones that never stop, and clients that do.


@pytest.mark.slow
async def test_an_endless_utterance_costs_little_and_nobody_waits_for_it(server: Served, peer: Peer) -> None:
    mic = await microphone(peer, sample_rate=48000, channels=2)
    second = tone(700, rate=48000, channels=2) + silence(300, rate=48000, channels=2)
    chunk = frame(encode(m.AudioBufferFrame(mic.id, second * 5)))
    # Of all that it was asked a model would take the count, again and again.
    line = m.NodeDescription("line", m.CannedResponseParams(inline_strings=("hello",)))
    async with server.peer() as other:
        made = await other.ask(m.CreateAgentRequest(2, m.GraphDescription((line,), "line")), m.CreateAgentResponse)
        await peer.ask(mic.begin(max_utterance_ms=0), m.Ack)
        tracemalloc.start()
        try:
            # The processor's time: others on this machine make the clock go on.
            since = process_time()
            talking = asyncio.create_task(_talk(peer, chunk, 40))
            slowest = 0.0
            while not talking.done():
                asked = process_time()
                other.say(m.SendMessageRequest(3, made.agent_id, "hello"))
                await other.turn()
                slowest = max(slowest, process_time() - asked)
            await talking
            peer.say(mic.end())
            updates = await mic.updates()
            took = process_time() - since
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert updates[-1].text == words(1, 1400)
    assert updates[-1].audio_ms_consumed == 200_000
    # All of it is 37 MiB.
    assert peak < 24 << 20
    assert slowest < 1.0
    assert took < 200 / 50


async def _talk(peer: Peer, chunk: bytes, times: int) -> None:
    for _ in range(times):
        peer.writer.write(chunk)
        await peer.writer.drain()


async def test_a_client_that_vanishes_in_an_utterance_leaves_nothing_behind(server: Served) -> None:
    async with server.peer() as peer:
        mic, agent = await microphone(peer), await peer.agent(SLOW)
        await peer_begins(mic, agent)
        peer.say(*mic.sound(tone(300)))
        await peer.get(m.WireTranscriptUpdate)
    async with server.peer() as other:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await other.ask(m.HealthRequest(1), m.HealthResponse)).sessions > 1:
                pass


@pytest.mark.parametrize("second", [False, True])
async def test_an_open_utterance_does_not_keep_a_server_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: bool
) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 10 * PATIENCE_SECONDS)
    async with served(tmp_path) as server, server.peer() as peer:
        mic = await microphone(peer)
        if second:
            # What the one before it has heard does not count.
            await mic.utter(tone(100))
        await peer.ask(mic.begin(), m.Ack)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await server.server.close()


@pytest.mark.parametrize("with_turn", [False, True])
async def test_an_utterance_may_end_while_the_server_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_turn: bool
) -> None:
    # Which nobody waits for.
    monkeypatch.setattr(serving, "GRACE_SECONDS", 10 * PATIENCE_SECONDS)
    async with served(tmp_path) as server, server.peer() as peer:
        mic, other, agent = await microphone(peer), await microphone(peer), await peer.agent(SLOW)
        await peer.ask(mic.begin(agent), m.Ack)
        peer.say(*mic.sound(tone(200)))
        assert (await peer.get(m.WireTranscriptUpdate)).kind == Kind.SPEECH_START
        if with_turn:
            await begun(peer, agent)
        closing = asyncio.create_task(server.server.close())
        await asyncio.sleep(0)
        # The rest of it, too; what is new is not taken, in whatever place.
        peer.say(other.begin(), *mic.sound(tone(100)), mic.end(), mic.begin())
        refused = [error.code for error in await told(peer, m.ErrorResponse, 2)]
        assert refused == [2001, 2001]
        *_, final = await told(peer, m.WireTranscriptUpdate, 2)
        assert (final.kind, final.text) == (FINAL, "w1 w2 w3")
        # The agent is not told: that would be another turn.
        (error,) = await told(peer, m.ErrorResponse, 1)
        assert (error.code, error.voice_input_id) in ((2001, mic.id), (3004, mic.id))
        await during(peer, m.Ack)
        if with_turn:
            # The server would wait for it.
            peer.say(m.CancelTurnRequest(5, agent))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await closing


async def test_an_utterance_may_be_cancelled_while_the_server_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 10 * PATIENCE_SECONDS)
    async with served(tmp_path) as server, server.peer() as peer:
        mic = await microphone(peer)
        peer.say(mic.begin(), *mic.sound(tone(100)))
        await told(peer, m.WireTranscriptUpdate, 1)
        closing = asyncio.create_task(server.server.close())
        await asyncio.sleep(0)
        await peer.ask(mic.cancel(), m.Ack)
        assert (await peer.get(m.ErrorResponse)).code == 2001
        assert await peer.hear() is None
        await closing


async def test_an_utterance_that_never_ends_is_cut_off_after_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 0.3)
    async with served(tmp_path) as server, server.peer() as peer:
        mic = await microphone(peer)
        peer.say(mic.begin(), *mic.sound(tone(100)))
        await told(peer, m.WireTranscriptUpdate, 1)
        closing = asyncio.create_task(server.server.close())
        await asyncio.sleep(0)
        peer.say(*mic.sound(silence(100)))
        assert (await peer.get(m.ErrorResponse)).code == 2001
        assert await peer.hear() is None
        await closing
