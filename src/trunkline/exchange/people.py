"""Who makes a request: tokens, and what each of them allows."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from trunkline.base.values import Value
from trunkline.core.faults import Forbidden
from trunkline.exchange.settings import ROLES, PersonSettings, Role


class Person(Value):
    """A person with a role."""

    name: str
    role: Role

    def may(self, least: Role) -> bool:
        """Whether this person's role is at least that."""
        return ROLES.index(self.role) >= ROLES.index(least)

    def check(self, least: Role) -> None:
        """Raise `Forbidden` if it is not."""
        if not self.may(least):
            told = f"{self.name} may not do that: it needs the role `{least}`, and yours is `{self.role}`."
            raise Forbidden(told)


#: Anyone on the socket in the exchange's home, which only the user who runs it can open.
LOCAL = Person("local", "admin")


class People:
    """Everyone who has a token."""

    def __init__(self, settings: Iterable[PersonSettings]) -> None:
        self._digests = [(each.token_sha256.lower(), Person(each.name, each.role)) for each in settings]

    def of_token(self, token: str) -> Person | None:
        """The person with that token; None if there is none."""
        return self.of_digest(hashlib.sha256(token.encode()).hexdigest())

    def of_digest(self, digest: str) -> Person | None:
        """The person with the token that has this SHA-256, in hexadecimal."""
        found = None
        for known, person in self._digests:
            # All of them, even after a match: the time this takes must reveal nothing.
            if hmac.compare_digest(digest, known):
                found = person
        return found
