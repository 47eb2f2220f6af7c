"""What the documentation says of real models, which `test_examples` runs without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from tests.docs.examples import ROOT, Save, steps
from tests.models.test_embedding_onnx import onnx_path
from tests.support.local_model import SHARED_CACHE, TIMEOUT_SECONDS, model_path
from tests.support.speech import pulled, words
from tests.support.tryll_process import tryll_process

pytestmark = [pytest.mark.docs, pytest.mark.long, pytest.mark.process, pytest.mark.timeout(TIMEOUT_SECONDS)]

_REAL = os.environ | {"TRUNKLINE_CACHE": SHARED_CACHE}


def saved(page: str, name: str, folder: Path) -> Path:
    """The file that a page tells people to save under that name."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = next(step for step in steps(text, sys.executable) if isinstance(step, Save) and step.name == name)
    path = folder / name
    path.write_text(found.content, encoding="utf-8")
    return path


def printed(folder: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=_REAL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_character_that_speaks_is_heard(tmp_path: Path) -> None:
    model_path()
    for name in ("moonshine-base", "espeak", "silero-vad"):
        pulled(name)
    program = saved("reference/tryll-client.md", "aloud.py", tmp_path)
    with tryll_process(environ=_REAL) as server:
        said, heard = printed(tmp_path, program.name, f"127.0.0.1:{server.port}").split("Heard: ")
    with wave.open(str(tmp_path / "answer.wav")) as sound:
        assert sound.getnframes() > sound.getframerate() / 2
    assert words(said)
    assert words(heard)


@pytest.mark.parametrize(
    ("message", "node", "distance"),
    [
        ("I need a new sword.", "buying", 0.34),
        ("How are you?", "buying", 0.87),
        ("See you tomorrow.", "leaving", 0.61),
        ("Where do I have to go?", "leaving", 0.65),
    ],
)
def test_examples_are_as_far_away_as_it_says(message: str, node: str, distance: float, tmp_path: Path) -> None:
    model_path()
    onnx_path()
    graph = saved("how-to/write-a-graph.md", "ways.yaml", tmp_path)
    # Only the distance counts: the model need not say much.
    graph.write_text(graph.read_text(encoding="utf-8").replace("max_tokens: 60", "max_tokens: 1"), encoding="utf-8")
    run = ("-m", "trunkline", "graph", "run", graph.name, "--engine", "local")
    printed(tmp_path, *run, "-m", message, "--record", "turn.json")
    turn = json.loads((tmp_path / "turn.json").read_text(encoding="utf-8"))
    assert float(turn[f"{node}.raw_distance"]) == pytest.approx(distance, abs=0.02)
