"""An agent's secrets, sealed and opened as the pages do it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support import sealed_secrets as known
from trunkline.core.faults import ConfigError
from trunkline.wires.sns import sealing
from trunkline.wires.sns.wallet import Wallet

WALLET = Wallet(known.KEY)


def opened(kept: dict[str, Any], password: str, wallet: Wallet = WALLET) -> dict[str, str]:
    return sealing.unseal(kept, password, wallet.address, wallet.sign)


def test_what_is_sealed_here_is_what_the_pages_seal_byte_for_byte() -> None:
    """The same secrets, password, address and initialisation vector gave this in the pages' own JavaScript."""
    sealed = sealing.seal(
        known.OF_PAGES, known.PAGES_PASSWORD, known.ADDRESS.upper().replace("0X", "0x"), known.PAGES_IV
    )
    assert sealed == known.SEALED_BY_PAGES
    assert opened(known.SEALED_BY_PAGES, known.PAGES_PASSWORD) == {
        name: value for name, value in known.OF_PAGES.items() if value
    }


@pytest.mark.parametrize(
    "form", [known.V1, known.V2, {**known.V1, "v": None}, {**known.V2, "v": 0}, {**known.V2, "v": "2"}]
)
def test_every_form_is_opened_that_other_programs_sealed(form: dict[str, Any]) -> None:
    assert opened(form, "1234") == {name: value for name, value in known.SECRETS.items() if value}


def test_no_two_sealings_are_alike_and_all_names_are_in_each() -> None:
    first, second = (sealing.seal({"llmApiKey": "sk-1"}, "a long password", known.ADDRESS) for _ in range(2))
    assert first["iv"] != second["iv"]
    assert first["ciphertext"] != second["ciphertext"]
    assert opened(first, "a long password") == opened(second, "a long password") == {"llmApiKey": "sk-1"}
    # As long as what a page makes of the same fields.
    whole = b'{"llmApiKey":"sk-1","executionWalletPrivateKey":"","alchemyApiKey":"","githubIssueToken":""}'
    assert len(first["ciphertext"]) == -(-(len(whole) + 16) // 3) * 4


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"v": 2},
        {"v": 2, "iv": 5, "ciphertext": None},
        {"v": 2, "iv": "%", "ciphertext": "%"},
        {"v": 2, "iv": "", "ciphertext": ""},
        {**known.V2, "ciphertext": known.V2["ciphertext"][:20]},
        {**known.V2, "ciphertext": "A" + str(known.V2["ciphertext"])[1:]},
        {**known.V2, "v": 1},
        {**known.V1, "v": 2},
        {**known.V2, "ciphertext": "A" * 400_000},
        {**known.V2, "v": {"a": 1}, "iv": "AAAA"},
    ],
)
def test_what_cannot_be_opened_is_told_in_one_way(kept: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="not the password"):
        opened(kept, "1234")


def test_another_password_or_wallet_opens_nothing() -> None:
    for password, wallet in (("12345", WALLET), ("1234", Wallet("0x" + "22" * 32))):
        for form in (known.V1, known.V2):
            with pytest.raises(ConfigError, match="not the password"):
                opened(form, password, wallet)


def test_a_password_is_as_long_as_a_page_counts_it() -> None:
    assert sealing.long_enough("\N{KEY}" * 6)
    assert not sealing.long_enough("elevenchars")
    with pytest.raises(ConfigError, match="12 characters or more"):
        sealing.seal({}, "elevenchars", known.ADDRESS)


def test_a_library_that_is_missing_is_told_with_what_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Crypto.Cipher", None)
    for work in (lambda: sealing.seal({}, "a long password", known.ADDRESS), lambda: opened(known.V2, "1234")):
        with pytest.raises(ConfigError, match=r"`pycryptodome`. Add it with `.*\[network\]"):
            work()
