"""What became of a transaction, in the form that the agent and the log get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.core.preview import plain, preview
from trunkline.runner.chain import arguments
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.planning import CallPlan


class TxResult(Value):
    """The end of a `tx`, or where it stands. `result` is what `tx_feedback` carries; `hash` is there as soon as there
    is a signed transaction, whatever became of it."""

    ok: bool
    result: dict[str, Any]
    error: str | None = None
    hash: str | None = None


class SettledTransaction(Value):
    """What became known of an earlier `tx`, and the `action` that asked for it (its members, as far as they are told
    again)."""

    id: str
    action: Mapping[str, Any]
    outcome: TxResult


class Receipt(Value):
    """A transaction in a block."""

    status: int
    gas_used: int
    block_number: int
    gas_price: int | None = None
    """What each unit of gas really cost, if the node says so."""


def refused(text: str) -> TxResult:
    """It was not sent."""
    return TxResult(False, {"error": text}, text)


def called(plan: CallPlan, value: Any) -> TxResult:
    """A view's answer."""
    return TxResult(True, {"type": "call", **_what(plan), "result": value})


def tried(plan: CallPlan, quote: Mapping[str, Any]) -> TxResult:
    """It would have been sent."""
    return TxResult(True, {"type": "tx", **_what(plan), "hash": None, "dryRun": True, **quote})


def mined(plan: CallPlan, hash: str, receipt: Receipt) -> TxResult:
    """It is in a block, and did what it should."""
    return TxResult(True, _mined(plan, hash, receipt), None, hash)


def reverted(plan: CallPlan, hash: str, receipt: Receipt, reason: str) -> TxResult:
    """It is in a block, and was undone by the contract."""
    return TxResult(False, {**_mined(plan, hash, receipt), "error": reason}, reason, hash)


def open_(plan: CallPlan, hash: str, state: str, text: str) -> TxResult:
    """It was signed, and its end is not known."""
    told = {"type": "tx", **_what(plan), "hash": hash, "status": None, "gasUsed": None, "blockNumber": None}
    return TxResult(False, {**told, "state": state, "error": text}, text, hash)


def waits(plan: CallPlan, id: str, text: str) -> TxResult:
    """A person is to decide."""
    told = {"type": "tx", **_what(plan), "hash": None, "state": "awaiting_approval", "approvalId": id}
    return TxResult(False, {**told, "error": text}, text)


def asked(plan: CallPlan, fee: int) -> dict[str, Any]:
    """What a person decides about: where it goes, what is called with which arguments, what it pays. All of it.

    Args:
        fee: the most that the network may take for it, in wei, when it was tried.
    """
    what = {
        "chainId": plan.chain_id,
        "to": plan.to,
        "function": plan.function.signature,
        "value": str(plan.value),
        "fee": str(fee),
        "data": f"0x{plan.data.hex()}",
    }
    shown = preview(
        plan.function.signature,
        {
            "chain": plan.chain_id,
            "contract": plan.to,
            "wei": what["value"],
            "max_fee": what["fee"],
            "max_cost": str(plan.value + fee),
            "args": _args(plan) or None,
            "data": what["data"],
        },
    )
    return {**what, "shown": plain(shown)}


def _args(plan: CallPlan) -> Any:
    """The arguments as the contract will read them; as the agent gave them where they are too long for that."""
    try:
        return arguments.decode(plan.function.inputs, plan.data[len(plan.function.selector) :])
    except Refusal:
        return plan.action.get("args")


def _what(plan: CallPlan) -> dict[str, Any]:
    return {name: plan.action.get(name) for name in ("contractAddress", "functionName", "args")}


def _mined(plan: CallPlan, hash: str, receipt: Receipt) -> dict[str, Any]:
    return {
        "type": "tx",
        **_what(plan),
        "hash": hash,
        "status": receipt.status,
        "gasUsed": str(receipt.gas_used),
        "blockNumber": receipt.block_number,
    }
