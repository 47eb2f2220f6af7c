"""The graphs that come with Trunkline, by name; and where the file of a graph is. Costs nothing to import."""

from __future__ import annotations

import os

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs")
_SUFFIX = ".yaml"


def names() -> list[str]:
    """The names of the graphs that come with Trunkline."""
    return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(_FOLDER) if name.endswith(_SUFFIX))


def locate(spec: str) -> str:
    """The file of a graph. The name of a bundled one always means that one; `./NAME` is a file of that name."""
    return os.path.join(_FOLDER, spec + _SUFFIX) if spec in names() else spec


def folder_of(spec: str) -> str:
    """The folder that a graph's files are looked for in."""
    return os.path.dirname(os.path.abspath(locate(spec)))
