"""An owner's wallet."""

from __future__ import annotations

import pytest

from trunkline.core.faults import ConfigError
from trunkline.runner.chain.wallet import SpendingWallet
from trunkline.wires.sns.wallet import NoKey, Wallet

KEY = "11" * 32


@pytest.mark.parametrize("text", [KEY, f"0x{KEY}", f"  0X{KEY}\n"])
def test_a_key_has_one_address_however_it_is_written(text: str) -> None:
    assert Wallet(text).address == SpendingWallet(text).address.lower() == Wallet(KEY).address


@pytest.mark.parametrize(
    "text", ["", "0x", KEY[:-1], KEY[:-2], KEY + "1", KEY + "11", "0x" + "00" * 32, "ff" * 32, "g" * 64]
)
def test_what_is_no_key_is_refused_and_never_made_one(text: str) -> None:
    with pytest.raises(NoKey) as owners:
        Wallet(text)
    with pytest.raises(ConfigError) as runners:
        SpendingWallet(text)
    for error in (owners, runners):
        assert len(text) < 3 or text not in str(error.value)
