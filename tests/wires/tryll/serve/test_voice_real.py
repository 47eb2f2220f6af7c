"""Speech through the wire: one engine speaks, in real time, and the server understands it with another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest

from tests.support.local_model import SHARED_CACHE, THREADS, TIMEOUT_SECONDS
from tests.support.speech import collected, noise, pulled, word_errors
from tests.support.tryll_served import Peer, served
from tests.support.tryll_voice import FINAL, Microphone, silence
from trunkline.agents.graph.pool import ModelPool
from trunkline.models.mock_language import SLOW_SECONDS
from trunkline.models.voice import loading
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(TIMEOUT_SECONDS)]

REAL = m.InferenceEngine.SHERPA_ONNX
LONG = " ".join(["word"] * 2000)
TEXT = "Please open the heavy door at the end of the corridor, and tell the guard that we are coming tonight."
MORE = "Then bring me the lantern."
#: The words of which so many may be wrong, in each sentence.
ERRORS = 0.25
#: What a turn may go on for after somebody has begun to speak, in pieces of its answer: 0.2 s of it.
MOST_LATE_PIECES = int(0.2 / SLOW_SECONDS)


#: How much slower than real time somebody speaks who wants to be understood in between, on a busy machine.
SLOWER = 5.0


class Speaker:
    """Somebody who speaks at their own rate into a microphone of that rate."""

    def __init__(self, rate: int, texts: dict[str, bytes]) -> None:
        self.rate = rate
        self.texts = texts

    def silence(self, ms: int) -> bytes:
        return silence(ms, rate=self.rate)

    async def speak(self, mic: Microphone, pcm: bytes, slower: float = 1.0) -> None:
        """In real time, or so many times slower."""
        begun, step = monotonic(), self.rate // 20 * 2
        for number, frame in enumerate(mic.sound(pcm, step), 1):
            mic.peer.say(frame)
            await asyncio.sleep(begun + number * 0.05 * slower - monotonic())


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    for name in ("whisper-base", "moonshine-base", "silero-vad"):
        pulled(name)
    path = pulled("piper-joe")

    async def speak() -> Speaker:
        voice = await loading.load_piper("piper-joe", path, threads=THREADS)
        try:
            texts = {text: await collected(voice.speak(text)) for text in (TEXT, MORE)}
            return Speaker(voice.sample_rate, texts)
        finally:
            await voice.close()

    return asyncio.run(speak())


@pytest.fixture
async def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speaker: Speaker) -> AsyncIterator[Peer]:
    monkeypatch.setenv("TRUNKLINE_CACHE", SHARED_CACHE)
    async with served(tmp_path, ModelPool(threads=THREADS)) as server, server.peer() as made:
        await made.configure(stt_engine=REAL)
        yield made


def understood(said: str, heard: str) -> bool:
    wrong, words = word_errors(said, heard)
    return wrong < words * ERRORS


async def microphone(peer: Peer, speaker: Speaker, model: str) -> Microphone:
    request = m.CreateVoiceInputRequest(10, model, speaker.rate)
    return Microphone(peer, (await peer.ask(request, m.CreateVoiceInputResponse)).voice_input_id)


async def heard(mic: Microphone) -> list[m.WireTranscriptUpdate]:
    """What is told up to the end."""
    found: list[m.WireTranscriptUpdate] = []
    while not found or found[-1].kind != FINAL:
        if isinstance(update := await mic.peer.hear(), m.WireTranscriptUpdate):
            found.append(update)
    return found


@pytest.mark.parametrize("model", ["whisper-base", "moonshine-base"])
async def test_speech_is_understood_while_it_is_spoken(peer: Peer, speaker: Speaker, model: str) -> None:
    mic = await microphone(peer, speaker, model)
    await peer.ask(mic.begin(hands_free=True), m.Ack)
    pcm = speaker.silence(500) + speaker.texts[TEXT] + speaker.silence(1500)
    # Slowly enough for a busy machine: it listens again only when it has understood what came before.
    speaking = asyncio.create_task(speaker.speak(mic, pcm, SLOWER))
    found = await heard(mic)
    await speaking
    assert found[0].kind == Kind.SPEECH_START
    # They are revised: each takes the place of the one before.
    assert len({update.text for update in found if update.kind == Kind.PARTIAL}) >= 2
    assert understood(TEXT, found[-1].text)
    await mic.quiet()


async def test_a_pause_ends_a_segment_and_a_flood_is_understood_as_well(peer: Peer, speaker: Speaker) -> None:
    mic = await microphone(peer, speaker, "whisper-base")
    pcm = speaker.texts[TEXT] + speaker.silence(900) + speaker.texts[MORE]
    peer.say(mic.begin(), *mic.sound(pcm, 4000), mic.end())
    found = await heard(mic)
    kinds = [update.kind for update in found if update.kind != Kind.PARTIAL]
    # That somebody speaks again does not wait for the words before it.
    assert (kinds[0], sorted(kinds[1:3]), kinds[3:]) == (
        Kind.SPEECH_START, sorted((Kind.SPEECH_START, Kind.SEGMENT_FINAL)), [FINAL],
    )  # fmt: skip
    assert understood(f"{TEXT} {MORE}", found[-1].text)
    assert await peer.get(m.Ack) == m.Ack(21)


@pytest.mark.parametrize("model", ["whisper-base", "moonshine-base"])
async def test_silence_and_noise_have_no_text_and_interrupt_nobody(peer: Peer, speaker: Speaker, model: str) -> None:
    mic, agent = await microphone(peer, speaker, model), await peer.agent("mock-slow")
    peer.say(m.SendMessageRequest(3, agent, LONG))
    for pcm in (
        speaker.silence(4000),
        noise(4.0, 3000),
        speaker.silence(500) + noise(2.0, 6000) + speaker.silence(1000),
    ):
        for hands_free in (False, True):
            peer.say(mic.begin(agent, hands_free=hands_free, barge_in=True), *mic.sound(pcm, 4000), mic.end())
            found = await heard(mic)
            assert [update.text for update in found if update.text] == []
    while not isinstance(answer := await peer.hear(), m.AnswerText | m.TurnComplete):
        pass
    assert isinstance(answer, m.AnswerText)


async def test_speech_interrupts_a_turn_and_is_answered(peer: Peer, speaker: Speaker) -> None:
    mic, agent = await microphone(peer, speaker, "whisper-base"), await peer.agent("mock-slow")
    peer.say(m.SendMessageRequest(3, agent, LONG), mic.begin(agent, hands_free=True, barge_in=True))
    speaking = asyncio.create_task(speaker.speak(mic, speaker.texts[MORE] + speaker.silence(1000)))
    is_started = is_over = False
    late = 0
    text = ""
    answer: list[str] = []
    message: m.Message | None = None
    while not isinstance(message, m.TurnComplete) or message.request_id:
        message = await peer.hear()
        if isinstance(message, m.WireTranscriptUpdate):
            is_started = True
            text = message.text if message.kind == FINAL else ""
        elif isinstance(message, m.TurnComplete) and message.request_id == 3:
            assert message.status == m.TurnStatus.CANCELLED
            assert is_started
            is_over = True
        elif isinstance(message, m.AnswerText) and not message.request_id:
            answer.append(message.text)
        elif isinstance(message, m.AnswerText):
            assert not is_over
            late += is_started
    await speaking
    assert is_over
    assert late <= MOST_LATE_PIECES
    assert understood(MORE, text)
    assert "".join(answer) == f"You said: {text}"
