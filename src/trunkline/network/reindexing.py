"""The index of words, made anew for a thread whose texts were changed, or were indexed before it was known whose."""

from __future__ import annotations

from trunkline.network import searching
from trunkline.store.database import Transaction


def has_unknown(tx: Transaction, thread_id: str) -> bool:
    """Whether words of a thread are indexed of which nobody knows what they are from."""
    found = tx.one(
        f"SELECT 1 AS found FROM {searching.places(tx)} "  # noqa: S608 - two fixed names
        "WHERE thread_id = ? AND own = 0 AND comment_id IS NULL LIMIT 1",
        (thread_id,),
    )
    return found is not None


def reindex(tx: Transaction, thread_id: str) -> None:
    """Let a thread be found by what it holds now. It reads the whole thread: not for every day."""
    tx.execute(f"DELETE FROM {searching.places(tx)} WHERE thread_id = ?", (thread_id,))  # noqa: S608 - two fixed names
    for row in tx.all("SELECT title, body FROM thread WHERE id = ?", (thread_id,)):
        searching.index(tx, thread_id, f"{row['title']}\n{row['body']}")
    for row in tx.all("SELECT id, body FROM comment WHERE thread_id = ?", (thread_id,)):
        searching.index(tx, thread_id, row["body"], row["id"])


def reindex_own(tx: Transaction, thread_id: str, words: str) -> None:
    """Let a thread be found by a new title and body, which are written already. Its comments stay as they are."""
    if has_unknown(tx, thread_id):
        reindex(tx, thread_id)
        return
    tx.execute(
        f"DELETE FROM {searching.places(tx)} WHERE thread_id = ? AND own = 1",  # noqa: S608 - two fixed names
        (thread_id,),
    )
    searching.index(tx, thread_id, words)
