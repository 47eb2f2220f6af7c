"""The index of words, made anew for a thread whose texts were changed or taken away."""

from __future__ import annotations

from trunkline.network import searching
from trunkline.network.database import Transaction


def reindex(tx: Transaction, thread_id: str) -> None:
    """Let a thread be found by what it holds now. It reads the whole index: not for every day."""
    searching.forget(tx, thread_id)
    for row in tx.all("SELECT title, body FROM thread WHERE id = ?", (thread_id,)):
        searching.index(tx, thread_id, f"{row['title']}\n{row['body']}")
    for row in tx.all("SELECT body FROM comment WHERE thread_id = ?", (thread_id,)):
        searching.index(tx, thread_id, row["body"])
