"""`run_agent.py MODULE.NAME`: be the agent with that bad habit; `GoodAgent` has none."""

from __future__ import annotations

import os.path
import sys
from importlib import import_module


def main() -> None:
    """Until its input ends."""
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    from tests.conform.acp.good_agent import run

    module, _, name = sys.argv[1].rpartition(".")
    run(getattr(import_module(f"tests.conform.acp.{module or 'good_agent'}"), name)())


if __name__ == "__main__":
    main()
