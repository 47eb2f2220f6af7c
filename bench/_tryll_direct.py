"""The control of the Tryll benchmark for a real model: the library itself, in a process of its own.

    python bench/_tryll_direct.py MODEL WINDOW THREADS

Reads requests, one JSON object per line, and answers each with the seconds to the first piece, the seconds to the end,
and the number of tokens.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any


def main(path: str, window: int, threads: int) -> None:
    # By name: it has no annotations.
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = window
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print("ready", flush=True)
    for line in sys.stdin:
        times: list[float] = []
        pieces: list[dict[str, Any]] = []

        def take(piece: dict[str, Any], times: list[float] = times, pieces: list[dict[str, Any]] = pieces) -> bool:
            if not times and any(choice["delta"].get("content") for choice in piece.get("choices", ())):
                times.append(time.perf_counter())
            pieces.append(piece)
            return False

        request = json.loads(line)
        started = time.perf_counter()
        server.handle_chat_completions(request, take)
        whole = time.perf_counter() - started
        tokens = pieces[-1]["usage"]["completion_tokens"]
        print(json.dumps([times[0] - started, whole, tokens]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
