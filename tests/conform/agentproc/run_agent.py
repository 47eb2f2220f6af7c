"""`run_agent.py NAME DIALECT`: be the agent with that bad habit; `GoodAgent` has none."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.conform.agentproc.good_agent import GoodAgent, run, utf8_environ

    name, dialect = sys.argv[1:]
    agent = GoodAgent
    if name != "GoodAgent":
        from tests.conform.agentproc.broken_agents import HABITS

        agent = HABITS[name].agent
    run(agent(dialect == "0.4", utf8_environ()))


if __name__ == "__main__":
    main()
