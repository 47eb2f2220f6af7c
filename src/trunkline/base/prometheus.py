"""Figures for Prometheus, as text: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MEDIA_TYPE = "text/plain; version=0.0.4"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

#: The numbers that are told once for each label, or once without any.
Samples = Iterable[tuple[Mapping[str, str], float]]


class Histogram:
    """How many values were not above each of some bounds, and their sum."""

    __slots__ = ("_bounds", "_counts", "count", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * len(self._bounds)
        self.count = 0
        self.sum = 0.0

    def add(self, value: float) -> None:
        """One value more."""
        self.count += 1
        self.sum += value
        for at, bound in enumerate(self._bounds):
            if value <= bound:
                self._counts[at] += 1

    def lines(self, name: str, labels: Mapping[str, str]) -> list[str]:
        """What is told of it."""
        bounds = [f"{bound:.15g}" for bound in self._bounds]
        told = zip([*bounds, "+Inf"], [*self._counts, self.count], strict=True)
        return [
            *(_line(f"{name}_bucket", {**labels, "le": bound}, count) for bound, count in told),
            _line(f"{name}_sum", labels, self.sum),
            _line(f"{name}_count", labels, self.count),
        ]


def metric(name: str, kind: str, meaning: str, samples: Samples) -> str:
    """A counter or a gauge of ours."""
    return _text(name, kind, meaning, [_line(f"trunkline_{name}", labels, value) for labels, value in samples])


def histogram(name: str, meaning: str, samples: Iterable[tuple[Mapping[str, str], Histogram]]) -> str:
    """A histogram of ours, for each label."""
    lines = [line for labels, each in samples for line in each.lines(f"trunkline_{name}", labels)]
    return _text(name, "histogram", meaning, lines)


def _text(name: str, kind: str, meaning: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# HELP trunkline_{name} {meaning}", f"# TYPE trunkline_{name} {kind}", *lines]) + "\n"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
    return f"{name}{f'{{{shown}}}' if shown else ''} {value:.15g}"
