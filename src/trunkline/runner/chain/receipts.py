"""Following a transaction by its hash, for as long as it is worth waiting."""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline.runner.chain.jsonrpc import RpcFault, Unanswered, quantity
from trunkline.runner.chain.outcome import Receipt
from trunkline.runner.chain.rpc import Rpc

#: The first look comes soon, for chains that make a block at once; the later ones with the pace of blocks.
FIRST_LOOK_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 2.0

#: Where another transaction with the same nonce is looked for: it took the nonce a moment ago.
NEWEST_BLOCKS = 3

#: A node that fails this often in a row is not asked any more for now.
MOST_FAILURES = 3


async def receipt(rpc: Rpc, hash: str) -> Receipt | None:
    """The receipt, if the transaction is in a block.

    Raises:
        RpcFault: the node does not say.
    """
    found = await rpc.call("eth_getTransactionReceipt", hash)
    if not isinstance(found, dict) or found.get("blockNumber") is None:
        return None
    return Receipt(
        int(quantity(found.get("status"), "status") != 0),
        quantity(found.get("gasUsed"), "gasUsed"),
        quantity(found["blockNumber"], "blockNumber"),
        _optional(found.get("effectiveGasPrice")),
    )


async def is_known(rpc: Rpc, hash: str) -> bool:
    """Whether the node has the transaction, in a block or waiting for one.

    Raises:
        RpcFault: the node does not say.
    """
    return isinstance(await rpc.call("eth_getTransactionByHash", hash), dict)


async def holder(rpc: Rpc, address: str, nonce: int) -> str | None:
    """The hash of the transaction that has this nonce of an address, if it is in one of the newest blocks.

    Raises:
        RpcFault: the node does not say.
    """
    block = await rpc.call("eth_getBlockByNumber", "latest", True)
    for _ in range(NEWEST_BLOCKS):
        if not isinstance(block, dict):
            return None
        for one in block.get("transactions") or ():
            if isinstance(one, dict) and _is_of(one, address, nonce):
                return str(one.get("hash")).lower()
        number = quantity(block.get("number"), "number")
        if not number:
            return None
        block = await rpc.call("eth_getBlockByNumber", hex(number - 1), True)
    return None


async def awaited(rpc: Rpc, hash: str, seconds: float) -> Receipt | None:
    """The receipt as soon as there is one; None if there is none in time, or the node fails."""
    pause, failures = FIRST_LOOK_SECONDS, 0
    try:
        async with asyncio.timeout(seconds):
            while failures < MOST_FAILURES:
                try:
                    if (found := await receipt(rpc, hash)) is not None:
                        return found
                    failures = 0
                except RpcFault:
                    failures += 1
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
    except TimeoutError:
        return None
    return None


def _is_of(transaction: dict[str, Any], address: str, nonce: int) -> bool:
    sender = str(transaction.get("from")).lower()
    return sender == address.lower() and quantity(transaction.get("nonce"), "nonce") == nonce


def _optional(value: Any) -> int | None:
    try:
        return quantity(value, "effectiveGasPrice")
    except Unanswered:
        return None
