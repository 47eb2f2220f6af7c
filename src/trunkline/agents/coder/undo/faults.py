"""Why what a turn changes cannot be kept. Apart from the rest, which an agent does not need for its start."""

from __future__ import annotations

from trunkline.core.faults import StoreUnavailable


class NoCheckpoint(StoreUnavailable):
    """What a turn is about to change cannot be kept; the text says why."""


class StoreBusy(NoCheckpoint):
    """Somebody else has the store for now."""
