"""`run_agent.py MODULE.NAME DIALECT`: be the agent with that bad habit; `GoodAgent` has none.

It imports what that one agent needs, and no more: the kit starts hundreds of them.
"""

from __future__ import annotations

import os.path
import sys
from importlib import import_module


def main() -> None:
    root = os.path.abspath(__file__)
    for _ in range(4):
        root = os.path.dirname(root)
    sys.path.insert(0, root)
    from tests.conform.agentproc.good_agent import run, utf8_environ

    path, dialect = sys.argv[1:]
    module, _, name = path.rpartition(".")
    agent = getattr(import_module(f"tests.conform.agentproc.{module or 'good_agent'}"), name)
    run(agent(dialect == "0.4", utf8_environ()))


if __name__ == "__main__":
    main()
