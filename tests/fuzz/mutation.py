"""A small fuzzer of our own, for machines that have no better one.

It mutates inputs at random and keeps those whose outcomes were never seen before: guided by what the target says of
an input, not by coverage.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

Target = Callable[[bytes], frozenset[str]]

#: How often an input is made of a seed instead of one that was kept: what was kept is often far from anything sensible.
SEED_SHARE = 0.5
#: Inputs that are kept. Beyond that a new one takes the place of a random one, so that no run grows for ever.
MOST_KEPT = 2000
#: The longest input. Longer ones say nothing new and cost time.
MOST_BYTES = 8192
#: One mutation alone finds what is near a seed; some defects need several.
MOST_MUTATIONS = 6
#: Looking at the clock costs as much as a short input.
INPUTS_PER_LOOK = 64


class Mutator:
    """Makes new inputs of old ones."""

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes], seed: int) -> None:
        self._random = random.Random(seed)
        self._tokens = tokens
        self._seeds = seeds
        self._kept = list(seeds)
        self._ways = (
            self._flip,
            self._set,
            self._insert,
            self._delete,
            self._repeat,
            self._splice,
            self._cut,
            self._bump,
        )

    def next(self) -> bytes:
        """One more input."""
        data = bytearray(self._choose())
        for _ in range(self._random.randint(1, MOST_MUTATIONS)):
            self._random.choice(self._ways)(data)
        return bytes(data[:MOST_BYTES])

    def _choose(self) -> bytes:
        if self._random.random() < SEED_SHARE:
            return self._random.choice(self._seeds)
        # The shorter of two: mutations lengthen more often than they shorten, and length costs time.
        return min(self._random.choice(self._kept), self._random.choice(self._kept), key=len)

    def keep(self, data: bytes) -> None:
        """Go on from an input, too."""
        if len(self._kept) < MOST_KEPT:
            self._kept.append(data)
        else:
            self._kept[self._random.randrange(MOST_KEPT)] = data

    def _place(self, data: bytearray) -> int:
        return self._random.randint(0, len(data))

    def _range(self, data: bytearray) -> slice:
        start = self._place(data)
        return slice(start, start + self._random.choice((1, 2, 4, 16, 64, 256)))

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] = self._random.randrange(256)

    def _insert(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self._random.choice(self._tokens)

    def _delete(self, data: bytearray) -> None:
        del data[self._range(data)]

    def _repeat(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = data[self._range(data)] * self._random.choice((1, 1, 2, 8, 64))

    def _splice(self, data: bytearray) -> None:
        other = self._random.choice(self._kept)
        at = self._random.randint(0, len(other))
        data[self._place(data) :] = other[at:]

    def _cut(self, data: bytearray) -> None:
        del data[self._place(data) :]

    def _bump(self, data: bytearray) -> None:
        """Change how the input is fed, and leave the rest alone."""
        if data:
            data[self._random.randrange(min(len(data), 3))] = self._random.randrange(256)


def fuzz(
    target: Target,
    mutator: Mutator,
    seeds: Sequence[bytes],
    runs: int,
    seconds: float,
    tell: Callable[[int], None] = lambda number: None,
) -> int:
    """Feed the seeds and then mutations of them to the target, until `runs` inputs or `seconds` are over.

    `tell` hears now and then how many there were so far.

    Returns:
        How many inputs there were. What the target raises comes through.
    """
    deadline = time.monotonic() + seconds
    seen: set[str] = set()
    for number in range(runs):
        if number % INPUTS_PER_LOOK == 0:
            if time.monotonic() >= deadline:
                return number
            tell(number)
        data = seeds[number] if number < len(seeds) else mutator.next()
        outcomes = target(data)
        if not outcomes <= seen:
            seen |= outcomes
            mutator.keep(data)
    return runs
