"""What is measured of a model, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from trunkline.base.memory import give_back, resident
from trunkline.base.values import Value
from trunkline.models.load_options import UNKNOWN, LoadedAs

#: What is measured, by the names that programs know it by, and what people call it. Of the first ones more is better.
FIGURES: Mapping[str, str] = {
    "prompt_tokens_per_second": "prompt tokens/s",
    "tokens_per_second": "tokens/s",
    "texts_per_second": "texts/s",
    "first_token_ms": "first token, ms",
    "first_sound_ms": "first sound, ms",
    "real_time_factor": "real-time factor",
}


class MeasurePlan(Value):
    """How much is asked of a model, and how often. Before the first time that counts there is one that does not."""

    prompt_tokens: int = 256
    tokens: int = 64
    repeat: int = 3


class Figure(Value):
    """A number that was measured several times."""

    median: float
    least: float
    most: float


def figure(values: Sequence[float]) -> Figure:
    """What several runs have given, with a sensible number of digits."""
    return Figure(_rounded(median(values)), _rounded(min(values)), _rounded(max(values)))


def _rounded(value: float) -> float:
    return round(value, 1 if value >= 10 else 3)


class MeasuredModel(Value):
    """What was measured of a model."""

    name: str
    kind: str
    load_seconds: float
    memory_bytes: int
    """By which this process grew, and those that the model has of its own; 0 where the system does not say."""
    runs: int
    figures: Mapping[str, Figure]
    """By the names of `FIGURES`."""
    used: LoadedAs = UNKNOWN
    """How it was loaded."""
    prompt_tokens: int = 0
    """Of the prompt that a language model was given, in truth."""


#: Called with what has been measured so far, after each run.
Measuring = Callable[[MeasuredModel], None]


class Runs:
    """The runs of one model, as they come in. Made before the model is loaded: the memory counts from then on."""

    def __init__(self, name: str, kind: str, tell: Measuring | None = None) -> None:
        give_back()
        self._before = resident()
        self._tell = tell
        self._values: dict[str, list[float]] = {}
        self.found = MeasuredModel(name, kind, 0.0, 0, 0, {})

    def loaded(self, seconds: float, used: LoadedAs, pid: int | None = None) -> None:
        """The model is there, and has done something once. `pid`: of the process that it has of its own."""
        memory = max(0, resident() - self._before) + (resident(pid) if pid else 0)
        self.found = self.found.replace(load_seconds=round(seconds, 2), memory_bytes=memory, used=used)

    def add(self, **values: float) -> None:
        """One run more."""
        for name, value in values.items():
            self._values.setdefault(name, []).append(value)
        figures = {name: figure(self._values[name]) for name in FIGURES if name in self._values}
        self.found = self.found.replace(runs=self.found.runs + 1, figures=figures)
        if self._tell is not None:
            self._tell(self.found)
