"""Trying a transaction before it is sent: would it work, what gas does it need, what may it cost?"""

from __future__ import annotations

import secrets
from typing import Any

from trunkline.base.values import Value
from trunkline.runner.chain import arguments, reverts
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.jsonrpc import RpcRefused, Unanswered, octets, quantity
from trunkline.runner.chain.planning import CallPlan
from trunkline.runner.chain.rpc import Rpc
from trunkline.runner.chain.settings import Caps

#: What is added to an estimate, as a fraction: the state may change until the transaction is in a block.
MARGIN = (5, 4)

#: Up to so many wei are added to the price of gas, at random: then no two transactions are the same, whoever signs
#: them, and a hash on the chain is ours or not.
SPREAD_WEI = 10_000

#: What goes to whoever makes the block, where the node has no opinion.
TIP_WEI = 10**9


class Fees(Value):
    """What gas may cost: the most for one unit, and how much of it goes to whoever makes the block.

    `tip` is None on chains without EIP-1559, where all pay the same price.
    """

    most: int
    tip: int | None

    @property
    def least(self) -> int:
        """What a unit costs in the next block: `most` leaves room for six more."""
        return self.most - SPREAD_WEI if self.tip is None else (self.most - self.tip) // 2 + self.tip


class Quote(Value):
    """What a transaction needs."""

    gas: int
    fees: Fees

    @property
    def fee(self) -> int:
        """The most that it can cost, besides its value."""
        return self.gas * self.fees.most

    def within(self, approved: int) -> Quote:
        """The same for a fee of no more than a person approved.

        Raises:
            Refusal: that is not enough any more.
        """
        if self.fee <= approved:
            return self
        most = approved // self.gas
        if most < self.fees.least:
            raise Refusal(
                f"Not sent: its fee may be {self.fee} wei by now, and a person approved {approved}. Ask again."
            )
        return Quote(self.gas, Fees(most, self.fees.tip))

    def fields(self) -> dict[str, Any]:
        """Its fields of a transaction."""
        if self.fees.tip is None:
            return {"gas": self.gas, "gasPrice": self.fees.most}
        return {
            "type": 2,
            "gas": self.gas,
            "maxFeePerGas": self.fees.most,
            "maxPriorityFeePerGas": self.fees.tip,
        }

    def shown(self) -> dict[str, str]:
        """For people and agents."""
        return {"gasLimit": str(self.gas), "maxFeePerGas": str(self.fees.most), "maxFee": str(self.fee)}


async def check_chain(rpc: Rpc, chain_id: int) -> None:
    """Raises `Refusal` if the node speaks for another chain than the contract's."""
    found = quantity(await rpc.call("eth_chainId"), "eth_chainId")
    if found != chain_id:
        raise Refusal(f"The RPC node speaks for chain {found}, and the contract is on chain {chain_id}; nothing sent.")


async def view(rpc: Rpc, plan: CallPlan, sender: str) -> Any:
    """What a view returns, as JSON.

    Raises:
        Refusal: it reverts, or returns what its ABI does not say.
    """
    data = await _call(rpc, plan, sender)
    if not data and plan.function.outputs:
        await _check_code(rpc, plan)
    return arguments.decode(plan.function.outputs, data)


async def simulate(rpc: Rpc, plan: CallPlan, sender: str, caps: Caps) -> Quote:
    """Try it, and say what it needs.

    Raises:
        Refusal: it would fail, or needs too much gas.
    """
    await _check_code(rpc, plan)
    await _call(rpc, plan, sender)
    try:
        needed = quantity(await rpc.call("eth_estimateGas", _message(plan, sender)), "eth_estimateGas")
    except RpcRefused as error:
        raise Refusal(reverts.why(error, plan.errors)) from None
    if needed > caps.gas:
        raise Refusal(f"It needs {needed} gas, and at most {caps.gas} is allowed (`execution.caps.gas`).")
    return Quote(min(needed * MARGIN[0] // MARGIN[1], caps.gas), await _fees(rpc))


async def replay(rpc: Rpc, plan: CallPlan, sender: str, block: int, gas: int | None) -> str | None:
    """Why a transaction reverted, found by trying it again on the state after its block; None if it works there."""
    message = _message(plan, sender) | ({} if gas is None else {"gas": hex(gas)})
    try:
        await rpc.call("eth_call", message, hex(block))
    except RpcRefused as error:
        return reverts.why(error, plan.errors) if error.is_revert else None
    except Unanswered:
        return None
    return None


async def _fees(rpc: Rpc) -> Fees:
    block = await rpc.call("eth_getBlockByNumber", "latest", False)
    base = block.get("baseFeePerGas") if isinstance(block, dict) else None
    if base is None:
        return Fees(quantity(await rpc.call("eth_gasPrice"), "eth_gasPrice") + secrets.randbelow(SPREAD_WEI), None)
    try:
        tip = quantity(await rpc.call("eth_maxPriorityFeePerGas"), "eth_maxPriorityFeePerGas")
    except RpcRefused:
        tip = TIP_WEI
    # Twice the base fee: it is still enough after six full blocks in a row.
    return Fees(2 * quantity(base, "baseFeePerGas") + tip + secrets.randbelow(SPREAD_WEI), tip)


async def _check_code(rpc: Rpc, plan: CallPlan) -> None:
    if not octets(await rpc.call("eth_getCode", plan.to, "latest"), "eth_getCode"):
        raise Refusal(f"There is no contract at `{plan.to}` on chain {plan.chain_id}.")


async def _call(rpc: Rpc, plan: CallPlan, sender: str) -> bytes:
    try:
        return octets(await rpc.call("eth_call", _message(plan, sender), "latest"), "eth_call")
    except RpcRefused as error:
        raise Refusal(reverts.why(error, plan.errors)) from None


def _message(plan: CallPlan, sender: str) -> dict[str, str]:
    message = {"from": sender, "to": plan.to, "data": f"0x{plan.data.hex()}"}
    return message | ({"value": hex(plan.value)} if plan.value else {})
