"""What the process that speaks with eSpeak NG does before it has said anything. The engine is not loaded."""

from __future__ import annotations

import re

import pytest

from trunkline.models.voice.espeak_process import Espeak
from trunkline.models.voice.marks import WantedSpeech
from trunkline.models.voice.speakers import ESPEAK_SPEAKERS


class Voiceless(Espeak):
    """Its data has none of the voices."""

    def __init__(self) -> None:
        self._happened = []

    def _speak_as(self, speaker: int) -> bool:
        return False


@pytest.mark.parametrize(("speaker", "tried"), [(1, 1), (-1, 0), (len(ESPEAK_SPEAKERS), 0), (10**6, 0)])
def test_a_voice_that_is_not_there_is_named_also_for_a_number_that_no_voice_has(speaker: int, tried: int) -> None:
    with pytest.raises(RuntimeError, match=re.escape(f"no voice `{ESPEAK_SPEAKERS[tried]}`")):
        Voiceless().say(WantedSpeech("Hello.", speaker))
