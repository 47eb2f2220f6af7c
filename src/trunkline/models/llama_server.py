"""llama.cpp in this process, for several conversations at once. Everything here blocks.

The weights are there once. The engine brings an HTTP server of its own, which cannot be left out: it listens on the
loopback interface at a port of the system's choice, and without a key that nobody is told it answers no question.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from trunkline.core.faults import ProviderError
from trunkline.models.installed import no_engine

#: The package.

#: Called with each piece of an answer; True ends it.
Take = Callable[[dict[str, Any]], bool]

#: Tokens of a prompt that are read at once. Between two batches others have their turn, and a request can be given up:
#: this many take about 0.2 s on two slow cores. Larger batches would read a long prompt 10 % faster there.
BATCH_TOKENS = 64
#: What the engine may keep of conversations that are not its current ones, so that to go on with them costs nothing:
#: where one goes on at a time, and where several do.
CACHE_MIB, SHARED_CACHE_MIB = 256, 512
#: The longest text that is embedded, in tokens. Those models read a text at once, or not at all.
EMBEDDED_TOKENS = 512
#: The engine makes no smaller window, and is ended by the system if it is told to make one of a single token.
LEAST_WINDOW = 256
#: No model was made for more; memory for a window is taken at once.
MOST_WINDOW = 1 << 24
#: More than any machine has cores; where the system makes no more threads, it ends the process.
MOST_THREADS = 256
#: More threads than this wait for each other more than they compute.
MAX_THREADS = 8


class LlamaServer:
    """A model that is loaded.

    `window`: tokens of each conversation; `places`: conversations at once. With `embedding` the model gives vectors;
    with `mean`, too, the vector of a text is the mean of its tokens', whatever the file says.
    """

    def __init__(
        self,
        path: str,
        window: int,
        places: int = 1,
        *,
        threads: int | None = None,
        embedding: bool = False,
        mean: bool = False,
    ) -> None:
        """Load it, which takes from half a second to many.

        Raises:
            ProviderError: it cannot be loaded.
        """
        try:
            import xllamacpp  # type: ignore[import-untyped]  # it has no stubs
        except ImportError:
            raise ProviderError(no_engine("local")) from None
        params = _parameters(path, threads or default_threads())
        # The window is divided by the number of places.
        params.n_parallel = places
        params.n_ctx = window * places
        params.cache_ram_mib = CACHE_MIB if places == 1 else SHARED_CACHE_MIB
        if embedding:
            params.embedding = True
            params.n_batch = params.n_ubatch = window
            params.cache_ram_mib = 0
            if mean:
                params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError:
            # The engine's own words name the path on this machine, which is nothing for others to know.
            raise ProviderError(
                f"`{os.path.basename(path)}` cannot be loaded.", hint="Is it a whole GGUF file of a model?"
            ) from None
        # A server whose loop has not begun yet never ends when it is taken down. This waits for the loop.
        self._server.handle_metrics()

    def chat(self, request: Mapping[str, Any], take: Take) -> None:
        """Answer, piece by piece. The pieces are those of OpenAI's streams; a failure is a piece with an `error`.

        May be called by as many threads at once as there are places.
        """
        self._server.handle_chat_completions(dict(request), take)

    def embed(self, texts: list[str]) -> Any:
        """The engine's answer: OpenAI's."""
        return self._server.handle_embeddings({"input": texts})


def _parameters(path: str, threads: int) -> Any:
    """What the engine is told of every model. How much of what it may keep, and for how many, is not in it."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    # Nothing may be printed: standard output may be a protocol's.
    params.verbosity = 0
    params.warmup = False
    params.fit_params = False
    params.api_keys = [os.urandom(32).hex()]
    params.ui = params.endpoint_slots = False
    params.n_threads_http = 1
    params.endpoint_metrics = True
    return params


def default_threads() -> int:
    """All cores but one.

    The threads wait for each other after each layer of the model. When one of them shares its core with any other
    program, all of them stand still most of the time: two threads on two busy cores are 15 times as slow as one.
    """
    return max(1, min(_cores() - 1, _quota() - 1, MAX_THREADS))


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _quota() -> int:
    """The cores that a container may use at most."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return MAX_THREADS + 1
