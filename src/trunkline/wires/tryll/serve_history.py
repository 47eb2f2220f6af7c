"""A conversation as the wire tells it, and as an agent has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import HistoryEntry


def entries_of(exchanges: Iterable[tuple[str, str]]) -> tuple[HistoryEntry, ...]:
    """What was said and answered, one entry each."""
    return tuple(
        HistoryEntry(role, text) for pair in exchanges for role, text in zip(("user", "assistant"), pair, strict=True)
    )


def exchanges_of(entries: Sequence[HistoryEntry]) -> list[tuple[str, str]]:
    """The other way round.

    Raises:
        TryllError: 3007, they are not user and assistant in turns. System prompts belong to the nodes.
    """
    for number, entry in enumerate(entries):
        if entry.role != ("user", "assistant")[number % 2]:
            raise TryllError(
                3007, f"Entry {number}: user and assistant speak in turns, and `{entry.role}` is not next."
            )
    if len(entries) % 2:
        raise TryllError(3007, "The last message has no answer.")
    texts = [entry.text for entry in entries]
    return list(zip(texts[::2], texts[1::2], strict=True))
