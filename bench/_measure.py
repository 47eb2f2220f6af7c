"""How the benchmarks measure: pairs of a subject and its control, taken turn by turn, and the median of their ratios.

A figure alone says more about the machine's other users than about the code. What disturbs a machine for a while
disturbs both halves of a pair, and a ratio mostly survives it; the spread says how far to trust the median.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

#: Would change what is measured: a `print` of two writes, a start that compiles every module again.
FOREIGN_VARIABLES = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")

#: A median this near to its goal may be on the other side of it tomorrow.
CLOSE = 0.1


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and where the middle eighty per cent of them lie."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """What is told of some measurements."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return Spread(statistics.median(values), tenths[0], tenths[-1], len(values))


@dataclass(frozen=True)
class Taken:
    """What one measurement took: seconds by the clock, and of the processor, where that was looked at."""

    wall: float
    cpu: float | None = None


@dataclass(frozen=True)
class Goal:
    """What a ratio has to be: that of the times by the clock, or that of the processor times."""

    sign: Literal["<=", ">="]
    limit: float
    by: Literal["wall", "CPU"] = "wall"

    def met_by(self, ratio: float) -> bool:
        return ratio <= self.limit if self.sign == "<=" else ratio >= self.limit

    def __str__(self) -> str:
        return f"{self.by} {self.sign} {self.limit:g}"


Verdict = Literal["met", "close", "missed", "reported"]


@dataclass(frozen=True)
class Row:
    """One figure with its control. The ratios are ours to theirs, of whatever the unit says."""

    name: str
    unit: str
    subject: Spread
    control_name: str
    control: Spread
    ratio: Spread
    cpu_ratio: Spread | None = None
    goal: Goal | None = None
    note: str = ""

    @property
    def judged(self) -> Spread:
        """The ratio that the goal is about."""
        return self.cpu_ratio if self.goal and self.goal.by == "CPU" and self.cpu_ratio else self.ratio

    @property
    def verdict(self) -> Verdict:
        """What the median ratio means. `close` is met, but not by much."""
        if self.goal is None:
            return "reported"
        if not self.goal.met_by(self.judged.median):
            return "missed"
        margin = self.goal.limit * (1 - CLOSE if self.goal.sign == "<=" else 1 + CLOSE)
        return "met" if Goal(self.goal.sign, margin).met_by(self.judged.median) else "close"


def interleaved(rounds: int, subject: Callable[[], Taken], control: Callable[[], Taken]) -> list[tuple[Taken, Taken]]:
    """Measure both, by turns; who goes first changes, too. A first round, which finds every cache cold, is left out."""
    subject(), control()
    pairs = []
    for number in range(rounds):
        if number % 2:
            theirs = control()
            pairs.append((subject(), theirs))
        else:
            pairs.append((subject(), control()))
    return pairs


def time_row(
    name: str, pairs: Sequence[tuple[Taken, Taken]], control_name: str, *, unit: str = "ms", **more: Any
) -> Row:
    """A row about time: the ratio is how much longer the subject takes."""
    scale = {"ms": 1e3, "us": 1e6}[unit]
    return Row(
        name=name,
        unit=unit,
        subject=spread([ours.wall * scale for ours, _ in pairs]),
        control_name=control_name,
        control=spread([theirs.wall * scale for _, theirs in pairs]),
        ratio=spread([ours.wall / theirs.wall for ours, theirs in pairs]),
        cpu_ratio=_cpu_ratio(pairs, lambda ours, theirs: ours / theirs),
        **more,
    )


def rate_row(name: str, events: int, pairs: Sequence[tuple[Taken, Taken]], control_name: str, **more: Any) -> Row:
    """A row about events per second: the ratio is how many times as many the subject manages."""
    return Row(
        name=name,
        unit="k/s",
        subject=spread([events / ours.wall / 1e3 for ours, _ in pairs]),
        control_name=control_name,
        control=spread([events / theirs.wall / 1e3 for _, theirs in pairs]),
        ratio=spread([theirs.wall / ours.wall for ours, theirs in pairs]),
        cpu_ratio=_cpu_ratio(pairs, lambda ours, theirs: theirs / ours),
        **more,
    )


def _cpu_ratio(pairs: Sequence[tuple[Taken, Taken]], ratio: Callable[[float, float], float]) -> Spread | None:
    known = [(ours.cpu, theirs.cpu) for ours, theirs in pairs]
    return spread([ratio(ours, theirs) for ours, theirs in known if ours and theirs]) if all(map(all, known)) else None


def cpu_seconds(pid: int) -> float:
    """The processor time of another process, all its threads together, to the nanosecond."""
    # The clock id that clock_getcpuclockid(3) gives for a process.
    return time.clock_gettime((~pid << 3) | 2)


def clean_environment(**more: str) -> dict[str, str]:
    """The environment for a child: ours, without what would change the measurement or the agent."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in FOREIGN_VARIABLES and not name.startswith("TRUNKLINE_")
    }
    return kept | more


def environment() -> dict[str, Any]:
    """What a reader needs to know of the machine."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "executable": sys.executable,
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(value, 2) for value in os.getloadavg()],
        "unset for children": [name for name in FOREIGN_VARIABLES if name in os.environ],
        "other PYTHON variables": sorted(
            name for name in os.environ if name.startswith("PYTHON") and name not in FOREIGN_VARIABLES
        ),
    }


# What people see.


def as_dict(row: Row) -> dict[str, Any]:
    """A row for programs."""
    return asdict(row) | {"goal": str(row.goal) if row.goal else None, "verdict": row.verdict}


HEADINGS = ("figure", "ours", "control", "", "wall", "10%..90%", "CPU", "10%..90%", "goal", "")


def table(rows: Sequence[Row]) -> str:
    """All rows for people."""
    lines = [
        (
            row.name,
            f"{_number(row.subject.median)} {row.unit}",
            f"{_number(row.control.median)} {row.unit}",
            row.control_name,
            *_shown(row.ratio),
            *_shown(row.cpu_ratio),
            str(row.goal or ""),
            row.verdict,
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *lines, strict=True)]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (HEADINGS, *lines)
    ]
    notes = [f"  {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([*shown, *(["", "Notes", *notes] if notes else [])])


def _shown(ratio: Spread | None) -> tuple[str, str]:
    if ratio is None:
        return "", ""
    return f"{_number(ratio.median)}x", f"{_number(ratio.low)}..{_number(ratio.high)}"


def _number(value: float) -> str:
    """Three digits are as many as such a machine can tell apart."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
