"""Tokens, as far as they are known. Absent is not zero: a number that nobody reported stays `None`."""

from __future__ import annotations

from trunkline.base.values import Value


class Usage(Value):
    """What one model request, one turn or one session used."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    """How many of the output's the model thought with and did not say, where it tells."""

    def __add__(self, other: Usage) -> Usage:
        """The sum of what is known; `None` only where neither side knows."""
        return Usage(*(_plus(getattr(self, name), getattr(other, name)) for name in self.__fields__))

    @property
    def known(self) -> bool:
        """Whether anything at all was reported."""
        return any(getattr(self, name) is not None for name in self.__fields__)


def _plus(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


#: What a turn used that never reached a model: known, and nothing.
NOTHING_USED = Usage(input_tokens=0, output_tokens=0)
