"""llama.cpp in this process, for several conversations at once. Everything here blocks.

The weights are there once. The engine brings an HTTP server of its own, which cannot be left out: it listens on the
loopback interface at a port of the system's choice, and without a key that nobody is told it answers no question.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from trunkline.base.vocabulary import MOST_GPU_LAYERS
from trunkline.core.faults import ProviderError
from trunkline.models import local_gguf
from trunkline.models.installed import no_engine
from trunkline.models.load_options import CPU, NOTHING, LoadedAs, LoadOptions

logger = logging.getLogger(__name__)

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
#: More threads than this wait for each other more than they compute.
MAX_THREADS = 8
#: What the engine keeps of what it has read in, if nobody says otherwise.
USUAL_KV_CACHE_TYPE = "f16"
#: How long the engine may take to say how it was set up; it knows it by heart.
PROPS_SECONDS = 10.0
#: The longest of these answers that is read: a template for messages is most of it.
MAX_PROPS_BYTES = 4 * 1024 * 1024


class LlamaServer:
    """A model that is loaded.

    `window`: tokens of each conversation; `places`: conversations at once. With `embedding` the model gives vectors;
    with `mean`, too, the vector of a text is the mean of its tokens', whatever the file says. `lora`: files of
    adapters, of which each request says by their places how much is to be felt; without a word, nothing is. `options`
    say how it is loaded; of them, `context` is the caller's business, and `threads` goes before the caller's.
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
        lora: Sequence[str] = (),
        options: LoadOptions = NOTHING,
    ) -> None:
        """Load it, which takes from half a second to many.

        Raises:
            ProviderError: it cannot be loaded.
        """
        try:
            import xllamacpp  # type: ignore[import-untyped]  # it has no stubs
        except ImportError:
            raise ProviderError(no_engine("local")) from None
        threads = options.threads or threads or default_threads()
        params = _parameters(path, threads)
        card = _card(path, options)
        if options.gpu_layers is not None:
            params.n_gpu_layers = options.gpu_layers if options.gpu_layers >= 0 else MOST_GPU_LAYERS
        if options.kv_cache_type:
            params.cache_type_k = params.cache_type_v = _kv_cache_type(options.kv_cache_type)
        # The window is divided by the number of places.
        params.n_parallel = places
        params.n_ctx = window * places
        params.cache_ram_mib = CACHE_MIB if places == 1 else SHARED_CACHE_MIB
        if lora:
            params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(each, 0.0) for each in lora]
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
            names = "`, `".join(map(os.path.basename, (path, *lora)))
            hint = "Were its adapters made for this very model?" if lora else _why_not(options, params.n_ctx)
            raise ProviderError(f"`{names}` cannot be loaded.", hint=hint) from None
        # A server whose loop has not begun yet never ends when it is taken down. This waits for the loop.
        self._server.handle_metrics()
        self.used = LoadedAs(
            gpu_layers=_gpu_layers(path, options) if card else 0,
            threads=threads,
            context=_context(self._server.listening_address, params.api_keys[0]) or window,
            kv_cache_type="" if embedding else options.kv_cache_type or USUAL_KV_CACHE_TYPE,
            device=card or CPU,
        )
        """How it was loaded: as the engine tells it, or was told."""

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


def _kv_cache_type(name: str) -> Any:
    import xllamacpp

    return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{name.upper()}")


def _card(path: str, options: LoadOptions) -> str:
    """The graphics card that layers of a model go to; empty if none do, which is said if somebody asked for it."""
    if options.gpu_layers == 0:
        return ""
    import xllamacpp

    cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    found = [device for device in xllamacpp.get_device_info() if device["type"] != cpu]
    # Of several, the first is the main one.
    card = str(found[0]["description"] or found[0]["name"]) if found else ""
    if options.gpu_layers and not card:
        logger.warning(
            "`%s` is loaded without a graphics card, although `gpu_layers` is %d: llama.cpp here sees none. "
            "It may be a build for another: `xllamacpp` has one for each sort of card.",
            os.path.basename(path),
            options.gpu_layers,
        )
    return card


def _gpu_layers(path: str, options: LoadOptions) -> int:
    """How many layers a card has taken: all, unless somebody asked for fewer. What comes behind the last counts as one
    more, as the engine counts."""
    try:
        layers = (local_gguf.facts(path).layers or MOST_GPU_LAYERS - 1) + 1
    except (OSError, ValueError):
        layers = MOST_GPU_LAYERS
    asked = options.gpu_layers
    return layers if asked is None or asked < 0 else min(asked, layers)


def _context(address: str, key: str) -> int:
    """The window of each conversation, as the engine has made it; 0 if it does not say."""
    from trunkline.base import jsontext

    connection = HTTPConnection(urlsplit(address).netloc, timeout=PROPS_SECONDS)
    try:
        connection.request("GET", "/props", headers={"authorization": f"Bearer {key}"})
        told = jsontext.loads(connection.getresponse().read(MAX_PROPS_BYTES))
        found = told["default_generation_settings"]["n_ctx"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return 0
    finally:
        connection.close()
    return found if type(found) is int and found > 0 else 0


def _why_not(options: LoadOptions, tokens: int) -> str:
    """What to look at where a model cannot be loaded."""
    asked = [
        words
        for words in (
            f"`gpu_layers` {options.gpu_layers}" if options.gpu_layers else "",
            f"`kv_cache_type` {options.kv_cache_type}" if options.kv_cache_type else "",
        )
        if words
    ]
    if not asked:
        return "Is it a whole GGUF file of a model?"
    return (
        f"Is it a whole GGUF file of a model, and does it go with {' and '.join(asked)}, and with {tokens} tokens? "
        "Try it without."
    )


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
