"""JSON-RPC 2.0 as Ethereum nodes speak it: bytes and values, no connection.

Nodes are not trusted: whatever they answer is either what was asked for, or a fault with a text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.printable import without_controls
from trunkline.base.redact import Clean

#: How much of a node's own words is repeated.
SHOWN_CHARS = 500

#: More members and items than any answer that we ask for has; far fewer than what fills the memory.
MOST_VALUES = 100_000

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


class ChainError(Exception):
    """Something cannot be done on a chain. Raise one of its children."""


class RpcFault(ChainError):
    """A question to a node that brought no result."""


class RpcRefused(RpcFault):
    """The node's answer is an error. `data`: the bytes that a contract gave as its reason, if there are any."""

    def __init__(self, code: int, message: str, data: bytes | None) -> None:
        super().__init__(message or f"error {code}")
        self.code = code
        self.data = data

    @property
    def is_revert(self) -> bool:
        """Whether it was the contract that refused, not the node."""
        # 3 is what most nodes say; the others can be told by their words only.
        return self.code == 3 or self.data is not None or "revert" in str(self).lower()


class Unanswered(RpcFault):
    """There was no usable answer. `sent`: whether the node may have got the question."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


def request(number: int, method: str, parameters: Sequence[Any]) -> bytes:
    """The bytes of a question."""
    return jsontext.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": list(parameters)})


def result(data: bytes, number: int, clean: Clean) -> Any:
    """The result in an answer. `clean` takes the secrets out of the node's own words, before they are cut.

    Raises:
        Refused: it is an error.
        Unanswered: it is not an answer to that question.
    """
    try:
        answer = jsontext.loads(data, max_values=MOST_VALUES)
    except ValueError as error:
        raise Unanswered(f"The RPC node's answer is not JSON: {error}.") from None
    if not isinstance(answer, dict):
        raise Unanswered("The RPC node's answer is not a JSON-RPC object.")
    if answer.get("error") is not None:
        raise _refusal(answer["error"], clean)
    if "result" not in answer or answer.get("id") != number:
        raise Unanswered("The RPC node's answer has no `result` for the request.")
    return answer["result"]


def is_error(data: bytes) -> bool:
    """Whether these bytes are an error in the form of JSON-RPC, whatever the HTTP status says."""
    try:
        answer = jsontext.loads(data, max_values=MOST_VALUES)
    except ValueError:
        return False
    return isinstance(answer, dict) and isinstance(answer.get("error"), dict) and "jsonrpc" in answer


def quantity(value: Any, what: str) -> int:
    """A number as nodes write it.

    Raises:
        Unanswered: it is none.
    """
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        return int(value, 16)
    raise Unanswered(f"The RPC node's answer has no number for `{what}`.")


def octets(value: Any, what: str) -> bytes:
    """Bytes as nodes write them.

    Raises:
        Unanswered: they are none.
    """
    found = _octets(value)
    if found is None:
        raise Unanswered(f"The RPC node's answer has no bytes for `{what}`.")
    return found


def shown(text: str) -> str:
    """Somebody else's words, in one line that is not too long."""
    line = " ".join(without_controls(text, " ").split())
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"


def _refusal(error: Any, clean: Clean) -> RpcRefused:
    if not isinstance(error, dict):
        return RpcRefused(0, shown(clean(str(error))), None)
    code, message = error.get("code"), error.get("message")
    said = shown(clean(message)) if isinstance(message, str) else ""
    return RpcRefused(code if isinstance(code, int) else 0, said, _reason(error))


def _reason(error: dict[str, Any]) -> bytes | None:
    """The contract's bytes: in `data`, or one level below it, as nodes please."""
    data = error.get("data")
    if isinstance(data, dict):
        data = data.get("data", data.get("result"))
    if isinstance(data, str) and data.startswith("Reverted 0x"):
        data = data.removeprefix("Reverted ")
    return _octets(data)


def _octets(value: Any) -> bytes | None:
    if isinstance(value, str) and _DATA.fullmatch(value):
        return bytes.fromhex(value[2:])
    return None
