"""The secrets that a runner knows: masked in all that it shows, and never posted.

Known are the secrets of its configuration and those of its environment.

- Masked is every spelling that `base.redact` knows, of the secret, of its part behind a prefix such as `rnr_`, of its
  letters as hexadecimal digits, and of the bytes that a key in hexadecimal digits stands for.
- Refused in a post is all of that, and besides what comes to it when white space, invisible characters, separators
  and the difference between small letters and capitals are left out.
- A configured secret that is short, or everybody's word, counts where it stands as a word of its own. One of fewer than
  four characters cannot be told from text, and one that says that there is none (`none`, `test`) is none.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from trunkline.base.environ_secrets import COMMON_WORDS, FEWEST_CHARS, environment_secrets, octets
from trunkline.base.redact import MASK, Masked, Redactor
from trunkline.base.visible import drawn

#: A configured secret that is shorter is part of too many words.
FEWEST_CHARS_OF_A_WORD = 4
#: So many letters and digits in a row are beyond chance, whatever stood between them.
FEWEST_CHARS_APART = 16
#: What people write where a key must stand and none is needed: their agents may use these words.
PLACEHOLDERS = frozenset(("dummy", "empty", "fake", "local", "mock", "none", "null", "ollama", "test", "unused"))

#: The digits of a key. Shorter ones are numbers and ids.
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{32,})")
#: What names the kind of a token.
_PREFIX = re.compile(r"[A-Za-z]{2,8}[_-]")
#: What stands before each byte in some notations.
_BYTE_MARK = re.compile(r"(?i)0x|\\x")
_NO_LETTER = re.compile(r"[\W_]+")


class Secrets(Redactor):
    """Masks secrets, and tells whether there is one."""

    __slots__ = ("_apart", "_hex", "_tight", "_words")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        given = {secret.strip() for secret in secrets}
        known = {secret for secret in given if _is_long(secret)}
        words = {word for word in given - known if _is_word(word)}
        digits = {found[1].lower() for secret in known if (found := _HEX.fullmatch(secret))}
        parts = {part for secret in known for part in _behind_prefixes(secret)}
        spelled = {spelling for secret in known | words for spelling in _spelled(secret)}
        super().__init__((*known, *digits, *parts, *spelled))
        self._hex = re.compile(f"(?i)(?:0x)?(?:{_any(digits)})") if digits else None
        self._words = re.compile(rf"(?<!\w)(?:{_any(words)})(?!\w)") if words else None
        self._tight = {_tight(each) for each in known | parts}
        apart = {_apart(each) for each in known | digits | parts | spelled}
        self._apart = {each for each in apart if len(each) >= FEWEST_CHARS_APART}

    def text(self, text: str) -> Masked:
        masked = super().text(text)
        for pattern in (self._hex, self._words):
            masked = masked if pattern is None else Masked(pattern.sub(MASK, masked))
        return masked

    def within(self, data: Any) -> bool:
        """Whether JSON data has a secret in it, in whatever spelling."""
        if isinstance(data, str):
            return self._is_in(data) or ("%" in data and self._is_in(unquote(data)))
        if isinstance(data, Mapping):
            return any(self.within(key) or self.within(member) for key, member in data.items())
        if isinstance(data, list | tuple):
            return any(map(self.within, data))
        return False

    def _is_in(self, text: str) -> bool:
        # What nobody sees between its letters changes nothing about a word.
        if any(self.text(form) != form for form in (text, drawn(text))):
            return True
        tight = _tight(text)
        if any(secret in tight for secret in self._tight):
            return True
        apart = {_apart(text), _apart(_BYTE_MARK.sub("", text))}
        return any(secret in form for form in apart for secret in self._apart)


def known(configured: Iterable[str], environ: Mapping[str, str]) -> Secrets:
    """Those of a configuration and of an environment."""
    return Secrets((*configured, *environment_secrets(environ)))


def _is_long(secret: str) -> bool:
    """As in an environment: what is shorter, or everybody's word, would be masked in ordinary sentences."""
    return len(secret) >= FEWEST_CHARS and secret.lower() not in COMMON_WORDS


def _is_word(secret: str) -> bool:
    return len(secret) >= FEWEST_CHARS_OF_A_WORD and secret.lower() not in PLACEHOLDERS


def _behind_prefixes(secret: str) -> Iterator[str]:
    """What is left of a key without the names of its kind. Words that are joined by dashes are no such names."""
    while (prefix := _PREFIX.match(secret)) is not None:
        secret = secret[prefix.end() :]
        if len(secret) >= FEWEST_CHARS_APART and any(map(str.isdigit, secret)):
            yield secret


def _spelled(secret: str) -> Iterator[str]:
    """Its letters in digits, and a key's bytes and the letters' in base64, whatever stands before them."""
    yield octets(secret).hex()
    yield from _base64(octets(secret))
    if (found := _HEX.fullmatch(secret)) and len(found[1]) % 2 == 0:
        yield from _base64(bytes.fromhex(found[1]))


def _base64(data: bytes) -> Iterator[str]:
    for before in range(3):
        # Six bits make a character: those that hold a bit of a neighbour are not ours to know.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        inner = b64encode(bytes(before) + data).decode("ascii")[first:last]
        if len(inner) >= FEWEST_CHARS:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


def _apart(text: str) -> str:
    """Nothing but its letters and digits, all small."""
    return _NO_LETTER.sub("", text).lower()


def _tight(text: str) -> str:
    """Without white space, and without what nobody sees."""
    return "".join(drawn(text).split())


def _any(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
