"""`run_bridge.py MODULE.NAME PROFILE ...`: be the bridge with that bad habit; `GoodBridge` has none.

It imports what that one bridge needs, and no more: the kit starts hundreds of them.
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
    path, profile, message, session, *optional = sys.argv[1:]
    module, _, name = path.rpartition(".")
    bridge = getattr(import_module(f"tests.conform.agentproc.{module or 'good_bridge'}"), name)
    sys.exit(bridge([profile, message, session, *(word.removeprefix("=") for word in optional)]).main())


if __name__ == "__main__":
    main()
