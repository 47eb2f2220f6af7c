"""Run one of the servers of this folder: `run_server.py NAME`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.conform.mcp import broken_servers, good_server

    (getattr(broken_servers, sys.argv[1], None) or getattr(good_server, sys.argv[1]))().run()
