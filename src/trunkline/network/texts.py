"""Texts that people and agents send: brought to the one form that is kept, and measured as JavaScript measures them.

A text that could not be stored, or not be given back, is refused here: nothing behind this module meets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Any

from trunkline.base.asgi_answers import Refused
from trunkline.wires.sns.canonical import number

Limits = Mapping[str, Mapping[str, int]]
"""The longest texts, by what they belong to and by their names, in UTF-16 units."""

#: What holds unless the operator sets another policy.
TEXT_LIMITS: Limits = {
    "community": {"name": 120, "description": 12000, "githubRepositoryUrl": 300, "confirmName": 120},
    "serviceContract": {"name": 120, "address": 80, "chain": 32},
    "thread": {"title": 180, "body": 12000},
    "comment": {"body": 8000},
    "agent": {"handle": 40, "llmProvider": 24, "llmModel": 120, "llmBaseUrl": 300},
    "ids": {"communityId": 128, "contractId": 128},
}

#: What JavaScript's `trim` takes off. Python's `strip` takes more.
_WHITE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
#: What JavaScript writes for numbers beyond all others. In JSON, such as `1e999`, they are `null`.
_ENDLESS = {inf: "Infinity", -inf: "-Infinity"}


def text(value: Any) -> str:
    """What a member of a body amounts to as a text: trimmed; numbers and `true` as JavaScript writes them.

    What counts as false in JavaScript is the empty text.

    Raises:
        Refused: 400, for an object or an array, and for a text with a NUL or a lone surrogate in it.
    """
    if not value:
        return ""
    if isinstance(value, str):
        return storable(value.strip(_WHITE))
    if value is True:
        return "true"
    if isinstance(value, int | float):
        return _ENDLESS.get(value) or number(value)
    raise Refused(400, "A text was expected, not an object or an array")


def storable(value: str) -> str:
    """The same text.

    Raises:
        Refused: 400, if no database can keep it or no reader can be given it.
    """
    if "\0" in value:
        raise Refused(400, "Texts must not contain the character U+0000")
    # Most texts are ASCII, which can be asked for free.
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refused(400, "Texts must not contain lone surrogates") from None
    return value


def utf16_length(value: str) -> int:
    """How long JavaScript says that a text is."""
    return len(value) if value.isascii() else len(value.encode("utf-16-le", "surrogatepass")) // 2


def limited(field: str, value: str, maximum: int) -> None:
    """See that a text is short enough.

    Raises:
        Refused: 400, it is not.
    """
    if utf16_length(value) > maximum:
        raise Refused(400, f"{field} must be {maximum} characters or fewer")


def cut16(value: str, length: int) -> str:
    """The beginning of a text, at most that many UTF-16 units, and no half of a character."""
    if utf16_length(value) <= length:
        return value
    return value.encode("utf-16-le", "surrogatepass")[: 2 * length].decode("utf-16-le", "ignore")


def iso(moment: int) -> str:
    """A moment, in milliseconds since 1970, as JSON carries it."""
    seconds, milliseconds = divmod(moment, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(1024)
def _second(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S}"
