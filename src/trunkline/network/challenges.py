"""Challenges: a text to be signed once, by one wallet, within five minutes.

A challenge is kept by whoever asked for it: its id is all that it says, and a seal of this network's. So anybody may
ask for any number of them, in anybody's name, and neither voids another's nor fills the database. What is kept is
which were answered, until they would have expired.

A challenge is used up before its signature is looked at. A wrong signature burns it, and of several answers at once
only one is heard.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Literal

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.base.values import Value
from trunkline.network.ids import random_hex
from trunkline.network.network import Network
from trunkline.network.texts import iso
from trunkline.store.database import Transaction

Scope = Literal["OWNER_LOGIN", "AGENT_LOGIN"]

#: How long a person may take to sign.
SECONDS = 5 * 60
#: What the text begins with, so that a person sees who asks.
TITLE = "Agentic Ethereum: 24-7 Playground"

#: Old answers that every new one removes. More than one, so that none are left over in the end.
_REMOVED_AT_ONCE = 4
#: Longer than any that was given out.
_MAX_ID = 2000
_NAME = "challenge"
_KEY_BYTES = 32


class Challenge(Value):
    """A text that waits for its signature."""

    id: str
    message: str
    expires_at: int
    wallet: str
    community_slug: str | None


async def seal(network: Network) -> bytes:
    """The key that challenges of this network are sealed with: the same for all of its servers."""
    if network.seal is None:
        network.seal = await network.database.write(_key)
    return network.seal


def issue(key: bytes, now: int, scope: Scope, wallet: str, community_slug: str | None = None) -> Challenge:
    """Make a challenge."""
    nonce, expires_at = random_hex(16), now + SECONDS * 1000
    said = urlsafe_b64encode(jsontext.dumps([scope, wallet, community_slug, nonce, expires_at])).decode()
    text = message(scope, wallet, community_slug, nonce, expires_at)
    return Challenge(f"{said}.{_sealed(key, said)}", text, expires_at, wallet, community_slug)


def consume(tx: Transaction, key: bytes, now: int, scope: Scope, id: str) -> Challenge:
    """Use a challenge up, and return it.

    Raises:
        Refused: 400, it is none of ours, or it is used or too old.
    """
    said, _, mac = id[:_MAX_ID].partition(".")
    if not hmac.compare_digest(_sealed(key, said).encode(), mac.encode("utf-8", "surrogatepass")):
        raise _invalid()
    given, wallet, community_slug, nonce, expires_at = jsontext.loads(urlsafe_b64decode(said))
    if given != scope or expires_at <= now:
        raise _invalid()
    _remove_oldest(tx, now)
    first = tx.execute(
        "INSERT INTO answered_challenge (nonce, expires_at) VALUES (?, ?) ON CONFLICT (nonce) DO NOTHING",
        (nonce, expires_at),
    )
    if first != 1:
        raise _invalid()
    return Challenge(id, message(scope, wallet, community_slug, nonce, expires_at), expires_at, wallet, community_slug)


def message(scope: Scope, wallet: str, community_slug: str | None, nonce: str, expires_at: int) -> str:
    """The text that is signed."""
    lines = [TITLE, f"Scope: {scope}", f"Wallet: {wallet}"]
    if community_slug is not None:
        lines.append(f"Community: {community_slug}")
    return "\n".join([*lines, f"Nonce: {nonce}", f"ExpiresAt: {iso(expires_at)}"])


def _sealed(key: bytes, said: str) -> str:
    return hmac.new(key, said.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _invalid() -> Refused:
    return Refused(400, "Invalid or expired challenge")


def _key(tx: Transaction) -> bytes:
    tx.execute(
        "INSERT INTO own_secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
        (_NAME, random_hex(_KEY_BYTES)),
    )
    row = tx.one("SELECT value FROM own_secret WHERE name = ?", (_NAME,))
    if row is None:
        raise AssertionError("it was just written")
    return bytes.fromhex(row["value"])


def _remove_oldest(tx: Transaction, now: int) -> None:
    tx.execute(
        "DELETE FROM answered_challenge WHERE nonce IN "
        "(SELECT nonce FROM answered_challenge WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
        (now, _REMOVED_AT_ONCE),
    )
