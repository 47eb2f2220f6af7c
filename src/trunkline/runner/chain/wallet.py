"""The key that transactions are signed with. It never leaves this object."""

from __future__ import annotations

from typing import Any

from trunkline.base import recursion
from trunkline.base.extras import adding
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.sns.wallet import key_bytes


class Signed(Value):
    """A transaction that could be sent: its hash, and its bytes."""

    hash: str
    raw: bytes


class SpendingWallet:
    """One private key. Making it imports a large library: use a thread.

    Raises:
        ConfigError: the key is none, or the library is not installed.
    """

    def __init__(self, private_key: str) -> None:
        try:
            with recursion.kept():
                from eth_account import Account
        except ImportError:
            raise ConfigError("Transactions need the `runner` extra.", hint=adding("runner")) from None
        try:
            self._account: Any = Account.from_key(key_bytes(private_key))
        except Exception:
            # Whatever the library says may hold the key.
            raise ConfigError("`execution.privateKey` is not a private key.") from None
        self.address: str = self._account.address

    def __repr__(self) -> str:
        return f"<SpendingWallet {self.address}>"

    def sign(self, transaction: dict[str, Any]) -> Signed:
        """Sign a transaction that has all of its fields."""
        signed = self._account.sign_transaction(transaction)
        return Signed(f"0x{bytes(signed.hash).hex()}", bytes(signed.raw_transaction))
