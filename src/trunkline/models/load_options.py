"""How a model is to be loaded, as far as somebody says so, and how it was loaded in the end."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from trunkline.base.values import Value


class LoadOptions(Value):
    """What somebody asks for. None and "": nothing, so that the engine, or we, choose."""

    gpu_layers: int | None = None
    """Layers that a graphics card takes; -1 for all."""
    threads: int | None = None
    context: int | None = None
    """The window of each conversation, in tokens."""
    kv_cache_type: str = ""
    """How the numbers are kept by which a model remembers what it has read; one of `KV_CACHE_TYPES`."""

    def over(self, others: LoadOptions) -> LoadOptions:
        """These, and where they say nothing, the others."""
        said = {field: value for field in self.__fields__ if (value := getattr(self, field)) not in (None, "")}
        return others.replace(**said) if said else others


class LoadedAs(Value):
    """How a model was loaded, as its engine tells it."""

    gpu_layers: int = 0
    threads: int = 0
    context: int = 0
    """The window of each conversation, in tokens; 0 where there is none."""
    kv_cache_type: str = ""
    device: str = ""
    """`cpu`, or the name of the graphics card."""


@runtime_checkable
class TellsHow(Protocol):
    """An engine that tells how it was loaded."""

    used: LoadedAs


NOTHING = LoadOptions()
UNKNOWN = LoadedAs()

#: The device of a model that no graphics card helps with.
CPU = "cpu"
#: What runs on the processor, and says no more of itself.
ON_CPU = LoadedAs(device=CPU)


def used_by(engine: object) -> LoadedAs:
    """How an engine was loaded; `UNKNOWN` of one that does not tell."""
    return engine.used if isinstance(engine, TellsHow) else UNKNOWN
