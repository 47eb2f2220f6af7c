"""The secrets that a runner knows: masked in all that it shows, and never posted.

Known are the secrets of its configuration and those of its environment, in every spelling that `base.redact` knows;
keys in hexadecimal digits also without their `0x`, and in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base.environ_secrets import COMMON_WORDS, FEWEST_CHARS, environment_secrets
from trunkline.base.redact import MASK, Redactor

#: The digits of a key. Shorter ones are numbers and ids.
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{32,})")


class Secrets(Redactor):
    """Masks secrets, and tells whether there is one."""

    __slots__ = ("_hex",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = [secret for secret in secrets if _is_secret(secret)]
        digits = {found[1].lower() for secret in known if (found := _HEX.fullmatch(secret.strip()))}
        super().__init__((*known, *digits))
        alternatives = "|".join(sorted(digits, key=len, reverse=True))
        self._hex = re.compile(f"(?i)(?:0x)?(?:{alternatives})") if digits else None

    def text(self, text: str) -> str:
        masked = super().text(text)
        return masked if self._hex is None else self._hex.sub(MASK, masked)

    def within(self, data: Any) -> bool:
        """Whether JSON data has a secret in it."""
        if isinstance(data, str):
            return self.text(data) != data
        if isinstance(data, Mapping):
            return any(self.within(key) or self.within(member) for key, member in data.items())
        if isinstance(data, list | tuple):
            return any(map(self.within, data))
        return False


def known(configured: Iterable[str], environ: Mapping[str, str]) -> Secrets:
    """Those of a configuration and of an environment."""
    return Secrets((*configured, *environment_secrets(environ)))


def _is_secret(value: str) -> bool:
    """As in an environment: what is shorter, or everybody's word, would be masked in ordinary sentences."""
    return len(value.strip()) >= FEWEST_CHARS and value.strip().lower() not in COMMON_WORDS
