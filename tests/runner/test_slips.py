"""Names that are nearly right are refused, and all others left alone."""

from __future__ import annotations

import pytest

from trunkline.core.faults import ConfigError
from trunkline.runner import slips
from trunkline.runner.chain.settings import tx_settings

KEY = "0x" + "4f" * 32


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("aproval", "approval"),
        ("dryrun", "dryRun"),
        ("privatekey", "privateKey"),
        ("cap", "caps"),
        ("rpcURL", "rpcUrl"),
    ],
)
def test_a_guard_with_a_slip_in_its_name_is_refused(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"`execution\.{given}` is not known.*`execution\.{meant}`"):
        tx_settings({"rpcUrl": "http://127.0.0.1:1", given: {"aboveWei": "0"}})


def test_what_is_like_nothing_is_left_alone() -> None:
    slips.refuse({"comment": "mine", "brain": {}}, ("brain", "log"))
    assert tx_settings({"rpcUrl": "http://127.0.0.1:1", "privateKey": KEY, "note": "of another program"}) is not None


def test_a_slip_at_the_top_is_refused_too() -> None:
    with pytest.raises(ConfigError, match="Did you mean `brain`"):
        slips.refuse({"brian": {}}, ("brain", "log"))
