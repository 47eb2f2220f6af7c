"""`run_bridge.py NAME PROFILE ...`: be the bridge with that bad habit; `GoodBridge` has none."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.conform.agentproc.good_bridge import GoodBridge

    name, profile, message, session, *optional = sys.argv[1:]
    bridge = GoodBridge
    if name != "GoodBridge":
        from tests.conform.agentproc.broken_bridges import HABITS

        bridge = HABITS[name].bridge
    sys.exit(bridge([profile, message, session, *(word.removeprefix("=") for word in optional)]).main())


if __name__ == "__main__":
    main()
