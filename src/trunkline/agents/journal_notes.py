"""What agents write into a session's journal under a key of their own, read again when the session is resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def last_text(records: Sequence[Any], key: str) -> str | None:
    """The text that was written last under a key, such as a program's own id of the session."""
    for record in reversed(records):
        if isinstance(record, dict) and isinstance(record.get(key), str):
            return str(record[key])
    return None


def exchanges(records: Iterable[Any], key: str) -> Iterator[tuple[str, str]]:
    """All messages that were written under a key, each with its answer."""
    for record in records:
        found = record.get(key) if isinstance(record, dict) else None
        if isinstance(found, list) and len(found) == 2 and all(isinstance(text, str) for text in found):
            yield found[0], found[1]
