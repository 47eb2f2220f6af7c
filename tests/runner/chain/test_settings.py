from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError
from trunkline.runner.chain import caps
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.caps import Spent
from trunkline.runner.chain.settings import Caps, tx_settings

KEY = "0x" + "aB" * 32


def test_settings_are_read_from_the_configuration() -> None:
    found = tx_settings(
        {
            "rpcUrl": "http://127.0.0.1:8545",
            "privateKey": KEY,
            "chains": {"Local": 1337},
            "receiptSec": 3,
            "dryRun": True,
            "caps": {"valueWei": "5", "gas": 7},
            "approval": {"aboveWei": "9"},
        },
        timeout_seconds=2,
    )
    assert found is not None
    assert (found.rpc_url, found.private_key, found.timeout_seconds) == ("http://127.0.0.1:8545", KEY, 2)
    assert found.chains == {"Sepolia": 11155111, "Local": 1337}
    assert (found.receipt_seconds, found.dry_run, found.approval_above) == (3.0, True, 9)
    assert found.caps == Caps(value=5, gas=7)


def test_without_a_wallet_and_a_node_there_are_none() -> None:
    assert tx_settings(None) is None
    assert tx_settings({}) is None
    alone = tx_settings({"privateKey": KEY})
    assert alone is not None
    assert alone.rpc_url == ""


def test_a_key_of_the_provider_alone_names_its_node() -> None:
    found = tx_settings({"privateKey": KEY, "alchemyApiKey": "k" * 32}, timeout_seconds=7)
    assert found is not None
    assert found.rpc_url == "https://eth-sepolia.g.alchemy.com/v2/" + "k" * 32
    assert found.receipt_seconds == 7


@pytest.mark.parametrize(
    ("execution", "names"),
    [
        ([], "execution"),
        ({"rpcUrl": "ftp://x", "privateKey": KEY}, "execution.rpcUrl"),
        ({"rpcUrl": "http://[::1", "privateKey": KEY}, "execution.rpcUrl"),
        ({"rpcUrl": 5}, "execution.rpcUrl"),
        ({"rpcUrl": "http://x", "privateKey": "hunter2"}, "execution.privateKey"),
        ({"privateKey": KEY, "caps": {"valueWie": 1}}, "execution.caps.valueWie"),
        ({"privateKey": KEY, "caps": {"valueWei": -1}}, "execution.caps.valueWei"),
        ({"privateKey": KEY, "caps": {"valueWei": "1 ether"}}, "execution.caps.valueWei"),
        ({"privateKey": KEY, "approval": {"above": 1}}, "execution.approval.above"),
        ({"privateKey": KEY, "dryRun": "yes"}, "execution.dryRun"),
        ({"privateKey": KEY, "receiptSec": -1}, "execution.receiptSec"),
        ({"privateKey": KEY, "chains": {"X": "y"}}, "execution.chains.X"),
    ],
)
def test_what_cannot_be_meant_is_named_and_no_secret_is_shown(execution: Any, names: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tx_settings(execution)
    assert f"`{names}`" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://eth.example/v2/S3cretKey99",
        "https://eth.example/?apikey=S3cretKey99",
        "https://user:S3cretKey99@eth.example/sepolia",
        "https://eth.example/S3cretKey99/jsonrpc",
    ],
)
def test_secrets_are_known_in_all_their_spellings_and_shown_by_nothing(url: str) -> None:
    found = tx_settings({"rpcUrl": url, "privateKey": KEY})
    assert found is not None
    redactor = Redactor(found.secrets())
    for spelling in (KEY, KEY[2:].lower(), KEY[2:].upper(), str(int(KEY, 16)), "S3cretKey99"):
        assert redactor.text(f"<{spelling}>") in ("<[redacted]>", "<0x[redacted]>")
    assert redactor.text("sepolia jsonrpc") == "sepolia jsonrpc"
    assert "S3cretKey99" not in repr(found)
    assert "aB" not in repr(found)


def test_a_performer_imports_nothing_large_before_it_is_used() -> None:
    import subprocess
    import sys

    code = "import sys, trunkline.runner.chain.performer; print(sorted({'eth_account', 'eth_abi'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_defaults_let_a_small_transaction_through() -> None:
    caps.check_one(Caps(), 1000, 100_000 * 2 * 10**9)
    caps.check_day(Caps(), Spent(), 1000, 100_000 * 2 * 10**9)
    assert Caps().gas >= 100_000


def test_each_cap_is_named_by_the_refusal() -> None:
    limits = Caps(value=10, fee=20, day_value=15, day_fee=30)
    for value, fee, name in ((11, 1, "valueWei"), (1, 21, "feeWei")):
        with pytest.raises(Refusal, match=f"execution.caps.{name}"):
            caps.check_one(limits, value, fee)
    for value, fee, name in ((6, 1, "dayValueWei"), (1, 11, "dayFeeWei")):
        with pytest.raises(Refusal, match=f"execution.caps.{name}"):
            caps.check_day(limits, Spent(10, 20), value, fee)
    caps.check_day(limits, Spent(100, 20), 0, 10)


def test_the_documentation_names_the_defaults() -> None:
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "transactions.md").read_text()
    limits = Caps()
    told = {"valueWei": limits.value, "feeWei": limits.fee, "gas": limits.gas}
    told |= {"dayValueWei": limits.day_value, "dayFeeWei": limits.day_fee}
    for name, amount in told.items():
        assert f"| `execution.caps.{name}` | {amount} " in page
