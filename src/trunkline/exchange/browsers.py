"""Browsers that are signed in: by a link that works once, or with a person's token.

A browser has a secret in a cookie, and the row has its digest. What it may do is what its person may do now: one whose
token was taken out of the configuration is signed out by that.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable

from trunkline.base.values import Value
from trunkline.exchange.people import LOCAL, People, Person
from trunkline.store.database import Database, Transaction

#: Random bytes in a secret, and in the code of a link.
SECRET_BYTES = 32
#: How long a link works that nobody has opened.
LINK_SECONDS = 24 * 3600
#: More links than anybody has printed and not opened; the oldest ones work no more.
MOST_LINKS = 100
#: How long a browser stays signed in that is not used, and how exactly that is known.
UNUSED_MS, NOTED_MS = 30 * 24 * 3600 * 1000, 3600 * 1000
#: A longer one cannot be ours, and is not hashed.
LONGEST_SECRET = 200


class SignedIn(Value):
    """A browser. `token_sha256` is that of the person's token; the user who runs the exchange needs none."""

    digest: str
    token_sha256: str
    created_at: int
    used_at: int


class Browsers:
    """All of them."""

    def __init__(self, database: Database, clock: Callable[[], int], people: Callable[[], People]) -> None:
        self._database = database
        self._clock = clock
        self._people = people
        self._links: dict[str, tuple[int, str]] = {}
        """The digests of codes, until when they count, and for whose token."""

    def code(self, token_sha256: str = "") -> str:
        """The code of a new link, by which one browser is signed in as the person with that token, or as the user who
        runs the exchange."""
        code = secrets.token_urlsafe(SECRET_BYTES)
        while len(self._links) >= MOST_LINKS:
            del self._links[next(iter(self._links))]
        self._links[_digest(code)] = self._clock() + LINK_SECONDS * 1000, token_sha256
        return code

    async def by_code(self, code: str) -> str | None:
        """Sign a browser in by the code of a link, which counts no more; gives its secret. None: the code is wrong, or
        was used."""
        until, token_sha256 = self._links.pop(_digest(code), (0, "")) if len(code) <= LONGEST_SECRET else (0, "")
        return await self._begin(token_sha256) if self._clock() < until else None

    async def by_token(self, token: str) -> str | None:
        """The same with a person's token."""
        if self._people().of_token(token) is None:
            return None
        return await self._begin(_digest(token))

    async def find(self, secret: str) -> tuple[Person, str] | None:
        """Whose browser it is, and the SHA-256 of the token that it was signed in with, if there was one; None if it is
        not signed in."""
        if not 0 < len(secret) <= LONGEST_SECRET:
            return None
        digest, now = _digest(secret), self._clock()
        sql = "SELECT digest, token_sha256, created_at, used_at FROM browser WHERE digest = ?"
        row = await self._database.read(lambda tx: tx.one(sql, (digest,)))
        if row is None:
            return None
        found = SignedIn(**row)
        person = LOCAL if not found.token_sha256 else self._people().of_digest(found.token_sha256)
        if now - found.used_at > UNUSED_MS:
            await self._forget(digest)
            return None
        if person is None:
            # It stays: another node of a cluster may have a newer configuration.
            return None
        if now - found.used_at > NOTED_MS:
            sql = "UPDATE browser SET used_at = ? WHERE digest = ?"
            await self._database.write(lambda tx: tx.execute(sql, (now, digest)))
        return person, found.token_sha256

    async def sign_out(self, secret: str) -> None:
        """That browser is signed in no more."""
        await self._forget(_digest(secret))

    async def _begin(self, token_sha256: str) -> str:
        secret, now = secrets.token_urlsafe(SECRET_BYTES), self._clock()

        def write(tx: Transaction) -> None:
            tx.execute("DELETE FROM browser WHERE used_at < ?", (now - UNUSED_MS,))
            sql = "INSERT INTO browser (digest, token_sha256, created_at, used_at) VALUES (?, ?, ?, ?)"
            tx.execute(sql, (_digest(secret), token_sha256, now, now))

        await self._database.write(write)
        return secret

    async def _forget(self, digest: str) -> None:
        await self._database.write(lambda tx: tx.execute("DELETE FROM browser WHERE digest = ?", (digest,)))


def forgery_token(secret: str) -> str:
    """What a page of ours sends with what changes something. Other pages cannot know it, though a browser may send the
    cookie for them."""
    return hmac.new(secret.encode(), b"trunkline console", hashlib.sha256).hexdigest()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
