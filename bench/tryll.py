"""The figures of the Tryll server, each against a control in the same run.

    python bench/tryll.py [--quick | --long] [--json]

Each server is a process of its own; the client is this one. Exit codes: 0 when every goal is met by the median, 1 when
one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._command import Progress, run
from bench._measure import Row
from bench._tryll_codec import codec_rows
from bench._tryll_model import MODEL, model_rows, weights
from bench._tryll_turns import turn_row
from bench._tryll_websocket import websocket_rows
from bench._tryll_wire import agent_row, idle_rows, load_rows

#: Turns of one conversation: few, since a long history is work for both.
TURNS = 20


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    frames: int
    """Frames in one measurement of the codec."""
    codec_rounds: int
    times: int
    """Times that each place of the depth has its turn, in one measurement of the wire."""
    mock_times: int
    load_rounds: int
    connections: int
    """That are idle."""
    process_rounds: int
    """Measurements that need new servers."""
    tokens: int
    """Of an answer by the real model."""
    answers: int
    long_prompts: int
    words: int
    """Of a long system prompt."""
    judged: bool = True


SIZES = {
    "normal": Sizes(1000, 21, 50, 8, 15, 10_000, 2, 48, 15, 5, 400),
    "quick": Sizes(500, 9, 25, 4, 5, 10_000, 1, 32, 5, 2, 250),
    "long": Sizes(5000, 61, 50, 8, 41, 10_000, 5, 96, 41, 11, 900),
    "tiny": Sizes(40, 1, 1, 1, 1, 500, 1, 4, 1, 1, 30, judged=False),
}


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    progress("the codec")
    rows = codec_rows(sizes.frames, sizes.codec_rounds)
    progress("a turn in a session of the core")
    rows.append(turn_row(TURNS, sizes.codec_rounds))
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home:
        progress("the wire, and whole turns")
        rows += load_rows(home, sizes.load_rounds, sizes.times, sizes.mock_times)
        progress("whole turns over WebSockets")
        rows += websocket_rows(home, sizes.load_rounds, sizes.mock_times)
        progress("many agents")
        rows.append(agent_row(home, sizes.process_rounds))
        progress(f"{sizes.connections:,} idle connections")
        rows += idle_rows(home, sizes.process_rounds, sizes.connections)
        progress(f"the model {MODEL}")
        path = weights()
        if path is None:
            progress(f"nothing with {MODEL}, which can neither be found nor fetched")
        else:
            rows += model_rows(home, path, sizes.tokens, sizes.answers, sizes.long_prompts, sizes.words)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The figures of the Tryll server, each against its control.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
