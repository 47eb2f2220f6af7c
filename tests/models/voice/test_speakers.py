from __future__ import annotations

import json
from pathlib import Path

import pytest

from trunkline.models import catalog
from trunkline.models.voice.speakers import ESPEAK_SPEAKERS, MAX_SPEAKERS, piper_speakers, speakers


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ("0",)),
        ({"num_speakers": 1, "speaker_id_map": {}}, ("0",)),
        ({"num_speakers": 3, "speaker_id_map": {"Bob": 1, "Ann": 0}}, ("Ann", "Bob", "2")),
        ({"num_speakers": "many"}, ("0",)),
        ({"num_speakers": MAX_SPEAKERS + 1}, ("0",)),
    ],
)
def test_a_piper_voice_names_its_speakers(settings: dict[str, object], names: tuple[str, ...]) -> None:
    assert piper_speakers(settings) == names


def test_the_speakers_of_a_model_are_known_before_it_is_loaded(tmp_path: Path) -> None:
    model = tmp_path / "voice.onnx"
    piper, espeak = catalog.find("piper-joe"), catalog.find("espeak")
    assert speakers(piper, str(model)) == ()
    (tmp_path / "voice.onnx.json").write_text(json.dumps({"num_speakers": 2, "speaker_id_map": {"a": 0, "b": 1}}))
    assert speakers(piper, str(model)) == ("a", "b")
    (tmp_path / "voice.onnx.json").write_text("[")
    assert speakers(piper, str(model)) == ()
    assert speakers(espeak, "")[0] == ESPEAK_SPEAKERS[0] == "en-us"
    assert speakers(catalog.find("whisper-base"), "") == ()
    assert len(set(ESPEAK_SPEAKERS)) == len(ESPEAK_SPEAKERS)
