"""Sound for a Tryll server that hears loudness, and what it makes of it."""

from __future__ import annotations

from array import array
from math import pi, sin
from typing import Any

from tests.support.tryll_served import Peer
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind

FINAL = Kind.UTTERANCE_FINAL


def tone(ms: int, *, rate: int = 16000, channels: int = 1, height: int = 8000) -> bytes:
    """A tone of 440 Hz."""
    samples = (int(height * sin(2 * pi * 440 * at / rate)) for at in range(rate * ms // 1000))
    return array("h", (sample for sample in samples for _ in range(channels))).tobytes()


def silence(ms: int, *, rate: int = 16000, channels: int = 1) -> bytes:
    return bytes(rate * ms // 1000 * channels * 2)


def words(first: int, last: int) -> str:
    return " ".join(f"w{number}" for number in range(first, last + 1))


class Microphone:
    """A voice input, and whoever speaks into it."""

    def __init__(self, peer: Peer, voice_id: int) -> None:
        self.peer = peer
        self.id = voice_id

    def begin(self, agent_id: int = 0, *, hands_free: bool = False, **options: Any) -> m.BeginUtteranceRequest:
        return m.BeginUtteranceRequest(20, self.id, agent_id, hands_free, **options)

    def end(self) -> m.EndUtteranceRequest:
        return m.EndUtteranceRequest(21, self.id)

    def cancel(self) -> m.CancelUtteranceRequest:
        return m.CancelUtteranceRequest(22, self.id)

    def destroy(self) -> m.DestroyVoiceInputRequest:
        return m.DestroyVoiceInputRequest(23, self.id)

    def sound(self, pcm: bytes, step: int = 0) -> list[m.AudioBufferFrame]:
        """Frames with a sound, of so many bytes each, or all in one."""
        step = step or len(pcm) or 1
        return [m.AudioBufferFrame(self.id, pcm[at : at + step]) for at in range(0, len(pcm), step)]

    async def updates(self) -> list[m.WireTranscriptUpdate]:
        """What is told up to the end of the utterance. An `Ack` may come in between; every rule holds."""
        found: list[m.WireTranscriptUpdate] = []
        while not found or found[-1].kind != FINAL:
            heard = await self.peer.hear()
            if not isinstance(heard, m.Ack):
                assert isinstance(heard, m.WireTranscriptUpdate), heard
                assert heard.voice_input_id == self.id
                found.append(heard)
        self.check(found)
        return found

    @staticmethod
    def check(updates: list[m.WireTranscriptUpdate]) -> None:
        times = [update.audio_ms_consumed for update in updates]
        assert times == sorted(times)
        speaking = False
        segments = []
        for update in updates:
            if update.kind == Kind.SPEECH_START:
                assert not update.text
                speaking = True
            elif update.kind == Kind.PARTIAL:
                assert speaking
                assert update.text
                assert update.text in updates[-1].text
            elif update.kind == Kind.SEGMENT_FINAL:
                segments.append(update.text)
                speaking = False
            else:
                assert update is updates[-1]
        assert updates[-1].text.startswith(" ".join(filter(None, segments)))

    async def utter(self, pcm: bytes, step: int = 0, **options: Any) -> list[m.WireTranscriptUpdate]:
        """A whole utterance that the client ends."""
        self.peer.say(self.begin(**options), *self.sound(pcm, step), self.end())
        found = await self.updates()
        if options.get("hands_free"):
            return found
        assert await self.peer.get(m.Ack) == m.Ack(21)
        return found

    async def quiet(self) -> None:
        """It is idle, and nothing was told since: whatever is asked for in this place comes after it."""
        assert await self.peer.refused(self.cancel()) == 4104


async def microphone(peer: Peer, **options: Any) -> Microphone:
    made = await peer.ask(m.CreateVoiceInputRequest(10, "any", **options), m.CreateVoiceInputResponse)
    assert made.request_id == 10
    return Microphone(peer, made.voice_input_id)


def kinds(updates: list[m.WireTranscriptUpdate]) -> list[int]:
    return [update.kind for update in updates]
