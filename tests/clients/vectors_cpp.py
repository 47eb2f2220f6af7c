"""Builds the C++ client's `vectors`, with everything that finds a wrong access."""

from __future__ import annotations

from pathlib import Path

from tests.clients.cpp_build import CHECKED, CLIENT, compiled


def build(folder: Path) -> list[str]:
    """See clients/vectors/README.md."""
    return [str(compiled(folder / "vectors", CLIENT / "test" / "vectors.cpp", flags=CHECKED))]
