"""A graph that speaks, with the real small model and the real voices, through a server in a process of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.local_model import MODEL, SHARED_CACHE, TIMEOUT_SECONDS, model_path
from tests.support.speech import pulled
from tests.support.tryll_process import TryllProcess, tryll_process
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Sound, Tryll
from trunkline.wires.tryll.errors import TryllError

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(TIMEOUT_SECONDS)]

#: The model says back what it hears: what is tested is the voice.
ECHO = m.ConfigureSessionRequest(tts_engine=m.InferenceEngine.SHERPA_ONNX)
REAL = ECHO.replace(inference_engine=m.InferenceEngine.LLAMA_CPP)
TEXT = "The northern gate is closed at night. Nobody comes in, and nobody goes out. Come back in the morning."
#: Half an hour aloud, and more than a minute of the processor's time.
LONG = " ".join(f"This is sentence number {number} of a very long speech." for number in range(1, 601))
#: The longest that one of them takes.
SENTENCE_SECONDS = 4.0
#: Within which a turn is over once it is cancelled, on a busy machine: far less than all of `LONG` takes on any. 200 ms
#: are promised on a quiet one.
STOP_SECONDS = 15.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TryllProcess]:
    model_path()
    for name in ("piper-joe", "espeak", "whisper-base", "silero-vad"):
        pulled(name)
    cache = tmp_path_factory.mktemp("cache")
    os.symlink(os.path.join(SHARED_CACHE, "models"), cache / "models")
    with tryll_process(environ={"TRUNKLINE_CACHE": str(cache)}) as made:
        yield made
        code, seconds = made.stop()
        assert (code, made.said) == (143, [])
        assert seconds < 10


def talking(**options: Any) -> m.GraphDescription:
    return m.GraphDescription((m.NodeDescription("talk", m.GenerateAndSpeakParams(**options)),), "talk")


async def test_the_real_model_is_heard_before_it_has_finished(server: TryllProcess) -> None:
    sampling = m.SamplingOverrides(temperature=0.0, max_tokens=120)
    graph = talking(system_prompt="You are a helpful assistant.", sampling=sampling)
    async with Tryll(server.host, server.port, config=REAL, reconnect=None) as tryll:
        agent = await tryll.create_agent(graph, default_model=MODEL, diagnostics=True)
        events: list[Any] = []
        async with agent.stream("Tell me three things about rivers, in three sentences.") as reply:
            while (event := await reply.next_event()) is not None:
                events.append(event)
        turn = reply.turn
    first = next(at for at, event in enumerate(events) if isinstance(event, Sound))
    assert any(isinstance(event, str) for event in events[first:])
    assert turn.sound is not None
    assert 8000 <= turn.sound.sample_rate <= 48_000
    assert turn.sound.seconds > 2
    assert 0 < float(turn.debug["talk.time_to_first_audio_ms"]) < turn.debug["wall_ms"]


@pytest.mark.parametrize("voice", ["piper-joe", "espeak"])
async def test_speed_changes_how_long_it_takes(server: TryllProcess, voice: str) -> None:
    seconds = {}
    async with Tryll(server.host, server.port, config=ECHO, reconnect=None) as tryll:
        for speed in (1.0, 0.5, 2.0):
            agent = await tryll.create_agent(talking(tts_model_name=voice, speed=speed), default_model="any")
            turn = await agent.ask(TEXT)
            assert turn.sound is not None
            seconds[speed] = turn.sound.seconds
    assert seconds[0.5] > 1.3 * seconds[1.0]
    assert seconds[2.0] < 0.85 * seconds[1.0]


async def test_a_voice_that_is_interrupted_stops_and_what_was_heard_is_remembered(server: TryllProcess) -> None:
    async with Tryll(server.host, server.port, config=ECHO, reconnect=None) as tryll:
        agent = await tryll.create_agent(talking(), default_model="any")
        async with agent.stream(LONG) as reply:
            heard = 0.0
            while heard < 8 and (event := await reply.next_event()) is not None:
                heard += event.seconds if isinstance(event, Sound) else 0
            begun = time.monotonic()
            await agent.cancel()
            turn = await reply.result()
        assert time.monotonic() - begun < STOP_SECONDS
        assert turn.cancelled
        user, assistant = await agent.history()
        assert user.text == LONG
        assert assistant.text.endswith(" of a very long speech.")
        assert f"You said: {LONG}".startswith(assistant.text)
        assert len(assistant.text) < len(LONG)


async def test_a_client_that_vanishes_leaves_the_voice_to_the_next(server: TryllProcess) -> None:
    async with server.peer(tts_engine=m.InferenceEngine.SHERPA_ONNX) as peer:
        made = await peer.ask(m.CreateAgentRequest(2, talking(), "any"), m.CreateAgentResponse)
        peer.say(m.SendMessageRequest(3, made.agent_id, LONG))
        while not isinstance(await peer.hear(), m.TtsAudioFrame):
            pass
    async with Tryll(server.host, server.port, config=ECHO, reconnect=None) as tryll:
        agent = await tryll.create_agent(talking(), default_model="any")
        turn = await agent.ask("Hello there, my friend.")
        assert turn.first_sound_seconds is not None
        assert turn.first_sound_seconds < STOP_SECONDS
        async with asyncio.timeout(STOP_SECONDS):
            while (await tryll.health()).turns_running:
                pass


async def test_a_voice_that_there_is_not_is_refused(server: TryllProcess) -> None:
    async with Tryll(server.host, server.port, config=ECHO, reconnect=None) as tryll:
        for name in ("no-such-voice", "whisper-base"):
            with pytest.raises(TryllError, match=name) as caught:
                await tryll.create_agent(talking(tts_model_name=name), default_model="any")
            assert caught.value.code == 4002


async def test_speech_interrupts_speech_and_is_answered(server: TryllProcess) -> None:
    config = ECHO.replace(stt_engine=m.InferenceEngine.SHERPA_ONNX)
    async with Tryll(server.host, server.port, config=config, reconnect=None) as tryll:
        agent = await tryll.create_agent(talking(), default_model="any")
        question = (await agent.ask("Please open the northern gate before noon.")).sound
        assert question is not None
        ear = await tryll.voice_input("whisper-base", sample_rate=question.sample_rate)
        started: list[float] = []
        ear.on_update(lambda update: started.append(time.monotonic()) if not update.text and not started else None)
        async with agent.stream(LONG) as reply:
            heard = 0.0
            while heard < 2 * SENTENCE_SECONDS:
                event = await reply.next_event()
                if isinstance(event, Sound):
                    heard += len(event.pcm) / 2 / event.sample_rate
            await ear.begin(agent=agent)
            await ear.send(question.pcm)
            turn = await reply.result()
            assert time.monotonic() - started[0] < STOP_SECONDS
        assert turn.cancelled
        assert "northern gate" in (await ear.end()).lower()
        assert ear.reply is not None
        answer = await ear.reply.result()
        assert "northern gate" in answer.text.lower()
        assert answer.sound is not None
        history = [entry.text for entry in await agent.history()]
        assert history[2] == LONG
        assert f"You said: {LONG}".startswith(history[3])
        assert len(history[3]) < len(LONG)
        assert history[5] == answer.text
