"""The client's voice inputs, against our own server with its Mock engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support.tryll_served import Served, echo, served
from tests.support.tryll_voice import silence, tone, words
from trunkline.wires.tryll.drive import RemoteVoice, Tryll
from trunkline.wires.tryll.drive_sync import SyncTryll
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind
from trunkline.wires.tryll.messages import TurnStatus, WireTranscriptUpdate

LONG = " ".join(["word"] * 500)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as made:
        yield made


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
    async with asyncio.timeout(5):
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
