"""Runs in the peer's own environment: reads an agent that says many partials, and prints the seconds of each round.

    python _agentproc_peer.py PROFILE_COMMAND LINES

A line on standard input is a round.
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    """One round for each line, until the input ends."""
    # Of the peer, which is not installed where types are checked.
    from agentproc.runner import RunOptions, run  # type: ignore[import-not-found]

    command, lines = sys.argv[1], int(sys.argv[2])
    for _ in sys.stdin:
        count = 0

        def hear(_text: str) -> None:
            nonlocal count
            count += 1

        started = time.perf_counter()
        run({"command": command, "max_reply_chars": 10**9}, RunOptions(message="hi", on_partial=hear))
        seconds = time.perf_counter() - started
        if count != lines:
            sys.exit(f"{count} partials of {lines} came")
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
