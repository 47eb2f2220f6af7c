"""The command line. This module decides which half of it is needed and imports no more than that.

`trunkline agent` is spawned by programs that wait for it, so it goes the short way, without `click` and `rich`.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """The entry point of `trunkline` and `python -m trunkline`."""
    if sys.argv[1:2] == ["agent"]:
        # Before the imports, which take longer than the rest of the start: a host may change its mind at any moment.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        from trunkline.cli.agent import main as agent_main

        agent_main(sys.argv[2:])
    else:
        from trunkline.cli.app import app

        app(prog_name="trunkline")
