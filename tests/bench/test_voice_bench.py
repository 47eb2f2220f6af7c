"""The benchmark of spoken conversations runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.benchmarks import measured
from tests.support.local_model import SHARED_CACHE, TIMEOUT_SECONDS, model_path
from tests.support.speech import pulled

PROMISED = [
    ("end of speech to UtteranceFinal", "whisper by CTranslate2", None),
    ("UtteranceFinal to first token", "xllamacpp", None),
    ("first token to first sentence", "xllamacpp", None),
    ("first sentence to first audio", "piper", None),
    ("end of speech to first audio", "the engines in a row", "wall <= 1.1"),
]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_every_stage_is_measured_against_its_engine(tmp_path: Path) -> None:
    model_path()
    pulled("whisper-base")
    pulled("piper-joe")
    rows = measured("voice", tmp_path, PROMISED, timeout=TIMEOUT_SECONDS, XDG_CACHE_HOME=os.path.dirname(SHARED_CACHE))
    assert rows[-1]["subject"]["median"] > 100, "nobody hears and speaks in a tenth of a second"
    stages = sum(row["subject"]["median"] for row in rows[:-1])
    assert rows[-1]["subject"]["median"] == pytest.approx(stages, rel=0.01)
