"""Well-known models on the hub: those that answer, and those that embed. See `catalog`.

Their sizes are rounded. No hash of theirs is known here: each file is checked against the one that the hub says.
"""

from __future__ import annotations

from trunkline.models.catalog_entry import EMBEDDING, LLM, CatalogEntry, ModelFile

_MB = 10**6

#: What makers list as the languages that they looked after; the largest of them, where they list a hundred.
_ENGLISH = ("en",)
_LLAMA = ("en", "de", "es", "fr", "hi", "it", "pt", "th")
_QWEN = ("en", "zh", "ar", "de", "es", "fr", "it", "ja", "ko", "pt", "ru", "th", "vi")
_GEMMA = ("en", "ar", "de", "es", "fr", "hi", "it", "ja", "ko", "pt", "ru", "zh")
_PHI = (
    "en",
    "ar",
    "da",
    "de",
    "es",
    "fi",
    "fr",
    "it",
    "ja",
    "ko",
    "nl",
    "no",
    "pl",
    "pt",
    "ru",
    "sv",
    "th",
    "tr",
    "zh",
)

_LLAMA_32, _LLAMA_31 = "Llama 3.2 Community", "Llama 3.1 Community"
_APACHE, _MIT, _GEMMA_TERMS = "Apache-2.0", "MIT", "Gemma Terms of Use"


def _kv_bytes(layers: int, heads: int, size: int) -> int:
    """Of a token of the window: a key and a value of two bytes a number, for each head of each layer."""
    return 2 * layers * heads * size * 2


def _answers(
    name: str,
    description: str,
    good_for: str,
    source: str,
    file: str,
    about: int,
    licence: str = _APACHE,
    languages: tuple[str, ...] = _ENGLISH,
    context: int = 32768,
    kv_bytes: int = 0,
    tools: str = "chatml",
) -> CatalogEntry:
    return CatalogEntry(
        name=name,
        kind=LLM,
        description=description,
        licence=licence,
        files=(ModelFile(file),),
        context=context,
        source=source,
        tool_call_format=tools,
        good_for=good_for,
        languages=languages,
        about=about,
        kv_bytes=kv_bytes,
    )


def _embeds(
    name: str, description: str, good_for: str, source: str, file: str, about: int, licence: str, *languages: str
) -> CatalogEntry:
    return CatalogEntry(
        name=name,
        kind=EMBEDDING,
        description=description,
        licence=licence,
        files=(ModelFile(file),),
        source=source,
        good_for=good_for,
        languages=languages,
        about=about,
    )


HUB_ENTRIES: tuple[CatalogEntry, ...] = (
    _answers(
        "smollm2-360m", "SmolLM2 360M Instruct, 8 bits.", "Short replies on small machines",
        "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF", "smollm2-360m-instruct-q8_0.gguf", 386 * _MB,
        context=8192, kv_bytes=_kv_bytes(32, 5, 64),
    ),
    _answers(
        "smollm2-1.7b", "SmolLM2 1.7B Instruct, 4 bits.", "Plain conversation in English",
        "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF", "smollm2-1.7b-instruct-q4_k_m.gguf", 1_060 * _MB,
        context=8192, kv_bytes=_kv_bytes(24, 32, 64),
    ),
    _answers(
        "qwen2.5-0.5b", "Qwen2.5 0.5B Instruct, 4 bits.", "Quick characters with few words, many at once",
        "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "qwen2.5-0.5b-instruct-q4_k_m.gguf", 491 * _MB,
        languages=_QWEN, kv_bytes=_kv_bytes(24, 2, 64),
    ),
    _answers(
        "qwen2.5-1.5b", "Qwen2.5 1.5B Instruct, 4 bits.", "Characters on a laptop, simple tool calls",
        "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-q4_k_m.gguf", 1_120 * _MB,
        languages=_QWEN, kv_bytes=_kv_bytes(28, 2, 128),
    ),
    _answers(
        "qwen3-0.6b", "Qwen3 0.6B, 8 bits. Thinks before it answers.", "Tool calls on small machines",
        "Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf", 639 * _MB,
        languages=_QWEN, kv_bytes=_kv_bytes(28, 8, 128),
    ),
    _answers(
        "qwen3-1.7b", "Qwen3 1.7B, 8 bits. Thinks before it answers.", "Tool calls and small tasks",
        "Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q8_0.gguf", 1_830 * _MB,
        languages=_QWEN, kv_bytes=_kv_bytes(28, 8, 128),
    ),
    _answers(
        "qwen3-4b", "Qwen3 4B, 4 bits. Thinks before it answers.", "Characters that reason, tools, many languages",
        "Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf", 2_500 * _MB,
        languages=_QWEN, kv_bytes=_kv_bytes(36, 8, 128),
    ),
    _answers(
        "qwen3-8b", "Qwen3 8B, 4 bits. Thinks before it answers.", "The best answers here; wants a graphics card",
        "Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf", 5_030 * _MB,
        languages=_QWEN, kv_bytes=_kv_bytes(36, 8, 128),
    ),
    _answers(
        "llama-3.2-1b", "Llama 3.2 1B Instruct, 4 bits.", "Quick characters in eight languages",
        "bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q4_K_M.gguf", 808 * _MB,
        _LLAMA_32, _LLAMA, 131_072, _kv_bytes(16, 8, 64), "llama3",
    ),
    _answers(
        "llama-3.2-3b", "Llama 3.2 3B Instruct, 4 bits.", "Characters with a voice of their own, on a laptop",
        "bartowski/Llama-3.2-3B-Instruct-GGUF", "Llama-3.2-3B-Instruct-Q4_K_M.gguf", 2_020 * _MB,
        _LLAMA_32, _LLAMA, 131_072, _kv_bytes(28, 8, 128), "llama3",
    ),
    _answers(
        "llama-3.1-8b", "Llama 3.1 8B Instruct, 4 bits.", "Long dialogues and tools; wants a graphics card",
        "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", 4_920 * _MB,
        _LLAMA_31, _LLAMA, 131_072, _kv_bytes(32, 8, 128), "llama3",
    ),
    _answers(
        "gemma-3-1b", "Gemma 3 1B, instructed, 4 bits.", "Well-formed English on small machines",
        "ggml-org/gemma-3-1b-it-GGUF", "gemma-3-1b-it-Q4_K_M.gguf", 806 * _MB,
        _GEMMA_TERMS, _ENGLISH, 32_768, _kv_bytes(26, 1, 256), "generic",
    ),
    _answers(
        "gemma-3-4b", "Gemma 3 4B, instructed, 4 bits.", "Characters in many languages",
        "ggml-org/gemma-3-4b-it-GGUF", "gemma-3-4b-it-Q4_K_M.gguf", 2_490 * _MB,
        _GEMMA_TERMS, _GEMMA, 131_072, _kv_bytes(34, 4, 256), "generic",
    ),
    _answers(
        "phi-3.5-mini", "Phi 3.5 Mini Instruct, 4 bits.", "Questions and reasoning; its window takes much memory",
        "bartowski/Phi-3.5-mini-instruct-GGUF", "Phi-3.5-mini-instruct-Q4_K_M.gguf", 2_390 * _MB,
        _MIT, _PHI, 131_072, _kv_bytes(32, 32, 96), "generic",
    ),
    _answers(
        "mistral-7b", "Mistral 7B Instruct 0.3, 4 bits.", "Story telling in English; wants a graphics card",
        "bartowski/Mistral-7B-Instruct-v0.3-GGUF", "Mistral-7B-Instruct-v0.3-Q4_K_M.gguf", 4_370 * _MB,
        _APACHE, _ENGLISH, 32_768, _kv_bytes(32, 8, 128), "mistral",
    ),
    _embeds(
        "bge-small-en", "BGE Small English 1.5, 8 bits.", "English passages, better than the smallest",
        "CompendiumLabs/bge-small-en-v1.5-gguf", "bge-small-en-v1.5-q8_0.gguf", 37 * _MB, _MIT, "en",
    ),
    _embeds(
        "nomic-embed-text", "Nomic Embed Text 1.5, 8 bits.", "Longer English texts",
        "nomic-ai/nomic-embed-text-v1.5-GGUF", "nomic-embed-text-v1.5.Q8_0.gguf", 146 * _MB, _APACHE, "en",
    ),
    _embeds(
        "qwen3-embedding-0.6b", "Qwen3 Embedding 0.6B, 8 bits.", "Texts in many languages, across them, too",
        "Qwen/Qwen3-Embedding-0.6B-GGUF", "Qwen3-Embedding-0.6B-Q8_0.gguf", 639 * _MB, _APACHE, *_QWEN,
    ),
)  # fmt: skip
