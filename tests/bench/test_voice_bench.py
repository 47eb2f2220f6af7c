"""The benchmark of spoken conversations runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench._measure import clean_environment

from tests.support.local_model import SHARED_CACHE, TIMEOUT_SECONDS, model_path
from tests.support.speech import pulled

ROOT = Path(__file__).resolve().parent.parent.parent

PROMISED = [
    ("end of speech to UtteranceFinal", "whisper by CTranslate2", None),
    ("UtteranceFinal to first token", "xllamacpp", None),
    ("first token to first sentence", "xllamacpp", None),
    ("first sentence to first audio", "piper", None),
    ("end of speech to first audio", "the engines in a row", "wall <= 1.1"),
]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_every_stage_is_measured_against_its_engine(tmp_path: Path) -> None:
    model_path()
    pulled("whisper-base")
    pulled("piper-joe")
    shared = {"HOME": os.environ["HOME"], "XDG_CACHE_HOME": os.path.dirname(SHARED_CACHE)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "voice.py"), "--tiny", "--json"],
        cwd=tmp_path, env=clean_environment(TMPDIR=str(tmp_path)) | shared,
        capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert [(row["name"], row["control_name"], row["goal"]) for row in rows] == PROMISED
    assert rows[-1]["subject"]["median"] > 100, "nobody hears and speaks in a tenth of a second"
    stages = sum(row["subject"]["median"] for row in rows[:-1])
    assert rows[-1]["subject"]["median"] == pytest.approx(stages, rel=0.01)
