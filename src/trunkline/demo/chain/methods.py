"""What the embedded chain answers: the methods that wallets, libraries and our own runner ask for.

    answer(evm, {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"})

Nothing that is asked raises: what cannot be answered is an error in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from eth_typing import Address

import trunkline
from trunkline.base import jsontext
from trunkline.demo.chain import shapes
from trunkline.demo.chain.evm import LIMIT, TIP_WEI, Evm, EvmError

#: Requests in one batch.
MOST_IN_BATCH = 100

#: Bytes of all answers to a batch. The largest one that is worth asking for has a tenth of that.
MOST_REPLY_BYTES = 4 * 1024 * 1024

#: Blocks and percentiles in one fee history, as other nodes have it.
MOST_HISTORY = 1024
MOST_PERCENTILES = 100

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*")

_INVALID = -32602
_TOO_LONG = EvmError(LIMIT, "limit exceeded: the answers to this batch are too long; ask for less at once")


def reply(evm: Evm, body: bytes) -> bytes:
    """The answer to the body of a request, which may be a batch. All of it has the gas of one block."""
    evm.begin()
    try:
        asked = jsontext.loads(body, max_values=100_000)
    except ValueError as error:
        return jsontext.dumps(_failed(None, EvmError(-32700, f"parse error: {error}")))
    if not isinstance(asked, list):
        return jsontext.dumps(answer(evm, asked))
    if not 0 < len(asked) <= MOST_IN_BATCH:
        return jsontext.dumps(_failed(None, EvmError(-32600, f"a batch has 1 to {MOST_IN_BATCH} requests")))
    answers = []
    room = MOST_REPLY_BYTES
    for one in asked:
        answers.append(jsontext.dumps(answer(evm, one) if room > 0 else _failed(_number_of(one), _TOO_LONG)))
        room -= len(answers[-1])
    return b"[" + b",".join(answers) + b"]"


def _number_of(asked: Any) -> Any:
    return asked.get("id") if isinstance(asked, dict) else None


def answer(evm: Evm, asked: Any) -> dict[str, Any]:
    """The answer to one request."""
    if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
        return _failed(None, EvmError(-32600, "invalid request"))
    number, parameters = _number_of(asked), asked.get("params", [])
    try:
        method = METHODS.get(asked["method"])
        if method is None:
            raise EvmError(-32601, f"the method {asked['method'][:80]} does not exist/is not available")
        if not isinstance(parameters, list):
            raise EvmError(_INVALID, "params must be an array")
        return {"jsonrpc": "2.0", "id": number, "result": method(evm, *_padded(parameters))}
    except EvmError as error:
        return _failed(number, error)


def _padded(parameters: list[Any]) -> tuple[Any, Any, Any]:
    """Every method gets three, of which it ignores some."""
    first, second, third, *_ = [*parameters, None, None, None]
    return first, second, third


def _failed(number: Any, error: EvmError) -> dict[str, Any]:
    shape: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        shape["data"] = error.data
    return {"jsonrpc": "2.0", "id": number, "error": shape}


def _balance(evm: Evm, account: Any, block: Any, _: Any) -> str:
    return hex(evm.state(_header(evm, block)).get_balance(_address(account)))


def _nonce(evm: Evm, account: Any, block: Any, _: Any) -> str:
    return hex(evm.state(_header(evm, block)).get_nonce(_address(account)))


def _code(evm: Evm, account: Any, block: Any, _: Any) -> str:
    return shapes.octets(evm.state(_header(evm, block)).get_code(_address(account)))


def _storage(evm: Evm, account: Any, slot: Any, block: Any) -> str:
    found = evm.state(_header(evm, block)).get_storage(_address(account), _number(slot))
    return shapes.octets(found.to_bytes(32, "big"))


def _call(evm: Evm, message: Any, block: Any, _: Any) -> str:
    return shapes.octets(evm.call(_message(message), _header(evm, block)))


def _estimate(evm: Evm, message: Any, block: Any, _: Any) -> str:
    return hex(evm.estimate(_message(message), _header(evm, block)))


def _send(evm: Evm, raw: Any, _: Any, __: Any) -> str:
    return shapes.octets(evm.send(_octets(raw)))


def _receipt(evm: Evm, hash: Any, _: Any, __: Any) -> dict[str, Any] | None:
    mined = evm.mined(_octets(hash))
    return None if mined is None else shapes.receipt(mined)


def _transaction(evm: Evm, hash: Any, _: Any, __: Any) -> dict[str, Any] | None:
    mined = evm.mined(_octets(hash))
    if mined is not None:
        return shapes.transaction(mined.transaction, mined)
    waiting = evm.queued(_octets(hash))
    return None if waiting is None else shapes.transaction(waiting, None)


def _block(evm: Evm, number: Any, full: Any, _: Any) -> dict[str, Any] | None:
    if isinstance(number, str) and _QUANTITY.fullmatch(number) and int(number, 16) > evm.head.block_number:
        return None
    header = _header(evm, number)
    return shapes.block(header, evm.mined_in(header.block_number), full is True)


def _block_by_hash(evm: Evm, hash: Any, full: Any, _: Any) -> dict[str, Any] | None:
    header = evm.header_by_hash(_octets(hash))
    return None if header is None else shapes.block(header, evm.mined_in(header.block_number), full is True)


def _fee_history(evm: Evm, blocks: Any, newest: Any, percentiles: Any) -> dict[str, Any]:
    count = min(blocks if isinstance(blocks, int) and not isinstance(blocks, bool) else _number(blocks), MOST_HISTORY)
    last = _header(evm, newest).block_number
    first = max(0, last - max(count, 1) + 1)
    headers: list[Any] = [evm.header(number) for number in range(first, last + 1)]
    following: Any = evm.header(last + 1)
    wanted = percentiles if isinstance(percentiles, list) else []
    if len(wanted) > MOST_PERCENTILES:
        raise EvmError(_INVALID, f"more than {MOST_PERCENTILES} reward percentiles")
    fees = [header.base_fee_per_gas for header in headers]
    fees.append(evm.next_base_fee if following is None else following.base_fee_per_gas)
    return {
        "oldestBlock": hex(first),
        "baseFeePerGas": [hex(fee) for fee in fees],
        "gasUsedRatio": [header.gas_used / header.gas_limit for header in headers],
        "reward": [[hex(TIP_WEI) for _ in wanted] for _ in headers],
    }


METHODS: dict[str, Callable[[Evm, Any, Any, Any], Any]] = {
    "eth_accounts": lambda *_: [],
    "eth_blockNumber": lambda evm, *_: hex(evm.head.block_number),
    "eth_call": _call,
    "eth_chainId": lambda evm, *_: hex(evm.chain_id),
    "eth_estimateGas": _estimate,
    "eth_feeHistory": _fee_history,
    "eth_gasPrice": lambda evm, *_: hex(evm.next_base_fee + TIP_WEI),
    "eth_getBalance": _balance,
    "eth_getBlockByHash": _block_by_hash,
    "eth_getBlockByNumber": _block,
    "eth_getCode": _code,
    "eth_getStorageAt": _storage,
    "eth_getTransactionByHash": _transaction,
    "eth_getTransactionCount": _nonce,
    "eth_getTransactionReceipt": _receipt,
    "eth_maxPriorityFeePerGas": lambda *_: hex(TIP_WEI),
    "eth_sendRawTransaction": _send,
    "eth_syncing": lambda *_: False,
    "net_version": lambda evm, *_: str(evm.chain_id),
    "web3_clientVersion": lambda *_: f"trunkline/{trunkline.__version__}/py-evm",
}


def _header(evm: Evm, block: Any) -> Any:
    """The header that a block's number, word or hash means; the last one if nothing is said."""
    if isinstance(block, dict):
        if "blockHash" in block:
            header = evm.header_by_hash(_octets(block["blockHash"]))
            if header is None:
                raise EvmError(-32001, "block not found")
            return header
        block = block.get("blockNumber")
    if block in (None, "", "latest", "pending", "safe", "finalized"):
        return evm.head
    header = evm.header(0 if block == "earliest" else _number(block))
    if header is None:
        raise EvmError(-32001, "block not found")
    return header


def _message(given: Any) -> dict[str, Any]:
    """A call as it is asked for, with what was left out."""
    if not isinstance(given, dict):
        raise EvmError(_INVALID, "the call must be an object")
    data = given.get("input", given.get("data"))
    return {
        "from": bytes(20) if given.get("from") is None else _address(given["from"]),
        "to": b"" if given.get("to") is None else _address(given["to"]),
        "value": _number(given.get("value") or "0x0"),
        "gas": _number(given.get("gas") or "0x0"),
        "data": b"" if data is None else _octets(data),
    }


def _address(value: Any) -> Address:
    if isinstance(value, str) and _ADDRESS.fullmatch(value):
        return Address(bytes.fromhex(value[2:]))
    raise EvmError(_INVALID, "invalid address")


def _octets(value: Any) -> bytes:
    if isinstance(value, str) and _DATA.fullmatch(value):
        return bytes.fromhex(value[2:])
    raise EvmError(_INVALID, "invalid hex data")


def _number(value: Any) -> int:
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        return int(value, 16)
    raise EvmError(_INVALID, "invalid hex number")
