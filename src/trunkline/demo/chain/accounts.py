"""Who has money on the embedded chain from the beginning. Their keys are public: the money is worth nothing."""

from __future__ import annotations

import hashlib

#: How many there are.
ACCOUNTS = 10

#: What each begins with: 1000 ether.
FUNDS_WEI = 1000 * 10**18


def private_key(number: int) -> str:
    """The key of an account, from 0 on, the same at every start. Account 0 deploys contracts."""
    return f"0x{hashlib.sha256(f'trunkline embedded chain, account {number}'.encode()).hexdigest()}"
