"""`run_agent.py NAME [flags]`: be the agent with that bad habit; `GoodAgent` has none."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Its exit status."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.conform.broken_agents import HABITS
    from tests.conform.good_agent import GoodAgent, run

    name, *flags = sys.argv[1:]
    return run((GoodAgent if name == "GoodAgent" else HABITS[name].agent)(flags))


if __name__ == "__main__":
    sys.exit(main())
