"""The figures of the JSON stream, each against a control in the same run.

    python bench/jsonstream.py [--quick | --long] [--json]

Exit codes: 0 when every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux.
See bench/README.md for what is measured and how.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._command import run
from bench._length import flat_rows, resume_rows
from bench._measure import Row
from bench._start import memory_rows, start_rows
from bench._stream import ping_row, rate_rows


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    starts: int
    """Pairs of starts: they are the noisiest."""
    rates: int
    deltas: int
    """Text deltas per measurement: enough to take tens of milliseconds."""
    pings: int
    pings_each: int
    windows: int
    lengths: tuple[int, ...]
    resumes: int
    resumed: int
    memories: int
    remembered: int
    judged: bool = True
    """Whether the figures mean anything."""


NORMAL = Sizes(25, 15, 50_000, 15, 1000, 40, (10_000, 100_000), 9, 1_000_000, 3, 100_000)
QUICK = Sizes(9, 5, 20_000, 5, 300, 15, (100_000,), 5, 100_000, 1, 100_000)
LONG = Sizes(51, 31, 50_000, 31, 1000, 80, (10_000, 100_000, 1_000_000), 15, 1_000_000, 5, 100_000)
#: Every row, as small as it can be: to see that it runs.
TINY = Sizes(1, 1, 300, 1, 20, 1, (1000,), 1, 2000, 1, 300, judged=False)

#: A session to resume that has hardly begun.
SHORT_SESSION = 1000


def measure(sizes: Sizes, progress: Callable[[str], None]) -> list[Row]:
    """All rows."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home:
        progress("starts")
        rows += start_rows(home, sizes.starts)
        progress("text deltas")
        rows += rate_rows(home, sizes.rates, sizes.deltas)
        progress("round trips")
        rows.append(ping_row(home, sizes.pings, sizes.pings_each))
        progress("long sessions")
        rows += flat_rows(home, sizes.windows, sizes.lengths)
        progress("resuming")
        rows += resume_rows(home, sizes.resumes, SHORT_SESSION, sizes.resumed)
        progress("memory")
        rows += memory_rows(home, sizes.memories, sizes.remembered)
    return rows


SIZES = {"normal": NORMAL, "quick": QUICK, "long": LONG, "tiny": TINY}


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The figures of the JSON stream, each against its control.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
