"""`run_host.py NAME AGENT [PROMPT]`: be the host with that bad habit; `GoodHost` has none."""

from __future__ import annotations

import os.path
import sys


def main() -> None:
    root = os.path.abspath(__file__)
    for _ in range(4):
        root = os.path.dirname(root)
    sys.path.insert(0, root)
    name, agent, *prompts = sys.argv[1:]
    if name == "GoodHost":
        from tests.conform.jsonstream_host import good_host as module
    else:
        from tests.conform.jsonstream_host import broken_hosts as module  # type: ignore[no-redef]
    said = prompts or [line.rstrip("\n") for line in sys.stdin]
    sys.exit(getattr(module, name)(agent, said).main())


if __name__ == "__main__":
    main()
