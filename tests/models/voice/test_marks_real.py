"""When the real engines say what: Piper and eSpeak NG."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.models.voice.test_engines_real import make_voice
from tests.support.local_model import TIMEOUT_SECONDS
from tests.support.speech import pulled
from trunkline.models.voice.engines import Voice
from trunkline.models.voice.marks import IPA_BEGIN, OWN_BEGIN, PHONEMES_END, WORD, SpokenMark, WantedSpeech
from trunkline.models.voice.speakers import ESPEAK_SPEAKERS
from trunkline.models.voice.visemes import VISEMES

pytestmark = [pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]

TEXT = "Out of the blue, 42 knights - all of them old - came to the gate. Nobody knew twenty-five of them! It's late."


async def said(voice: Voice, text: str, speaker: int = 0) -> tuple[list[SpokenMark], bytes]:
    """The marks of a text and its sound, of which every rule holds."""
    found: list[SpokenMark] = []
    sound = b""
    async for each in voice.say(WantedSpeech(text, speaker, timings=True)):
        if isinstance(each, bytes):
            sound += each
        else:
            # Before the sound that they are about.
            assert all(mark.start >= len(sound) // 2 for mark in each)
            found += each
    return found, sound


@pytest.mark.parametrize("name", ["piper-joe", "espeak"])
def test_words_and_visemes_cover_the_sound_in_order(name: str) -> None:
    pulled(name)

    async def check() -> None:
        voice = await make_voice(name)
        try:
            found, sound = await said(voice, TEXT)
        finally:
            await voice.close()
        size = len(sound) // 2
        words = [mark for mark in found if mark.kind == WORD]
        assert [mark.text for mark in words] == [word for word in TEXT.split() if word != "-"]
        assert all(mark.start < mark.end for mark in found)
        assert all(one.end <= other.start for one, other in pairwise(words))
        shown = [mark for mark in found if mark.kind != WORD]
        assert {mark.text for mark in shown} <= set(VISEMES)
        # From the first sample to the last, without a gap.
        assert (shown[0].start, shown[-1].end) == (0, size)
        assert all(one.end == other.start for one, other in pairwise(shown))
        # Words fill most of it; the rest is silence.
        quiet = sum(mark.end - mark.start for mark in shown if mark.text == "sil")
        spoken = sum(mark.end - mark.start for mark in words)
        assert abs(size - quiet - spoken) < size / 5
        # The mouth shuts for `m`, in the middle of the word.
        them = next(mark for mark in words if mark.text == "them")
        assert any(mark.text == "PP" and them.start < mark.start < them.end + 800 for mark in shown)

    asyncio.run(check())


@pytest.mark.parametrize("name", ["piper-joe", "espeak"])
def test_phonemes_are_said_and_brackets_of_somebody_else_s_are_not_phonemes(name: str) -> None:
    pulled(name)

    async def check() -> None:
        voice = await make_voice(name)
        try:
            plain, _ = await said(voice, "Say tea now.")
            spelled, _ = await said(voice, f"Say {IPA_BEGIN}muː{PHONEMES_END} now.")
            owned, _ = await said(voice, f"Say {OWN_BEGIN}{'mu:' if name == 'espeak' else 'muː'}{PHONEMES_END} now.")
            brackets, _ = await said(voice, "Say [[m u:]] now.")
        finally:
            await voice.close()

        def shows_m(marks: list[SpokenMark]) -> bool:
            words = [mark for mark in marks if mark.kind == WORD]
            return any(mark.text == "PP" and words[1].start <= mark.end <= words[1].end for mark in marks)

        assert not shows_m(plain)
        assert shows_m(spelled)
        assert shows_m(owned)
        assert next(mark.text for mark in brackets if mark.kind == WORD) == "Say"
        assert [mark.text for mark in brackets if mark.kind == WORD][-1] == "now."

    asyncio.run(check())


def test_each_of_espeak_s_speakers_speaks_otherwise() -> None:
    pulled("espeak")

    async def check() -> None:
        voice = await make_voice("espeak")
        try:
            assert voice.voices == ESPEAK_SPEAKERS
            sounds = [(await said(voice, "Hello there, my friend.", number))[1] for number in range(len(voice.voices))]
            again = (await said(voice, "Hello there, my friend.", 0))[1]
        finally:
            await voice.close()
        assert all(sounds)
        assert len(set(sounds)) == len(sounds)
        assert abs(len(again) - len(sounds[0])) < 1000

    asyncio.run(check())


#: Piper with a network that only notes whom it is to speak as, and says how long each phoneme lasts.
PROGRAM = """
import json, sys
import numpy, onnxruntime
from trunkline.models.voice.marks import WantedSpeech

class Network:
    def __init__(self, *_, **__):
        self.asked = []
    def run(self, outputs, inputs, options):
        self.asked.append(inputs["sid"].tolist())
        count = inputs["input"].shape[1]
        return [numpy.zeros((1, 1, 1, 256 * count), "float32"), numpy.ones((1, 1, count), "float32")]

onnxruntime.InferenceSession = Network
from trunkline.models.voice.piper_process import Piper
voice = Piper(sys.argv[1], 1)
for speaker in (0, 2, 3):
    sizes = [len(each) // 2 for each in voice.say(WantedSpeech("Hi.", speaker)) if isinstance(each, bytes)]
marks = [each for each in voice.say(WantedSpeech("Hi there.", 1, timings=True)) if isinstance(each, tuple)][0]
network = voice._voice.session._session
print(json.dumps([voice.voices, network.asked[1:], [mark.text for mark in marks if mark.kind == 0]]))
"""


def test_a_piper_voice_of_several_speakers_speaks_as_the_one_that_is_asked_for(tmp_path: Path) -> None:
    settings = json.loads(Path(f"{pulled('piper-joe')}.json").read_bytes())
    settings |= {"num_speakers": 3, "speaker_id_map": {"Ann": 0, "Bob": 1, "Cid": 2}}
    (tmp_path / "voice.onnx").write_bytes(b"")
    (tmp_path / "voice.onnx.json").write_text(json.dumps(settings))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "voice.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # A number that no speaker has is the first one's; nodes are refused it before.
    assert json.loads(done.stdout) == [["Ann", "Bob", "Cid"], [[0], [2], [0], [1]], ["Hi", "there."]]
