"""The `vectors` program of the TypeScript client."""

from __future__ import annotations

from pathlib import Path

from tests.support.npm import node
from tests.support.typescript import built


def build(folder: Path) -> list[str]:
    """See clients/vectors/README.md."""
    return [str(node()), str(built(folder) / "dist" / "test" / "vectors.js")]
