"""Who is asking: tokens and what each of them allows."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from trunkline.base.values import Value
from trunkline.exchange.settings import ROLES, PersonSettings, Role


class Person(Value):
    """Somebody who may do something here."""

    name: str
    role: Role

    def may(self, least: Role) -> bool:
        """Whether this one's role is at least that."""
        return ROLES.index(self.role) >= ROLES.index(least)


#: Who comes through the socket in the exchange's home, which only the user who runs it can open.
LOCAL = Person("local", "admin")


class People:
    """All of those who have a token."""

    def __init__(self, settings: Iterable[PersonSettings]) -> None:
        self._digests = [(each.token_sha256.lower(), Person(each.name, each.role)) for each in settings]

    def of_token(self, token: str) -> Person | None:
        """Whose token that is; None: nobody's."""
        digest = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for known, person in self._digests:
            # All of them, however early one fits: the time that this takes says nothing.
            if hmac.compare_digest(digest, known):
                found = person
        return found
