"""What runs a model of the catalog for a graph, and how it is loaded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from trunkline.base.document import listed
from trunkline.core.faults import ProviderError
from trunkline.models.catalog_entry import (
    DETECTS,
    EMBEDDING,
    HEARS,
    LLAMA,
    LLM,
    LORA,
    OPENAI,
    SPEAKS,
    USUAL_WINDOW,
    CatalogEntry,
)
from trunkline.models.catalog_voice import SPEECH_ENGINES
from trunkline.models.load_configured import options_for

if TYPE_CHECKING:
    from trunkline.models.remote import Remote


class LoadedEngine(Protocol):
    """Anything that was loaded."""

    async def close(self) -> None:
        """Free what it holds."""


def is_speech(entry: CatalogEntry) -> bool:
    """Whether it is one that hears or speaks, for an engine of ours; we run no others."""
    return entry.kind in (HEARS, SPEAKS, DETECTS) and entry.engine in SPEECH_ENGINES


async def load_engine(
    entry: CatalogEntry,
    path: str,
    *,
    places: int | None,
    threads: int | None,
    lora: Mapping[str, str] = MappingProxyType({}),
) -> LoadedEngine:
    """Load a model. `path`: its first file; empty if it runs elsewhere. `lora`: the files of its adapters by name.

    Raises:
        ProviderError: it cannot be loaded.
        ConfigError: a configuration file, or a variable, says what cannot be of how it is loaded.
    """
    if entry.engine == OPENAI:
        return await _remote(entry)
    # Two small files at most, on a disk that may be asleep.
    options = (await asyncio.to_thread(options_for, entry.name, entry.origin)).over(entry.options)
    threads = options.threads or threads
    if is_speech(entry):
        from trunkline.models.voice.loading import load

        return await load(entry, path, threads=threads)
    if entry.engine == LLAMA and entry.kind == LLM:
        from trunkline.models.llama_language import LlamaLanguage

        return await LlamaLanguage.load(
            entry.name,
            path,
            window=entry.context or USUAL_WINDOW,
            tool_call_format=entry.tool_call_format,
            default_sampling=entry.sampling,
            places=places,
            threads=threads,
            options=options,
            lora=lora,
        )
    if entry.kind == LORA:
        raise ProviderError(
            f"an adapter is loaded together with its model, {listed(entry.bases) or 'which is not named'}."
        )
    if entry.engine == LLAMA:
        from trunkline.models.embedding_llama import LlamaEmbedding

        return await LlamaEmbedding.load(entry.name, path, window=entry.context, threads=threads, options=options)
    if entry.kind == EMBEDDING:
        from trunkline.models.embedding_onnx import OnnxEmbedding

        return await OnnxEmbedding.load(entry.name, path, threads=threads)
    raise ProviderError(f"nothing here runs {entry.engine} models of this kind.")


def remote_of(entry: CatalogEntry) -> Remote:
    """Where a model that runs elsewhere is asked."""
    from trunkline.models.remote import Remote
    from trunkline.models.server_choice import MAX_CONCURRENT

    key = os.environ.get(entry.key_variable, "") if entry.key_variable else ""
    return Remote(
        entry.name,
        entry.urls,
        model=entry.remote_model,
        key=key,
        key_variable=entry.key_variable,
        limit=entry.max_concurrent or MAX_CONCURRENT,
    )


async def _remote(entry: CatalogEntry) -> LoadedEngine:
    """A model that runs elsewhere."""
    from trunkline.models.embedding_openai import OpenAIEmbedding
    from trunkline.models.openai_language import OpenAILanguage

    remote = remote_of(entry)
    if entry.kind == EMBEDDING:
        return await OpenAIEmbedding.load(remote)
    return OpenAILanguage(remote, entry.context or USUAL_WINDOW, entry.tool_call_format, entry.sampling)
