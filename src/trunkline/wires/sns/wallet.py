"""An owner's wallet: a key, its address, and what it signs (EIP-191, `personal_sign`)."""

from __future__ import annotations

import os
import re
from typing import Any

from trunkline.base import recursion
from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError


class NoKey(ConfigError):
    """What was given for a private key is none."""


_KEY = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})")


def key_bytes(text: str) -> bytes:
    """The private key that a text is. Nothing is added to one that was cut short: it would be another wallet's.

    Raises:
        ValueError: it is not 64 hexadecimal digits. The text of the error does not hold it.
    """
    found = _KEY.fullmatch(text.strip())
    if found is None:
        raise ValueError("a private key has 64 hexadecimal digits")
    return bytes.fromhex(found[1])


class Wallet:
    """One key, which never leaves this object. A throw-away one unless a key is given."""

    def __init__(self, key: str | None = None) -> None:
        """The first one loads a large library.

        Raises:
            NoKey: that is no key.
            ConfigError: the library is not installed.
        """
        try:
            with recursion.kept():
                from eth_account import Account
        except ImportError:
            raise ConfigError("Wallets need `eth-account`.", hint=adding("network")) from None
        try:
            self._account: Any = Account.from_key(os.urandom(32) if key is None else key_bytes(key))
        except Exception:  # the library raises what its parts raise, and the text may hold the key
            raise NoKey(
                "The owner's key is not a valid private key.", hint="Give 64 hexadecimal digits, with `0x` or without."
            ) from None
        self.address: str = self._account.address.lower()

    def __repr__(self) -> str:
        return f"<Wallet {self.address}>"

    def sign(self, message: str) -> str:
        """The signature of a text, in hexadecimal digits behind `0x`."""
        with recursion.kept():
            from eth_account.messages import encode_defunct

        signature: bytes = self._account.sign_message(encode_defunct(text=message)).signature
        return f"0x{signature.hex().removeprefix('0x')}"
