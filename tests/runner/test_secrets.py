"""The secrets that a runner knows, in the spellings that a model may give them."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from trunkline.base.redact import MASK
from trunkline.runner.config import normalise
from trunkline.runner.secrets import Secrets

DIGITS = "9f1c3b7a" * 8
BYTES = bytes.fromhex(DIGITS)
API_KEY = "sk-proj-Zq8/vT2+xW9yLm4Q"
TOKEN = "rnr_" + "0123456789abcdef" * 4
SECRETS = Secrets(
    [
        "0x" + DIGITS,
        API_KEY,
        TOKEN,
        "hunter2",
        "changeme",
        "ab",
        "none",
        "pass phrase of mine",
        "hidden-in-the-environment",
    ]
)


def grouped(text: str, size: int, between: str) -> str:
    return between.join(text[start : start + size] for start in range(0, len(text), size))


@pytest.mark.parametrize(
    "spelling",
    [
        # Nobody sees what stands between.
        "hun\u200bter2",
        "hun\ufe0fter2",
        TOKEN.removeprefix("rnr_"),
        API_KEY.removeprefix("sk-proj-"),
        b64encode(BYTES).decode(),
        urlsafe_b64encode(BYTES).decode().rstrip("="),
        b64encode(b"x" + BYTES).decode(),
        grouped(b64encode(BYTES).decode(), 8, "\n"),
        grouped(DIGITS, 4, " "),
        grouped(DIGITS, 2, ":"),
        grouped(DIGITS.upper(), 8, "-"),
        grouped(DIGITS, 2, " 0x"),
        grouped(DIGITS, 2, "\\x"),
        grouped(DIGITS, 16, "\u200b"),
        "0X" + DIGITS.upper(),
        quote(API_KEY, safe=""),
        "".join(f"%{byte:02x}" for byte in API_KEY.encode()),
        API_KEY.encode().hex(),
        b64encode(API_KEY.encode()).decode(),
        grouped(API_KEY, 5, "\n"),
        grouped(API_KEY, 1, "\u200d"),
        "my key: hunter2.",
        '"hunter2"',
        "say changeme",
        b64encode(b"hunter2").decode(),
        "passphrase of mine",
    ],
)
def test_a_secret_is_found_in_every_plain_spelling(spelling: str) -> None:
    assert SECRETS.within({"body": f"Look: {spelling} !"})
    assert SECRETS.within([spelling])


@pytest.mark.parametrize(
    "text",
    [
        "hunter21 and hunters; changemeplease; above, a cab, none of the tests",
        "a hash 0x" + "ab" * 32 + " and an address 0x" + "cd" * 20,
        "skproj in the environment, and in-the-environment",
        "100 % sure: 50%25",
    ],
)
def test_ordinary_texts_are_posted(text: str) -> None:
    assert not SECRETS.within(text)
    assert SECRETS.text(text) == text


def test_short_secrets_are_masked_as_words_also_where_there_is_no_other() -> None:
    assert SECRETS.text("hunter2, changeme and hunter21") == f"{MASK}, {MASK} and hunter21"
    assert Secrets(["hunter2"]).data({"log": ["hunter2"]}) == {"log": [MASK]}


def test_a_short_key_in_a_nodes_address_counts_and_the_chains_name_does_not() -> None:
    def config(url: str) -> Secrets:
        execution = {"rpcUrl": url, "privateKey": DIGITS}
        given = {"runnerToken": TOKEN, "agentId": "a", "brain": {"kind": "scripted"}, "execution": execution}
        return Secrets(normalise(given).secrets())

    assert config("https://node.example/v2/kq7x").within("with kq7x")
    assert config("https://node.example/v2/abcdef").within("with abcdef")
    assert config("https://node.example/?key=abcde").within("with abcde")
    assert config("https://user:pw12@node.example/").within("with pw12")
    plain = config("https://user:pw12@node.example/base/v2/sepolia")
    assert not plain.within(json.dumps("user of base and sepolia, v2, node.example"))
