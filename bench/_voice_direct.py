"""The controls of the voice benchmark: each engine by itself, in a process of its own.

    python bench/_voice_direct.py hear|answer|speak MODEL THREADS

Reads requests, one JSON object per line, and answers each with the seconds that it took, and with what came of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from trunkline.agents.graph.sentences import Sentences
from trunkline.models.catalog_entry import USUAL_WINDOW

#: As the nodes that speak have it.
LEAST_CHARS = 12

Answering = Callable[[dict[str, Any]], list[Any]]


def hearing(path: str, threads: int) -> Answering:
    """Whisper: the seconds that some sound takes, and its words."""
    from trunkline.models.voice.sound import samples
    from trunkline.models.voice.whisper import Whisper

    model = asyncio.run(Whisper.load("whisper-base", path, threads=threads))

    def hear(request: dict[str, Any]) -> list[Any]:
        sound = samples(Path(request["pcm"]).read_bytes())
        started = time.perf_counter()
        text = model.decode(sound, (), threading.Event())
        return [time.perf_counter() - started, text]

    return hear


def answering(path: str, threads: int) -> Answering:
    """The library of the language model: the seconds to the first piece, those to the first sentence, and that."""
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = USUAL_WINDOW
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = 0
    server = xllamacpp.Server(params)

    def answer(request: dict[str, Any]) -> list[Any]:
        cut = Sentences(LEAST_CHARS)
        times: list[float] = []
        found: list[str] = []

        def take(piece: dict[str, Any]) -> bool:
            for choice in piece.get("choices", ()):
                text = choice["delta"].get("content") or ""
                if text and not times:
                    times.append(time.perf_counter())
                for sentence in cut.feed(text):
                    found.append(sentence.spoken)
            if found and len(times) == 1:
                times.append(time.perf_counter())
            return bool(found)

        started = time.perf_counter()
        server.handle_chat_completions(request, take)
        if not found:
            found += [sentence.spoken for sentence in cut.rest()]
            times.append(time.perf_counter())
        return [times[0] - started, times[1] - times[0], found[0]]

    return answer


def speaking(path: str, threads: int) -> Answering:
    """Piper: the seconds to the first sound of a text. With "file": all of it goes there, at the rate that is told."""
    from trunkline.models.voice.marks import WantedSpeech
    from trunkline.models.voice.piper_process import Piper

    voice = Piper(path, threads)

    def speak(request: dict[str, Any]) -> list[Any]:
        started = time.perf_counter()
        sound = (piece for piece in voice.say(WantedSpeech(request["text"])) if isinstance(piece, bytes))
        first = next(sound)
        taken = time.perf_counter() - started
        rest = b"".join(sound)
        if "file" in request:
            Path(request["file"]).write_bytes(first + rest)
        return [taken, voice.sample_rate]

    return speak


def main(kind: str, path: str, threads: int) -> None:
    answer = {"hear": hearing, "answer": answering, "speak": speaking}[kind](path, threads)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
