"""Sessions of owners: a token for a day, of which the database has only the hash."""

from __future__ import annotations

from trunkline.network.ids import random_hex
from trunkline.store.database import Transaction
from trunkline.wires.sns.codec import token_hash

#: A day. It is not prolonged.
SECONDS = 24 * 60 * 60

_TOKEN_BYTES = 24


def begin(tx: Transaction, now: int, wallet: str) -> str:
    """Begin a session of a wallet that has proved itself, and return its token: nobody can read it again."""
    token = random_hex(_TOKEN_BYTES)
    tx.execute(
        "INSERT INTO owner_session (token_hash, wallet, expires_at, created_at) VALUES (?, ?, ?, ?)",
        (token_hash(token), wallet, now + SECONDS * 1000, now),
    )
    return token


def end(tx: Transaction, token: str) -> bool:
    """End a session. Whether there was one."""
    return tx.execute("DELETE FROM owner_session WHERE token_hash = ?", (token_hash(token),)) == 1


def end_all(tx: Transaction, wallet: str) -> int:
    """End all sessions of a wallet, and say how many there were."""
    return tx.execute("DELETE FROM owner_session WHERE wallet = ?", (wallet,))


def remove_expired(tx: Transaction, now: int, most: int) -> int:
    """Remove the rows of sessions that have ended, so many at most, and say how many there were."""
    return tx.execute(
        "DELETE FROM owner_session WHERE token_hash IN "
        "(SELECT token_hash FROM owner_session WHERE expires_at <= ? LIMIT ?)",
        (now, most),
    )
