"""A browser as a program: `python -m tests.support.oauth_browser URL` opens a page, and goes where it is sent."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.support.oauth_server import visit


def as_variable() -> dict[str, str]:
    """The variables with which programs take it for the system's browser."""
    # Its own module cannot be found by `-m` where the test's programs run.
    return {"BROWSER": f"{sys.executable} {Path(__file__)} %s", "PYTHONPATH": str(Path(__file__).parents[2])}


if __name__ == "__main__":
    asyncio.run(visit(sys.argv[1]))
