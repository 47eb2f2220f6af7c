"""Builds the C# client's `vectors`."""

from __future__ import annotations

from pathlib import Path

from tests.clients.csharp_build import CLIENT, compiled


def build(folder: Path) -> list[str]:
    """See clients/vectors/README.md."""
    return compiled(folder / "vectors.exe", CLIENT / "Tests~" / "Vectors.cs")
