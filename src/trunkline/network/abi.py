"""ABIs: the description of a contract's functions, as compilers write it."""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused

#: The largest contracts that a chain takes have a few hundred functions, events and errors.
MAX_ENTRIES = 2000
#: Beyond this size, the ABI alone would fill an agent's context.
MAX_BYTES = 256 * 1024

Abi = list[dict[str, Any]]

#: Entries that are nothing without a name. Constructors and fallbacks have none.
_NAMED = {"function": "a function", "event": "an event", "error": "an error"}


def checked(value: Any) -> Abi:
    """The ABI that a client or an explorer gave: a list, or its JSON text.

    Raises:
        Refused: 400, it is none, or it is too large.
    """
    if isinstance(value, str):
        try:
            value = jsontext.loads(value.encode("utf-8", "surrogatepass"))
        except ValueError:
            raise Refused(400, "abi must be a JSON array") from None
    if not isinstance(value, list):
        raise Refused(400, "abi must be an array")
    if not all(isinstance(entry, dict) for entry in value):
        raise Refused(400, "abi must be an array of objects")
    if len(value) > MAX_ENTRIES:
        raise Refused(400, f"abi must have {MAX_ENTRIES} entries or fewer")
    if len(jsontext.dumps(value)) > MAX_BYTES:
        raise Refused(400, f"abi must be {MAX_BYTES} characters or fewer")
    for number, entry in enumerate(value):
        _check(number, entry)
    return value


def _check(number: int, entry: dict[str, Any]) -> None:
    """See that one can be called, or listened to, by what an entry says."""
    kind = entry.get("type")
    if not isinstance(kind, str):
        raise Refused(400, f"abi[{number}] must have a type")
    if kind in _NAMED and not (isinstance(entry.get("name"), str) and entry["name"]):
        raise Refused(400, f"abi[{number}]: {_NAMED[kind]} must have a name")
    if not _are_typed(entry.get("inputs", None if kind == "function" else [])):
        raise Refused(400, f"abi[{number}]: inputs must be an array of objects, each with a type")
    if not _are_typed(entry.get("outputs", [])):
        raise Refused(400, f"abi[{number}]: outputs must be an array of objects, each with a type")


def _are_typed(parameters: Any) -> bool:
    return isinstance(parameters, list) and all(
        isinstance(each, dict) and isinstance(each.get("type"), str) and _are_typed(each.get("components", []))
        for each in parameters
    )


def functions(abi: Abi) -> list[str]:
    """The signatures of an ABI's functions, such as `transfer(address,uint256)`."""
    return [_signature(entry) for entry in abi if _is_function(entry)]


def faucet_function(abi: Abi) -> str | None:
    """The name of the first function that hands out tokens to testers, which is one called `faucet` in any case."""
    return next((entry["name"] for entry in abi if _is_function(entry) and entry["name"].lower() == "faucet"), None)


def _is_function(entry: dict[str, Any]) -> bool:
    return entry.get("type") == "function" and isinstance(entry.get("name"), str)


def _signature(entry: dict[str, Any]) -> str:
    inputs = entry.get("inputs")
    types = [str(item.get("type")) for item in inputs if isinstance(item, dict)] if isinstance(inputs, list) else []
    return f"{entry['name']}({','.join(types)})"
