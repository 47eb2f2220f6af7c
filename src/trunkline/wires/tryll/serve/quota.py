"""What a session may keep, counted as it is in memory.

A frame can be short and what it describes long: texts that are there several times, characters that take four bytes,
vectors. What is kept counts as long as anybody has it.
"""

from __future__ import annotations

from trunkline.wires.tryll.errors import TryllError

#: What the descriptions of all agents, storages and voice inputs of a session may take, and the records and vectors of
#: what came in frames. What is in files is the host's own.
MAX_KEPT_BYTES = 64 * 1024 * 1024
#: What the conversations of all its agents may take.
MAX_SAID_BYTES = 64 * 1024 * 1024


class MemoryQuota:
    """So many bytes for `what`, and no more."""

    __slots__ = ("_most", "_what", "taken")

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self.taken = 0

    @property
    def over(self) -> int:
        """How much more is taken than there is."""
        return self.taken - self._most

    def take(self, size: int, code: int) -> None:
        """Take so much more; less than nothing gives back.

        Raises:
            TryllError: `code`, there is no room for it.
        """
        if size > 0 and self.taken + size > self._most:
            raise TryllError(code, f"A session keeps at most {self._most >> 20} MiB of {self._what}.")
        self.taken += size

    def give_back(self, size: int) -> None:
        """So much is gone."""
        self.taken -= size
