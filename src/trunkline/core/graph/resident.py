"""What is told of a model that is loaded."""

from __future__ import annotations

from trunkline.base.values import Value


class ResidentModel(Value):
    """A model that is in the memory of this machine, and what it takes there."""

    name: str
    memory_bytes: int = 0
    measured: bool = False
    """Whether that is how much larger this process has become while it was loaded; else it is what its files take."""
    waiting: int = 0
    """How many wait for it."""
