"""`run_agent.py MODULE.NAME [flags]`: be the agent with that bad habit; `GoodAgent` has none.

It imports what that one agent needs, and no more: the kit starts thousands of them.
"""

from __future__ import annotations

import os.path
import sys
from importlib import import_module


def main() -> int:
    """Its exit status."""
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from tests.conform.good_agent import run

    path, *flags = sys.argv[1:]
    module, _, name = path.rpartition(".")
    agent = getattr(import_module(f"tests.conform.{module or 'good_agent'}"), name)
    return run(agent(flags))


if __name__ == "__main__":
    sys.exit(main())
