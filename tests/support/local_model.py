"""The real small model, pulled once for all runs and clones, and its engine as a server of the providers' APIs.

    python -m tests.support.local_model [KEY]  serve, print {"url", "key", "pid"}, and end when standard input does

`/v1/chat/completions` is OpenAI's, `/v1/messages` Anthropic's; both stream, and both check the key.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple
from unittest import mock

from tests.conftest import require
from trunkline.core.faults import Fault
from trunkline.models import catalog, fetch

MODEL = "smollm2-135m"

#: Each test has a cache of its own, and a model is too large for that.
SHARED_CACHE = os.path.expanduser("~/.cache/trunkline")

#: For tests that use the model: the first of them may have to pull it.
TIMEOUT_SECONDS = 240
#: Longer than the model takes to load on a busy machine.
START_SECONDS = 60.0
#: Tests run beside tests, and an engine whose threads do not get their cores stands still.
THREADS = 1
#: Two conversations at once, each with the window that the model was made for.
SLOTS = 2
WINDOW = 8192


@cache
def model_path() -> str:
    """The file of the model. Where it cannot be had, the test does not run.

    Kept for all tests of a process, so in a loop of its own.
    """
    require("xllamacpp", find_spec("xllamacpp") is not None, "pip install 'trunkline[local]'")
    with _usual_environment():
        try:
            return asyncio.run(fetch.pull(catalog.find(MODEL)))
        except (Fault, OSError) as error:
            reason = str(error)
    require(f"the model {MODEL}", False, reason)
    raise AssertionError


@contextmanager
def _usual_environment() -> Iterator[None]:
    """The cache that all share, and pip's settings where a person has them."""
    with mock.patch.dict(os.environ, {"TRUNKLINE_CACHE": SHARED_CACHE}):
        os.environ.pop("XDG_CONFIG_HOME", None)
        yield


class Served(NamedTuple):
    """Where the engine listens: an address without a path, the key that it asks for, and its process."""

    url: str
    key: str
    pid: int


@contextmanager
def llama_server(key: str = "") -> Iterator[Served]:
    """The engine as a process of its own, which is gone after the block. Without a key it makes one."""
    model_path()
    command = [sys.executable, "-m", "tests.support.local_model", *([key] if key else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        patience = threading.Timer(START_SECONDS, process.kill)
        patience.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the engine did not start"
            patience.cancel()
            yield Served(**json.loads(line))
        finally:
            patience.cancel()
            process.kill()


def main() -> None:
    import xllamacpp  # type: ignore[import-untyped]  # it has no stubs

    params = xllamacpp.CommonParams()
    params.model.path = model_path()
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * WINDOW
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.verbosity = 0
    params.cache_ram_mib = 0
    key = sys.argv[1] if len(sys.argv) > 1 else os.urandom(16).hex()
    params.api_keys = [key]
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address, "key": key, "pid": os.getpid()}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
