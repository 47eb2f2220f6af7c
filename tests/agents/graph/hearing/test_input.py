"""Voice inputs: what they are made of, and what is wrong with some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph.hearing.input import MAX_HOTWORDS, open_voice
from trunkline.agents.graph.hearing.mock import MockUtterance
from trunkline.agents.graph.hearing.real import RealUtterance
from trunkline.agents.graph.hearing.threads import DetectionThreads
from trunkline.agents.graph.shelf import Shelf
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault
from trunkline.core.graph.hosting import VoiceInputDescription
from trunkline.models.voice.engines import Detector, Recognizer
from trunkline.wires.tryll.messages import InferenceEngine

REAL = InferenceEngine.SHERPA_ONNX


class Silent:
    """A listener, a recognizer and a detector."""

    name = "silent"
    segment_seconds = 15.0
    window_ms = 32

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.errors: list[Fault] = []
        self.detection = DetectionThreads()

    async def recognizer(self, name: str, engine: int) -> Recognizer:
        self.asked.append((name, engine))
        return self  # type: ignore[return-value]  # what is missing is not used

    def detector(self, threshold: float) -> Detector:
        self.asked.append(threshold)
        return self

    def feed(self, pcm: bytes) -> list[float]:
        return [0.0] * (len(pcm) // 1024)

    def update(self, kind: int, text: str, audio_ms: int) -> None: ...

    def failed(self, error: Fault) -> None:
        self.errors.append(error)


class Storage:
    """A storage folder, and what fetches models."""

    def __init__(self, root: Path) -> None:
        self.shelf = Shelf(str(root))
        self.fetched: list[str] = []
        self.engines = Silent()

    async def fetch(self, name: str) -> None:
        self.fetched.append(name)

    async def open(self, engine: int, **fields: Any) -> Any:
        request = VoiceInputDescription("model", **fields)
        return await open_voice(request, engine, strings=self.shelf.strings, fetched=self.fetch, hearing=self.engines)


async def test_the_mock_engine_needs_no_model(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    made = await storage.open(InferenceEngine.MOCK)
    assert isinstance(made.begin(Silent(), hands_free=True, max_ms=60_000), MockUtterance)
    assert (storage.fetched, storage.engines.asked) == ([], [])


async def test_the_real_one_fetches_and_loads_it_and_has_a_detector_for_each_utterance(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    made = await storage.open(REAL, vad_threshold=9.0)
    assert (storage.fetched, storage.engines.asked) == (["model"], [("model", REAL)])
    for _ in range(2):
        utterance = made.begin(storage.engines, hands_free=True, max_ms=100)
        assert isinstance(utterance, RealUtterance)
        await utterance.feed(bytes(3200))
        assert not utterance.over
        await utterance.feed(bytes(2))
        assert utterance._ears.threshold == 0.95
    assert storage.engines.asked[1:] == [0.95, 0.95]
    assert [form_of(error.kind).tryll for error in storage.engines.errors] == [4105, 4105]


async def test_after_its_end_it_hears_nothing(tmp_path: Path) -> None:
    made = await Storage(tmp_path).open(InferenceEngine.MOCK)
    made.close()
    made.close()
    with pytest.raises(Fault) as caught:
        made.begin(Silent(), hands_free=True, max_ms=60_000)
    assert form_of(caught.value.kind).tryll == 4102


async def test_hotwords_are_the_lines_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("# names\nTryll\n\nTrunkline\n")
    (tmp_path / "many.txt").write_text("word\n" * (MAX_HOTWORDS + 5))
    storage = Storage(tmp_path)
    for path, score, count in (("words.txt", 1.5, 2), ("words.txt", 1.0, 0), ("many.txt", 2.0, MAX_HOTWORDS)):
        made = await storage.open(REAL, hotwords_storage_path=path, hotwords_score=score)
        utterance = made.begin(Silent(), hands_free=True, max_ms=60_000)
        assert len(utterance._ears.hotwords) == count


@pytest.mark.parametrize("engine", [InferenceEngine.MOCK, REAL])
async def test_what_is_wrong_is_found_before_a_model_is_loaded(tmp_path: Path, engine: int) -> None:
    (tmp_path / "words.json").write_text('[{"id": "a", "text": "b"}]')
    storage = Storage(tmp_path)
    for fields, code in (
        ({"channels": 0}, 4101),
        ({"hotwords_storage_path": "nowhere.txt"}, 3010),
        ({"hotwords_storage_path": "../out.txt"}, 3009),
        ({"hotwords_storage_path": "words.json"}, 3011),
    ):
        with pytest.raises(Fault) as caught:
            await storage.open(engine, **fields)
        assert form_of(caught.value.kind).tryll == code
    assert (storage.fetched, storage.engines.asked) == ([], [])


def test_what_computes_with_sound_is_imported_before_there_is_any_and_by_a_thread(tmp_path: Path) -> None:
    script = """
import asyncio, sys, threading
from pathlib import Path
from tests.agents.graph.hearing.test_input import Storage
from trunkline.wires.tryll.messages import InferenceEngine

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(threading.current_thread() is threading.main_thread())

assert "numpy" not in sys.modules
sys.meta_path.insert(0, Watch())
asyncio.run(Storage(Path(sys.argv[1])).open(InferenceEngine.MOCK))
assert "numpy" in sys.modules
"""
    argv = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(
        argv, cwd=Path(__file__).parents[4], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert done.stdout.split() == ["False"]
