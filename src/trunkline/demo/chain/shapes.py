"""Blocks, transactions and receipts in the form that nodes give them: JSON with hexadecimal numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address

from trunkline.base.values import Value

if TYPE_CHECKING:
    from eth.abc import BlockHeaderAPI, ReceiptAPI, SignedTransactionAPI

_ERROR = bytes.fromhex("08c379a0")  # Error(string)


class Mined(Value):
    """A transaction in its block. `price`: what it paid for a unit of gas; `contract`: the one that it made."""

    transaction: SignedTransactionAPI
    receipt: ReceiptAPI
    header: BlockHeaderAPI
    price: int
    status: bool
    contract: bytes | None


def octets(data: bytes) -> str:
    """Bytes."""
    return f"0x{data.hex()}"


def address(data: bytes) -> str | None:
    """An account; None where a contract is made."""
    return to_checksum_address(data) if data else None


def most_for_gas(transaction: Any) -> int:
    """The most that a transaction pays for a unit of gas."""
    return int(transaction.max_fee_per_gas if _type(transaction) == 2 else transaction.gas_price)


def paid_for_gas(transaction: Any, base_fee: int) -> int:
    """What it pays in a block with that base fee."""
    if _type(transaction) != 2:
        return int(transaction.gas_price)
    return int(min(transaction.max_fee_per_gas, base_fee + transaction.max_priority_fee_per_gas))


def transaction(one: Any, mined: Mined | None) -> dict[str, Any]:
    """A transaction, in its block or waiting for one."""
    kind = _type(one)
    price = mined.price if mined else most_for_gas(one)
    shape: dict[str, Any] = {
        "hash": octets(one.hash),
        "type": hex(kind),
        "chainId": hex(one.chain_id),
        "nonce": hex(one.nonce),
        "from": address(one.sender),
        "to": address(one.to),
        "value": hex(one.value),
        "input": octets(one.data),
        "gas": hex(one.gas),
        "gasPrice": hex(price),
        "blockHash": octets(mined.header.hash) if mined else None,
        "blockNumber": hex(mined.header.block_number) if mined else None,
        "transactionIndex": "0x0" if mined else None,
        "v": hex(one.y_parity if kind else one.v),
        "r": hex(one.r),
        "s": hex(one.s),
    }
    if kind:
        listed = [
            {"address": address(account), "storageKeys": [octets(slot.to_bytes(32, "big")) for slot in slots]}
            for account, slots in one.access_list
        ]
        shape |= {"yParity": hex(one.y_parity), "accessList": listed}
    if kind == 2:
        shape["maxFeePerGas"] = hex(one.max_fee_per_gas)
        shape["maxPriorityFeePerGas"] = hex(one.max_priority_fee_per_gas)
    return shape


def receipt(mined: Mined) -> dict[str, Any]:
    """A receipt. Each block has one transaction: what it used is what the block used."""
    one: Any = mined.transaction
    place = {
        "transactionHash": octets(one.hash),
        "transactionIndex": "0x0",
        "blockHash": octets(mined.header.hash),
        "blockNumber": hex(mined.header.block_number),
    }
    logs = [
        {
            "address": address(log.address),
            "topics": [octets(topic.to_bytes(32, "big")) for topic in log.topics],
            "data": octets(log.data),
            "logIndex": hex(number),
            "removed": False,
            **place,
        }
        for number, log in enumerate(mined.receipt.logs)
    ]
    used = hex(mined.header.gas_used)
    return {
        **place,
        "type": hex(_type(one)),
        "status": hex(mined.status),
        "from": address(one.sender),
        "to": address(one.to),
        "contractAddress": address(mined.contract) if mined.contract and mined.status else None,
        "gasUsed": used,
        "cumulativeGasUsed": used,
        "effectiveGasPrice": hex(mined.price),
        "logs": logs,
        "logsBloom": octets(mined.receipt.bloom.to_bytes(256, "big")),
    }


def block(header: Any, mined: Mined | None, full: bool) -> dict[str, Any]:
    """A block, with its transactions or with their hashes."""
    listed: list[Any] = []
    if mined is not None:
        listed = [transaction(mined.transaction, mined) if full else octets(mined.transaction.hash)]
    return {
        "number": hex(header.block_number),
        "hash": octets(header.hash),
        "parentHash": octets(header.parent_hash),
        "nonce": octets(header.nonce),
        "mixHash": octets(header.mix_hash),
        "sha3Uncles": octets(header.uncles_hash),
        "logsBloom": octets(header.bloom.to_bytes(256, "big")),
        "transactionsRoot": octets(header.transaction_root),
        "stateRoot": octets(header.state_root),
        "receiptsRoot": octets(header.receipt_root),
        "withdrawalsRoot": octets(header.withdrawals_root),
        "withdrawals": [],
        "miner": address(header.coinbase),
        "difficulty": hex(header.difficulty),
        "extraData": octets(header.extra_data),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "size": "0x0",
        "transactions": listed,
        "uncles": [],
    }


def revert_text(output: bytes) -> str:
    """`execution reverted`, and the contract's own words if it has any."""
    if output[:4] != _ERROR:
        return "execution reverted"
    try:
        return f"execution reverted: {decode(['string'], output[4:])[0]}"
    except (DecodingError, OverflowError, ValueError):
        return "execution reverted"


def _type(transaction: Any) -> int:
    return int(getattr(transaction, "type_id", None) or 0)
