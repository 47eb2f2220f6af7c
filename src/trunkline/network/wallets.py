"""Wallets: the form of their addresses, and whose signature a text carries (EIP-191, `personal_sign`)."""

from __future__ import annotations

import asyncio
import re

from trunkline.base import recursion
from trunkline.base.asgi_answers import Refused
from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError

#: What owners sign, always the same, to register and to update contracts. Such a signature can be used again by
#: whoever has seen it, so it alone does not close a community and does not ban anybody.
FIXED_MESSAGE = "24-7-playground"

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
#: Two numbers of 32 bytes, and one byte that says which of two keys it was.
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{128}(?:00|01|1[bB]|1[cC])", re.ASCII)


def address(text: str) -> str | None:
    """An address in the form that is kept, which is lower case; None for what is no address."""
    return text.lower() if _ADDRESS.fullmatch(text) else None


def wallet(text: str, field: str = "walletAddress") -> str:
    """The wallet that a request names, in the form that is kept.

    Raises:
        Refused: 400, it names none.
    """
    if not text:
        raise Refused(400, f"{field} is required")
    found = address(text)
    if found is None:
        raise Refused(400, f"Invalid {field}")
    return found


async def signer(message: str, signature: str) -> str:
    """Whose wallet signed a text.

    Raises:
        Refused: 400, that is no signature of anybody.
    """
    if not _SIGNATURE.fullmatch(signature):
        raise Refused(400, "Invalid signature")
    # It takes 10 ms, and the first one loads a large library.
    return await asyncio.to_thread(_recovered, message, signature)


def _recovered(message: str, signature: str) -> str:
    try:
        with recursion.kept():
            from eth_account import Account
            from eth_account.messages import encode_defunct
            from eth_keys.exceptions import BadSignature
            from eth_utils.exceptions import ValidationError
    except ImportError:
        raise ConfigError("Wallets cannot be checked without `eth-account`.", hint=adding("network")) from None
    try:
        recovered: str = Account.recover_message(encode_defunct(text=message), signature=signature)
    except (BadSignature, ValidationError, ValueError):
        raise Refused(400, "Invalid signature") from None
    return recovered.lower()
