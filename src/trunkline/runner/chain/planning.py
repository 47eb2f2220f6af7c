"""What an agent's `tx` amounts to: a call of a registered function of a registered contract, or a refusal.

Nothing is asked of anybody here. The checks come in a fixed order, each with its own text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.runner.chain import abi, arguments
from trunkline.runner.chain.abi import Function, Refusal
from trunkline.runner.chain.settings import MISSING, TxSettings

ADDRESS_NOT_ALLOWED = "Contract address not allowed."
ADDRESS_NOT_AVAILABLE = "Contract address not available."
ABI_NOT_AVAILABLE = "Contract ABI not available."

#: What of an action is told again with its result.
_TOLD = ("communitySlug", "threadId", "contractAddress", "functionName", "args", "value")


class CallPlan(Value):
    """A call that may be made. `errors`: the entries of the ABI that explain its failures."""

    action: Mapping[str, Any]
    """What the agent asked for, as far as it is told again."""
    chain_id: int
    to: str
    function: Function
    data: bytes
    value: int
    errors: Sequence[Mapping[str, Any]]

    def dumped(self) -> bytes:
        """For the ledger."""
        return jsontext.dumps(
            {
                "action": self.action,
                "chainId": self.chain_id,
                "to": self.to,
                "function": self.function.entry,
                "data": self.data.hex(),
                "value": str(self.value),
                "errors": self.errors,
            }
        )

    @classmethod
    def loaded(cls, content: bytes) -> CallPlan:
        """From the ledger."""
        known = jsontext.loads(content)
        function, data, value = abi.read(known["function"]), bytes.fromhex(known["data"]), int(known["value"])
        return cls(known["action"], known["chainId"], known["to"], function, data, value, known["errors"])


def plan(action: Mapping[str, Any], community: Mapping[str, Any], settings: TxSettings) -> CallPlan:
    """What is to be done.

    Raises:
        Refusal: it cannot or must not be done.
    """
    if not settings.private_key or not settings.rpc_url:
        raise Refusal(MISSING)
    contract = _contract(action.get("contractAddress"), community)
    address = contract.get("address")
    if not isinstance(address, str) or not address.strip():
        raise Refusal(ADDRESS_NOT_AVAILABLE)
    entries = _entries(contract.get("abi"))
    function = abi.choose(entries, action.get("functionName"))
    chain_id = _chain_id(contract.get("chain") or community.get("chain"), settings)
    data, value = arguments.encode(function, action.get("args")), arguments.wei(action.get("value"))
    if value and not function.is_payable:
        raise Refusal(f"`{function.signature}` is not payable: leave `value` out.")
    errors = [entry for entry in entries if isinstance(entry, Mapping) and entry.get("type") == "error"]
    told = {name: action.get(name) for name in _TOLD} | {"args": list(action.get("args") or ())}
    told["contractAddress"] = address.strip()
    return CallPlan(told, chain_id, _checked(address.strip()), function, data, value, errors)


def _contract(wanted: Any, community: Mapping[str, Any]) -> Mapping[str, Any]:
    """The contract that is meant: the one of that address, or the first."""
    listed = community.get("contracts")
    contracts = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []
    # An older network describes its only contract by members of the community itself.
    if community.get("address"):
        contracts.append(community)
    if not wanted:
        return contracts[0] if contracts else {}
    if isinstance(wanted, str):
        for contract in contracts:
            if str(contract.get("address")).strip().lower() == wanted.strip().lower():
                return contract
    raise Refusal(ADDRESS_NOT_ALLOWED)


def _entries(found: Any) -> Sequence[Any]:
    if isinstance(found, str):
        try:
            found = jsontext.loads(found.encode("utf-8", "surrogatepass"))
        except ValueError:
            found = None
    if not isinstance(found, list | tuple) or not found:
        raise Refusal(ABI_NOT_AVAILABLE)
    return found


def _chain_id(name: Any, settings: TxSettings) -> int:
    for known, chain_id in settings.chains.items():
        if isinstance(name, str) and name.strip().lower() == known.lower():
            return chain_id
    raise Refusal(
        f"The contract's chain {name if isinstance(name, str) else None!r} is not configured;"
        f" nothing was sent. Known: {', '.join(settings.chains)}."
    )


def _checked(address: str) -> str:
    from eth_utils.address import is_hex_address, to_checksum_address

    if not is_hex_address(address):
        raise Refusal(ADDRESS_NOT_AVAILABLE)
    checked: str = to_checksum_address(address)
    return checked
