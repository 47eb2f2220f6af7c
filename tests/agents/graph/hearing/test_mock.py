"""The recognizer of the Mock engine, fed directly: on the wire, pieces that wait are put together."""

from __future__ import annotations

import pytest

from tests.support.tryll_voice import FINAL, silence, tone
from trunkline.agents.graph.hearing.mock import MockUtterance
from trunkline.agents.graph.hearing.pcm import PcmFormat
from trunkline.agents.graph.hearing.utterance import ListeningOptions
from trunkline.core.faults import Fault


class Notes:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str, int]] = []

    def update(self, kind: int, text: str, audio_ms: int) -> None:
        self.heard.append((kind, text, audio_ms))

    def failed(self, error: Fault) -> None:
        raise error


@pytest.mark.parametrize("rate", [8001, 11025, 16000, 47999])
@pytest.mark.parametrize("hands_free", [False, True])
async def test_when_something_was_heard_does_not_depend_on_how_the_sound_came(rate: int, hands_free: bool) -> None:
    pcm = tone(430, rate=rate) + silence(250, rate=rate) + tone(310, rate=rate)
    heard = []
    # All of it, two pieces at a time, just one, and a little more than that.
    for step in (len(pcm), rate // 5 * 2, rate // 10 * 2, rate // 10 * 2 + 2):
        notes = Notes()
        utterance = MockUtterance(ListeningOptions(PcmFormat(rate), 200, hands_free), notes)
        for at in range(0, len(pcm), step):
            await utterance.feed(pcm[at : at + step])
        await utterance.finish()
        heard.append(notes.heard)
    assert heard[0][-1][0] == FINAL
    assert heard[1:] == heard[:1] * 3
