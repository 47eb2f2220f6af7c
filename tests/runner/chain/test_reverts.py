from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode

from trunkline.base import jsontext
from trunkline.demo.chain.artefacts import artefact
from trunkline.runner.chain import abi, jsonrpc, reverts
from trunkline.runner.chain.jsonrpc import RpcRefused, Unanswered

ABI = artefact().abi
WORDS = bytes.fromhex("08c379a0") + encode(["string"], ["n=0"])
PANIC = bytes.fromhex("4e487b71") + encode(["uint256"], [0x11])
TOO_LITTLE = next(abi.errors(ABI)).selector + encode(["uint256", "uint256"], [1, 5])


def node_says(error: Any) -> str:
    with pytest.raises(RpcRefused) as caught:
        jsonrpc.result(jsontext.dumps({"jsonrpc": "2.0", "id": 1, "error": error}), 1, str)
    return reverts.why(caught.value, ABI)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (WORDS, "execution reverted: n=0"),
        (PANIC, "execution reverted: panic 0x11 (an arithmetic overflow or underflow)"),
        (TOO_LITTLE, "execution reverted: TooLittle(available=1, wanted=5)"),
        (b"\x01\x02\x03\x04", "execution reverted, with the data 0x01020304"),
        (WORDS[:20], f"execution reverted, with the data 0x{WORDS[:20].hex()}"),
        (TOO_LITTLE[:20], f"execution reverted, with the data 0x{TOO_LITTLE[:20].hex()}"),
    ],
)
def test_the_bytes_of_a_revert_are_put_into_words(data: bytes, text: str) -> None:
    assert reverts.reason(data, ABI) == text


@pytest.mark.parametrize(
    "error",
    [
        {"code": 3, "message": "execution reverted: n=0", "data": f"0x{WORDS.hex()}"},
        {"code": -32000, "message": "execution reverted", "data": {"data": f"0x{WORDS.hex()}"}},
        {"code": -32015, "message": "VM execution error.", "data": f"Reverted 0x{WORDS.hex()}"},
        {"code": -32000, "message": "VM Exception while processing transaction: revert n=0"},
        {"code": -32000, "message": "execution reverted: n=0"},
    ],
)
def test_nodes_say_the_same_in_different_forms(error: Any) -> None:
    assert node_says(error) == "execution reverted: n=0"


def test_a_revert_without_a_reason_is_one() -> None:
    assert node_says({"code": 3, "message": "execution reverted", "data": "0x"}) == "execution reverted"


def test_a_refusal_of_the_node_itself_is_told_in_its_words() -> None:
    assert node_says({"code": -32000, "message": "insufficient funds\n\x1b[2J"}) == (
        "The RPC node refused: insufficient funds [2J"
    )
    assert node_says("no") == "The RPC node refused: no"


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[]", b"{}", b"null", b'{"id":2,"result":1}', b'{"id":1}', b"[" * 100_000, b'{"result":NaN}'],
)
def test_what_is_no_answer_is_a_fault_with_a_text(answer: bytes) -> None:
    with pytest.raises(Unanswered, match="RPC node's answer"):
        jsonrpc.result(answer, 1, str)


@pytest.mark.parametrize("value", [None, 5, "5", "0x", "0xzz", "0x" + "1" * 65, []])
def test_a_number_that_is_none_is_a_fault(value: Any) -> None:
    with pytest.raises(Unanswered, match="no number"):
        jsonrpc.quantity(value, "x")
