"""The client's voice inputs, against our own server with its Mock engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served, echo
from tests.support.tryll_stub import TryllStub
from tests.support.tryll_voice import silence, tone, words
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.hearing.mock import MockUtterance
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import RemoteVoice, Tryll
from trunkline.wires.tryll.drive.sync import SyncTryll
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind
from trunkline.wires.tryll.messages import TurnStatus, WireTranscriptUpdate

LONG = " ".join(["word"] * 500)


@pytest.fixture
async def tryll(server: Served) -> AsyncIterator[Tryll]:
    async with Tryll(server.host, server.port) as made:
        yield made


async def refused(action: Callable[[], object]) -> int:
    with pytest.raises(TryllError) as caught:
        await action()  # type: ignore[misc]  # a coroutine
    return caught.value.code


async def test_what_is_said_is_written_down(tryll: Tryll) -> None:
    async with await tryll.voice_input("any", sample_rate=48000, channels=2) as voice:
        for _ in range(2):
            await voice.begin()
            # More than one frame carries.
            await voice.send(tone(3000, rate=48000, channels=2))
            assert await voice.end() == words(1, 30)
            assert voice.reply is None
            # Asked again, it is the same.
            assert await voice.end() == words(1, 30)


async def test_updates_come_one_after_the_other_and_to_a_listener(tryll: Tryll) -> None:
    voice = await tryll.voice_input("any", vad_min_silence_ms=200)
    heard: list[WireTranscriptUpdate] = []

    def listen(update: WireTranscriptUpdate) -> None:
        heard.append(update)
        raise RuntimeError("listeners may fail")

    voice.on_update(listen)
    await voice.begin(hands_free=True)
    await voice.send(tone(300) + silence(200))
    found = [update async for update in voice.updates()]
    assert [update.kind for update in found] == [Kind.SPEECH_START, Kind.PARTIAL, Kind.UTTERANCE_FINAL]
    assert heard == found
    assert await voice.transcript() == await voice.end() == "w1 w2 w3"


async def test_the_agent_answers_what_was_said(tryll: Tryll) -> None:
    agent = await tryll.create_agent(echo(), default_model="any")
    voice = await tryll.voice_input("any")
    for _ in range(2):
        await voice.begin(agent=agent)
        await voice.send(tone(200))
        assert await voice.end() == "w1 w2"
        assert voice.reply is not None
        assert [piece async for piece in voice.reply] == ["You", " said:", " w1", " w2"]
        assert voice.reply.turn.status == TurnStatus.SUCCESS
    assert (await agent.ask("hello")).text == "You said: hello"
    assert [entry.text for entry in await agent.history()][:2] == ["w1 w2", "You said: w1 w2"]


async def test_speech_interrupts_an_answer_unless_it_is_not_to(tryll: Tryll) -> None:
    agent = await tryll.create_agent(echo(), default_model="mock-slow")
    voice = await tryll.voice_input("any")
    async with agent.stream(LONG) as reply:
        await anext(reply)
        await voice.begin(agent=agent, barge_in=False)
        await voice.send(tone(200))
        assert await voice.end() == "w1 w2"
        assert voice.reply is not None
        assert await refused(voice.reply.result) == 3004
        assert not reply.over
        await voice.begin(agent=agent)
        await voice.send(tone(100))
        assert await voice.end() == "w1"
        assert (await reply.result()).cancelled
    assert voice.reply is not None
    assert (await voice.reply.result()).text == "You said: w1"


async def test_a_message_waits_for_the_end_of_a_turn_that_the_server_has_begun(tryll: Tryll) -> None:
    agent = await tryll.create_agent(echo(), default_model="mock-slow")
    voice = await tryll.voice_input("any")
    await voice.begin(agent=agent)
    await voice.send(tone(500))
    await voice.end()
    assert voice.reply is not None
    assert (await agent.ask("hello")).text == "You said: hello"
    assert voice.reply.turn.text == "You said: w1 w2 w3 w4 w5"
    await voice.begin(agent=agent)
    await voice.send(tone(20_000))
    await voice.end()
    assert voice.reply is not None
    assert await refused(lambda: agent.ask("hello", timeout=0.05)) == 3004
    await agent.cancel()
    assert (await voice.reply.result()).cancelled
    assert (await agent.ask("hello")).text == "You said: hello"


async def test_each_turn_that_the_server_begins_has_its_own_frames_and_its_own_refusal() -> None:
    ids = count(1)
    async with TryllStub() as stub, Tryll(port=stub.port) as tryll:
        stub.answers[m.CreateVoiceInputRequest] = lambda _, asked: [
            m.CreateVoiceInputResponse(asked.request_id, next(ids))
        ]
        agent = await tryll.create_agent(echo())
        voices = [await tryll.voice_input("any") for _ in range(3)]
        for voice in voices:
            await voice.begin(agent=agent)
        stub.peers[0].say([WireTranscriptUpdate(voice.id, Kind.UTTERANCE_FINAL, "x") for voice in voices])
        stub.peers[0].say([m.ErrorResponse(0, 2001, "No.", agent.id)])
        for text in "12":
            stub.peers[0].say([m.AnswerText(0, agent.id, text, True), m.TurnComplete(0, agent.id)])
        assert (await agent.ask("y")).text == "y "
        first, second, third = [voice.reply for voice in voices]
        assert first is not None
        assert second is not None
        assert third is not None
        assert (first.turn.text, second.turn.text) == ("1", "2")
        assert await refused(third.result) == 2001


async def test_an_answer_that_is_interrupted_ends_and_the_next_one_has_its_own(tryll: Tryll) -> None:
    agent = await tryll.create_agent(echo(), default_model="mock-slow")
    voice = await tryll.voice_input("any", vad_min_silence_ms=100)
    replies = []
    for length in (4000, 200):
        await voice.begin(agent=agent, hands_free=True)
        await voice.send(tone(length) + silence(200))
        await voice.transcript()
        assert voice.reply is not None
        replies.append(voice.reply)
    first, second = [await asyncio.wait_for(reply.result(), PATIENCE_SECONDS) for reply in replies]
    assert first.cancelled
    assert second.text == "You said: w1 w2"


async def test_last_words_are_those_of_the_utterance_before(tryll: Tryll) -> None:
    voice = await tryll.voice_input("any")
    await voice.begin()
    await voice.send(tone(300))
    before, link = voice._utterance, voice._home
    assert link is not None
    ending = asyncio.create_task(voice.end())
    await until(lambda: link._pending)
    ending.cancel()
    # They are on their way, and so is this.
    await voice.begin()
    assert before.transcript == "w1 w2 w3"
    await voice.send(tone(700))
    assert await voice.end() == words(1, 7)


@pytest.mark.parametrize("how", ["cancelled", "late"])
async def test_whoever_gives_up_on_beginning_can_begin_again(tryll: Tryll, how: str) -> None:
    voice = await tryll.voice_input("any")
    if how == "late":
        assert await refused(lambda: voice.begin(timeout=0)) == 1003
    else:
        link = voice._home
        assert link is not None
        beginning = asyncio.create_task(voice.begin())
        await until(lambda: link._pending)
        beginning.cancel()
        await asyncio.wait([beginning])
    await voice.begin()
    # Not so while another one is heard.
    assert await refused(lambda: voice.begin(timeout=0)) == 1003
    await voice.send(tone(100))
    assert await voice.end() == "w1"


async def test_a_voice_input_may_be_destroyed_before_its_last_words_are_answered(
    tryll: Tryll, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def waits(*_: object) -> None:
        await gate.wait()

    monkeypatch.setattr(GraphAgent, "change", waits)
    agent = await tryll.create_agent(echo(), default_model="mock-slow")
    # They are told, and wait for the agent.
    voice = await tryll.voice_input("any")
    changing = asyncio.create_task(agent.change("say", m.GenerateParams()))
    await voice.begin(agent=agent)
    await voice.send(tone(100))
    await voice.end()
    reply = voice.reply
    await voice.destroy()
    gate.set()
    await changing
    assert reply is not None
    assert (await reply.result()).text == "You said: w1"
    # They were not even told when the client wanted no more.
    voice = await tryll.voice_input("any", vad_min_silence_ms=100)
    await voice.begin(agent=agent, hands_free=True)
    await voice.send(tone(200) + silence(100))
    await voice.destroy()
    assert await voice.transcript() == "w1 w2"
    assert (await agent.ask("typed")).text == "You said: typed"
    assert [entry.text for entry in await agent.history()][-4:-1] == ["w1 w2", "You said: w1 w2", "typed"]


async def test_an_utterance_that_fails_on_the_server_ends(tryll: Tryll, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*_: object) -> None:
        raise ZeroDivisionError

    voice = await tryll.voice_input("any")
    for name in ("_hear", "_hear_out"):
        await voice.begin(hands_free=True)
        with monkeypatch.context() as patch:
            patch.setattr(MockUtterance, name, breaks)
            await voice.send(tone(300))
            if name == "_hear":
                assert await voice.transcript(timeout=5) == ""
            else:
                assert await refused(voice.end) == 4100
        assert await voice.transcript(timeout=5) == await voice.end() == ""
    await voice.begin()
    await voice.send(tone(100))
    assert await voice.end() == "w1"


async def test_an_answer_that_nobody_reads_on_is_stopped(tryll: Tryll) -> None:
    agent = await tryll.create_agent(echo(), default_model="mock-slow")
    voice = await tryll.voice_input("any")
    await voice.begin(agent=agent)
    await voice.send(tone(20_000))
    await voice.end()
    reply = voice.reply
    assert reply is not None
    await anext(reply)
    reply.leave()
    assert (await reply.result()).cancelled


async def test_what_cannot_be_is_raised(tryll: Tryll) -> None:
    assert await refused(lambda: tryll.voice_input("any", channels=7)) == 4101
    voice = await tryll.voice_input("any")
    assert await voice.end() == ""
    assert await refused(voice.cancel) == 4104
    agent = await tryll.create_agent(echo(), default_model="any")
    await agent.destroy()
    assert await refused(lambda: voice.begin(agent=agent)) == 3002
    await voice.begin(max_ms=100)
    assert await refused(voice.begin) == 4103
    with pytest.raises(ValueError, match="16 bits"):
        await voice.send(b"x")
    await voice.send(tone(200))
    assert await refused(voice.transcript) == 4105
    with pytest.raises(TryllError):
        _ = [update async for update in voice.updates()]
    await voice.begin()
    await voice.cancel()
    assert await refused(voice.transcript) == 4104
    await voice.destroy()
    await voice.destroy()
    assert await refused(voice.begin) == 4102


async def test_a_lost_connection_loses_the_utterance_and_not_the_voice_input(server: Served, tryll: Tryll) -> None:
    agent = await tryll.create_agent(echo(), default_model="any")
    voice = await tryll.voice_input("any")
    await voice.begin(agent=agent)
    waiting = asyncio.create_task(voice.transcript())
    (connection,) = server.server.connections
    before = voice.id
    connection.cut()
    assert await refused(lambda: waiting) == 1002
    assert await refused(lambda: voice.send(tone(100))) == 1002
    await voice.begin(agent=agent)
    assert voice.id != before
    await voice.send(tone(100))
    assert await voice.end() == "w1"
    assert voice.reply is not None
    assert (await voice.reply.result()).text == "You said: w1"


async def test_whoever_gives_up_on_a_voice_input_leaves_none_behind(server: Served, tryll: Tryll) -> None:
    making = asyncio.create_task(RemoteVoice.made(tryll, "any"))
    await asyncio.sleep(0)
    making.cancel()
    await asyncio.wait({making})
    # Its answer came late, and was answered.
    voice = await tryll.voice_input("any")
    assert voice.id & 0xFFFFFF == 2
    (connection,) = server.server.connections
    assert connection.session is not None
    assert connection.session.voices is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while connection.session.voices.find(voice.id - 1) is not None:
            await tryll.health()
    assert connection.session.voices.find(voice.id) is not None


async def test_code_that_waits_has_voices_too(server: Served) -> None:
    def talk() -> list[str]:
        with SyncTryll(server.host, server.port) as tryll:
            agent = tryll.create_agent(echo(), default_model="any")
            threads: set[int] = set()
            with tryll.voice_input("any", vad_min_silence_ms=200) as voice:
                voice.on_update(lambda _: threads.add(threading.get_ident()))
                voice.begin(agent=agent, hands_free=True)
                voice.send(tone(300) + silence(200))
                texts = [update.text for update in voice.updates()]
                texts.append(voice.transcript())
                assert voice.reply is not None
                texts += voice.reply
                voice.begin()
                voice.send(tone(100))
                texts.append(voice.end())
                voice.begin()
                voice.cancel()
            assert threads
            assert threading.get_ident() not in threads
            return texts

    assert await asyncio.to_thread(talk) == [
        "", "w1 w2 w3", "w1 w2 w3", "w1 w2 w3", "You", " said:", " w1", " w2", " w3", "w1",
    ]  # fmt: skip
