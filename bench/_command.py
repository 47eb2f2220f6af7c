"""What every benchmark is as a command: sizes to choose from, a table or JSON, and an exit code."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from bench._measure import Row, as_dict, environment, table

EXIT_MISSED = 1

Progress = Callable[[str], None]


class Sizes(Protocol):
    """How much is measured."""

    @property
    def judged(self) -> bool:
        """Whether the figures mean anything."""


S = TypeVar("S", bound=Sizes)

#: What the sizes are for. `normal` needs no flag.
HELP = {
    "quick": "fewer rounds",
    "long": "more rounds, and longer sessions",
    "tiny": "only see that every row runs",
}


def run(
    description: str, sizes: Mapping[str, S], measure: Callable[[S, Progress], list[Row]], arguments: list[str] | None
) -> int:
    """Measure, tell, judge."""
    parser = argparse.ArgumentParser(description=description)
    group = parser.add_mutually_exclusive_group()
    for name, help_text in HELP.items():
        if name in sizes:
            group.add_argument(f"--{name}", dest="size", action="store_const", const=name, help=help_text)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.set_defaults(size="normal")
    options = parser.parse_args(arguments)

    chosen = sizes[options.size]
    around = environment()
    started = time.monotonic()
    rows = measure(chosen, lambda what: print(f"measuring {what} ...", file=sys.stderr, flush=True))
    around["seconds"] = round(time.monotonic() - started)
    missed = [row for row in rows if row.verdict == "missed"] if chosen.judged else []
    if options.json:
        print(json.dumps({"environment": around, "rows": [as_dict(row) for row in rows]}, indent=2))
    else:
        print("\n".join(f"{name}: {value}" for name, value in around.items()), table(rows), sep="\n\n")
    for row in missed:
        print(f"missed: {row.name}: {row.judged.median:.3g}x of `{row.control_name}`, goal {row.goal}", file=sys.stderr)
    return EXIT_MISSED if missed else 0
