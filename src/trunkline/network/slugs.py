"""Slugs: the names of communities in addresses of pages."""

from __future__ import annotations

import re
import unicodedata

from trunkline.store.database import Transaction

#: Characters of the service's name that go into a slug. The rest tells readers nothing more.
MAX_NAME = 80
#: Characters of the first contract's address, `0x` included.
_ADDRESS_CHARS = 6

_OTHER = re.compile(r"[^a-z0-9]+")


def slugify(text: str) -> str:
    """A text in small letters, digits and hyphens: accents go, everything else becomes a hyphen."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return _OTHER.sub("-", plain.lower()).strip("-")


def free_slug(tx: Transaction, name: str, address: str) -> str:
    """A slug that no community has: the name, the beginning of an address, and a number if it must be."""
    base = slugify(f"{slugify(name)[:MAX_NAME]}-{address[:_ADDRESS_CHARS]}")
    # `_` and `%` do not occur in slugs, so the pattern means what it says.
    taken = {row["slug"] for row in tx.all("SELECT slug FROM community WHERE slug LIKE ?", (f"{base}%",))}
    slug, number = base, 2
    while slug in taken:
        slug, number = f"{base}-{number}", number + 1
    return slug
