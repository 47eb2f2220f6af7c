from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from trunkline.base import recursion
from trunkline.demo.chain import accounts
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.chain.evm import BLOCK_GAS, Evm
from trunkline.demo.chain.methods import METHODS, reply

with recursion.kept():
    from eth_abi.abi import encode
    from eth_account import Account
    from eth_utils.crypto import keccak

KEY = accounts.private_key(1)
ADDRESS = Account.from_key(KEY).address


@pytest.fixture
def evm() -> Evm:
    return Evm()


def ask(evm: Evm, method: str, *parameters: Any) -> Any:
    answer = json.loads(
        reply(evm, json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters}).encode())
    )
    assert answer["id"] == 7
    return answer.get("result", answer.get("error"))


def call(signature: str, *values: Any) -> str:
    types = signature.partition("(")[2].rstrip(")")
    return f"0x{(keccak(text=signature)[:4] + encode(types.split(',') if types else [], values)).hex()}"


def signed(evm: Evm, nonce: int, **fields: Any) -> str:
    transaction = {
        "type": 2, "chainId": evm.chain_id, "nonce": nonce, "gas": 200_000, "value": 0, "to": "0x" + "11" * 20,
        "maxFeePerGas": 3 * 10**9, "maxPriorityFeePerGas": 10**9, **fields,
    }  # fmt: skip
    return f"0x{bytes(Account.sign_transaction(transaction, KEY).raw_transaction).hex()}"


def test_a_new_chain_says_what_it_is(evm: Evm) -> None:
    assert ask(evm, "eth_chainId") == hex(11155111)
    assert ask(evm, "net_version") == "11155111"
    assert ask(evm, "eth_blockNumber") == "0x0"
    assert ask(evm, "web3_clientVersion").startswith("trunkline/")
    assert ask(evm, "eth_getBalance", ADDRESS, "latest") == hex(accounts.FUNDS_WEI)
    assert ask(evm, "eth_getTransactionCount", ADDRESS, "pending") == "0x0"
    assert ask(Evm(1337), "eth_chainId") == hex(1337)


def test_the_contract_does_what_its_source_says_and_has_its_mistake(evm: Evm) -> None:
    to = evm.deploy(artefact().bytecode)
    assert len(ask(evm, "eth_getCode", to, "latest")) > 100
    assert int(ask(evm, "eth_call", {"to": to, "data": call("fee(uint256)", 1000)}, "latest"), 16) == 3
    # 3 per mille of 1999, rounded down, would be 5.
    assert int(ask(evm, "eth_call", {"to": to, "data": call("fee(uint256)", 1999)}, "latest"), 16) == 3
    hash = ask(evm, "eth_sendRawTransaction", signed(evm, 0, to=to, data=call("deposit()"), value=1000))
    receipt = ask(evm, "eth_getTransactionReceipt", hash)
    assert (receipt["status"], receipt["transactionHash"], len(receipt["logs"])) == ("0x1", hash, 1)
    assert int(ask(evm, "eth_call", {"to": to, "data": call("balanceOf(address)", ADDRESS)}, "latest"), 16) == 997
    assert ask(evm, "eth_getBalance", to, "latest") == hex(1000)
    assert ask(evm, "eth_getBalance", to, "0x1") == "0x0"


def test_a_revert_has_the_code_and_the_data_that_other_nodes_give(evm: Evm) -> None:
    to = evm.deploy(artefact().bytecode)
    message = {"from": ADDRESS, "to": to, "data": call("inc(uint256)", 0)}
    for method in ("eth_call", "eth_estimateGas"):
        error = ask(evm, method, message)
        assert (error["code"], error["message"]) == (3, "execution reverted: n=0")
        assert error["data"].startswith("0x08c379a0")
    own = ask(evm, "eth_call", {"from": ADDRESS, "to": to, "data": call("withdraw(uint256)", 5)}, "latest")
    assert (own["code"], own["message"]) == (3, "execution reverted")


def test_an_estimate_is_enough_and_not_much_more(evm: Evm) -> None:
    to = evm.deploy(artefact().bytecode)
    needed = int(ask(evm, "eth_estimateGas", {"from": ADDRESS, "to": to, "data": call("inc()")}), 16)
    hash = ask(evm, "eth_sendRawTransaction", signed(evm, 0, to=to, data=call("inc()"), gas=needed))
    receipt = ask(evm, "eth_getTransactionReceipt", hash)
    assert receipt["status"] == "0x1"
    assert int(receipt["gasUsed"], 16) <= needed <= int(receipt["gasUsed"], 16) + 2000


def test_a_transaction_that_fails_is_in_a_block_with_status_0(evm: Evm) -> None:
    to = evm.deploy(artefact().bytecode)
    hash = ask(evm, "eth_sendRawTransaction", signed(evm, 0, to=to, data=call("inc(uint256)", 0)))
    assert ask(evm, "eth_getTransactionReceipt", hash)["status"] == "0x0"
    assert ask(evm, "eth_getTransactionCount", ADDRESS, "latest") == "0x1"


def test_transactions_that_come_too_early_wait_for_those_before_them(evm: Evm) -> None:
    late = [ask(evm, "eth_sendRawTransaction", signed(evm, nonce)) for nonce in (2, 1)]
    assert [ask(evm, "eth_getTransactionReceipt", hash) for hash in late] == [None, None]
    assert ask(evm, "eth_getTransactionByHash", late[0])["blockNumber"] is None
    assert ask(evm, "eth_blockNumber") == "0x0"
    ask(evm, "eth_sendRawTransaction", signed(evm, 0))
    assert [ask(evm, "eth_getTransactionReceipt", hash)["blockNumber"] for hash in late] == ["0x3", "0x2"]
    block = ask(evm, "eth_getBlockByNumber", "0x3", True)
    assert block["transactions"][0]["hash"] == late[0]
    assert ask(evm, "eth_getBlockByHash", block["hash"], False)["transactions"] == [late[0]]
    assert ask(evm, "eth_getBlockByNumber", "0x9", False) is None


def test_fees_are_told_in_every_way_that_libraries_ask(evm: Evm) -> None:
    ask(evm, "eth_sendRawTransaction", signed(evm, 0))
    base = int(ask(evm, "eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
    assert int(ask(evm, "eth_gasPrice"), 16) > int(ask(evm, "eth_maxPriorityFeePerGas"), 16) > 0
    history = ask(evm, "eth_feeHistory", "0x5", "latest", [25, 75])
    assert (history["oldestBlock"], len(history["baseFeePerGas"]), len(history["reward"][0])) == ("0x0", 3, 2)
    assert int(history["baseFeePerGas"][1], 16) == base


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"chainId": 1}, "invalid chain id"),
        ({"gas": 20_000}, "intrinsic gas too low"),
        ({"gas": 10**8}, "exceeds block gas limit"),
        ({"value": 10**30}, "insufficient funds"),
        ({"maxFeePerGas": 1, "maxPriorityFeePerGas": 1}, "less than block base fee"),
    ],
)
def test_a_transaction_that_cannot_be_taken_is_refused_in_the_usual_words(
    evm: Evm, fields: dict[str, Any], says: str
) -> None:
    assert says in ask(evm, "eth_sendRawTransaction", signed(evm, 0, **fields))["message"]
    assert ask(evm, "eth_blockNumber") == "0x0"


def test_what_was_sent_before_is_known_and_an_old_nonce_is_too_low(evm: Evm) -> None:
    raw = signed(evm, 0)
    ask(evm, "eth_sendRawTransaction", raw)
    assert ask(evm, "eth_sendRawTransaction", raw)["message"] == "already known"
    assert "nonce too low" in ask(evm, "eth_sendRawTransaction", signed(evm, 0, value=1))["message"]


def test_an_older_form_of_transaction_is_taken(evm: Evm) -> None:
    fields = {"nonce": 0, "gas": 21_000, "gasPrice": 2 * 10**9, "to": "0x" + "11" * 20, "value": 5, "chainId": 11155111}
    raw = bytes(Account.sign_transaction(fields, KEY).raw_transaction)
    hash = ask(evm, "eth_sendRawTransaction", f"0x{raw.hex()}")
    assert ask(evm, "eth_getTransactionByHash", hash)["type"] == "0x0"
    assert ask(evm, "eth_getTransactionReceipt", hash)["effectiveGasPrice"] == hex(2 * 10**9)


@pytest.mark.parametrize(
    "parameters", [[], [None], [5, 5, 5], ["0x", "0x", "0x"], [{}, {}, {}], [[]], ["0x" + "1" * 80] * 3]
)
def test_no_parameters_make_a_method_fail_otherwise_than_by_an_error(evm: Evm, parameters: list[Any]) -> None:
    for method in METHODS:
        answer = json.loads(reply(evm, json.dumps({"id": 1, "method": method, "params": parameters}).encode()))
        assert "result" in answer or answer["error"]["code"] < 0, method


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"[" * 50_000, -32700),
        (b"5", -32600),
        (b"[]", -32600),
        (b"{}", -32600),
        (b'{"method":5}', -32600),
        (b'{"method":"eth_sign","id":1}', -32601),
        (b'{"method":"eth_chainId","id":1,"params":{}}', -32602),
    ],
)
def test_a_request_that_is_none_gets_an_error(evm: Evm, body: bytes, code: int) -> None:
    assert json.loads(reply(evm, body))["error"]["code"] == code


def test_a_batch_gets_an_answer_for_each(evm: Evm) -> None:
    asked = [{"jsonrpc": "2.0", "id": number, "method": "eth_chainId"} for number in (1, 2)] + [5]
    answers = json.loads(reply(evm, json.dumps(asked).encode()))
    assert [answer["id"] for answer in answers] == [1, 2, None]


def test_contracts_that_call_each_other_without_end_do_not_end_the_chain(evm: Evm) -> None:
    # Its code calls itself: PUSH1 0 (five times), ADDRESS, GAS, CALL, STOP.
    itself = "6000600060006000600030" + "5af100"
    to = evm.deploy(f"0x6d{itself}600052600e6012f3")
    assert ask(evm, "eth_getCode", to, "latest") == f"0x{itself}"
    for answer in (
        ask(evm, "eth_call", {"from": ADDRESS, "to": to}, "latest"),
        ask(evm, "eth_estimateGas", {"from": ADDRESS, "to": to}),
        ask(evm, "eth_sendRawTransaction", signed(evm, 0, to=to, gas=9_000_000)),
    ):
        assert "too deep" in answer["message"]
    assert ask(evm, "eth_sendRawTransaction", signed(evm, 0)).startswith("0x")
    assert ask(evm, "eth_getTransactionCount", ADDRESS, "latest") == "0x1"


def test_a_call_that_cannot_be_paid_is_refused(evm: Evm) -> None:
    message = {"from": "0x" + "77" * 20, "to": "0x" + "11" * 20, "value": "0x1"}
    assert "insufficient funds" in ask(evm, "eth_call", message, "latest")["message"]


def test_a_block_is_meant_by_its_number_its_hash_or_a_word(evm: Evm) -> None:
    ask(evm, "eth_sendRawTransaction", signed(evm, 0))
    last = ask(evm, "eth_getBlockByNumber", "latest", False)["hash"]
    for block in ("latest", "pending", "0x1", {"blockNumber": "0x1"}, {"blockHash": last}, None):
        assert ask(evm, "eth_getTransactionCount", ADDRESS, block) == "0x1"
    assert ask(evm, "eth_getTransactionCount", ADDRESS, "earliest") == "0x0"
    for unknown in ("0x9", {"blockHash": "0x" + "00" * 32}):
        assert ask(evm, "eth_getTransactionCount", ADDRESS, unknown)["message"] == "block not found"


def test_the_library_does_not_lift_pythons_guard_against_deep_recursion() -> None:
    assert sys.getrecursionlimit() < 5000


def test_a_batch_has_the_gas_of_one_block_however_many_calls_are_in_it(
    evm: Evm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.demo.chain.evm.BLOCK_GAS", 300_000)
    endless = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"data": "0x5b600056"}]}
    estimate = endless | {"id": 2, "method": "eth_estimateGas"}
    sent = {"jsonrpc": "2.0", "id": 3, "method": "eth_sendRawTransaction", "params": [signed(evm, 0)]}
    cheap = {"jsonrpc": "2.0", "id": 4, "method": "eth_chainId"}
    first, *spent, last = json.loads(reply(evm, json.dumps([endless, *[endless] * 50, estimate, sent, cheap]).encode()))
    assert first["error"]["message"].startswith("OutOfGas")
    assert {each["error"]["code"] for each in spent} == {-32005}
    assert "ask for less at once" in spent[0]["error"]["message"]
    assert last["result"] == hex(evm.chain_id)
    # The next one has a block of its own again.
    assert ask(evm, "eth_sendRawTransaction", signed(evm, 0)).startswith("0x")


def test_a_call_that_changes_nothing_has_less_than_a_block(evm: Evm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.demo.chain.evm.CALL_GAS", 100_000)
    endless = {"data": "0x5b600056", "gas": hex(10**9)}
    assert ask(evm, "eth_call", endless)["message"].startswith("OutOfGas")
    # What it did not use is left for the others of its batch.
    assert evm._left == BLOCK_GAS - 100_000


def test_calls_of_a_batch_share_what_there_is(evm: Evm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.demo.chain.evm.BLOCK_GAS", 300_000)
    some = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"to": ADDRESS}]}
    endless = some | {"params": [{"data": "0x5b600056"}]}
    answers = json.loads(reply(evm, json.dumps([some, some, endless, some]).encode()))
    assert [each.get("result", each.get("error", {}).get("code")) for each in answers] == ["0x", "0x", -32005, -32005]


def test_an_estimate_is_enough_for_a_contract_that_looks_at_what_it_has_left(evm: Evm) -> None:
    # It burns nothing, and reverts with less than 500,000 gas: GAS, PUSH3 500000, GT, PUSH1 11, JUMPI, STOP.
    picky = "0x5a6207a12011600b57005b60006000fd"
    found = int(ask(evm, "eth_estimateGas", {"data": picky}), 16)
    assert 500_000 < found < 600_000
    assert ask(evm, "eth_call", {"data": picky, "gas": hex(found)}) == "0x"


def test_answers_to_a_batch_and_the_parts_of_one_answer_are_bounded(evm: Evm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(evm, "eth_feeHistory", "0x400", "latest", [50] * 101)["message"] == "more than 100 reward percentiles"
    monkeypatch.setattr("trunkline.demo.chain.methods.MOST_REPLY_BYTES", 100)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "web3_clientVersion"}
    answers = json.loads(reply(evm, json.dumps([asked] * 10).encode()))
    assert "result" in answers[0]
    assert answers[-1] == {"jsonrpc": "2.0", "id": 1, "error": answers[-1]["error"]}
    assert "too long" in answers[-1]["error"]["message"]


def test_what_waits_for_an_earlier_transaction_is_bounded_in_gas(evm: Evm) -> None:
    for nonce in range(1, 6):
        assert ask(evm, "eth_sendRawTransaction", signed(evm, nonce, gas=10_000_000)).startswith("0x")
    assert ask(evm, "eth_sendRawTransaction", signed(evm, 6, gas=30_000))["message"] == "txpool is full"
