"""The environment for a child whose coverage is not measured: where its speed, or what it imports, is the matter."""

from __future__ import annotations

import os


def unmeasured() -> dict[str, str]:
    """This process's environment, without what makes coverage measure its children."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_"))}
