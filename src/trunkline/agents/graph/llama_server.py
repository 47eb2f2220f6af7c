"""llama.cpp in this process, for several conversations at once. Everything here blocks.

The weights are there once. The engine brings an HTTP server of its own, which cannot be left out: it listens on the
loopback interface at a port of the system's choice, and without a key that nobody is told it answers no question.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from trunkline.agents.graph.engines import EngineError
from trunkline.models.local_engine import default_threads, parameters, started

#: Called with each piece of an answer; True ends it.
Take = Callable[[dict[str, Any]], bool]

#: What may be kept of conversations that have lost their place to others: they come back without being read again.
CACHE_MIB = 512
#: The longest text that is embedded, in tokens. Those models read a text at once, or not at all.
EMBEDDED_TOKENS = 512


class LlamaServer:
    """A model that is loaded.

    `window`: tokens of each conversation; `places`: conversations at once. With `embedding` the model gives vectors;
    with `mean`, too, the vector of a text is the mean of its tokens', whatever the file says.
    """

    def __init__(
        self,
        path: str,
        window: int,
        places: int,
        *,
        threads: int | None = None,
        embedding: bool = False,
        mean: bool = False,
    ) -> None:
        """Load it, which takes from half a second to many.

        Raises:
            EngineError: it cannot be loaded.
        """
        try:
            import xllamacpp  # type: ignore[import-untyped]  # it has no stubs
        except ImportError:
            from trunkline.base.extras import adding

            raise EngineError(f"The engine for local models is not installed. {adding('local')}") from None
        params = parameters(path, threads or default_threads())
        # The window is divided by the number of places.
        params.n_parallel = places
        params.n_ctx = window * places
        params.cache_ram_mib = CACHE_MIB
        if embedding:
            params.embedding = True
            params.n_batch = params.n_ubatch = window
            params.cache_ram_mib = 0
            if mean:
                params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        try:
            self._server = started(params)
        except RuntimeError:
            # The engine's own words name the path on this machine, and clients are told ours.
            name = os.path.basename(path)
            raise EngineError(f"`{name}` cannot be loaded. Is it a whole GGUF file of a model?") from None

    def chat(self, request: Mapping[str, Any], take: Take) -> None:
        """Answer, piece by piece. The pieces are those of OpenAI's streams; a failure is a piece with an `error`.

        May be called by as many threads at once as there are places.
        """
        self._server.handle_chat_completions(dict(request), take)

    def embed(self, texts: list[str]) -> Any:
        """The engine's answer: OpenAI's."""
        return self._server.handle_embeddings({"input": texts})
