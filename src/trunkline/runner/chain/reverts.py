"""Why a contract refused, in words: its own text, an arithmetic or array mistake, or one of its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.runner.chain import abi
from trunkline.runner.chain.abi import Refusal
from trunkline.runner.chain.arguments import decode, decoded
from trunkline.runner.chain.jsonrpc import RpcRefused, shown

REVERTED = "execution reverted"

_ERROR = bytes.fromhex("08c379a0")  # Error(string)
_PANIC = bytes.fromhex("4e487b71")  # Panic(uint256)

#: What the compiler's own checks mean.
_PANICS = {
    0x00: "a check of the compiler",
    0x01: "a failed assertion",
    0x11: "an arithmetic overflow or underflow",
    0x12: "a division by zero",
    0x21: "a value that the enumeration does not have",
    0x22: "a badly encoded storage array",
    0x31: "a pop from an empty array",
    0x32: "an index out of bounds",
    0x41: "too much memory",
    0x51: "a call of an empty function",
}

#: Bytes of a reason that nobody can read.
_SHOWN_BYTES = 68


def why(refused: RpcRefused, entries: Sequence[Any]) -> str:
    """What a node's refusal means, with the contract's ABI at hand."""
    if not refused.is_revert:
        return f"The RPC node refused: {refused}"
    if refused.data:
        return reason(refused.data, entries)
    said = str(refused)
    # Some nodes give the reason in words alone.
    _, _, words = said.partition("revert")
    words = words.removeprefix("ed").strip(" :'\"")
    return f"{REVERTED}: {words}" if words else REVERTED


def reason(data: bytes, entries: Sequence[Any]) -> str:
    """What the bytes of a revert say."""
    selector, content = data[:4], data[4:]
    try:
        if selector == _ERROR:
            return f"{REVERTED}: {shown(decoded(['string'], content)[0])}"
        if selector == _PANIC:
            code = decoded(["uint256"], content)[0]
            return f"{REVERTED}: panic 0x{code:02x} ({_PANICS.get(code, 'unknown')})"
        for error in abi.errors(entries):
            if error.selector == selector:
                return f"{REVERTED}: {_called(error, content)}"
    except Refusal:
        pass  # The bytes themselves say as much as can be said.
    more = "…" if len(data) > _SHOWN_BYTES else ""
    return f"{REVERTED}, with the data 0x{data[:_SHOWN_BYTES].hex()}{more}"


def _called(error: abi.Function, content: bytes) -> str:
    """`TooLittle(available=1, wanted=5)`."""
    if not error.inputs:
        return f"{error.name}()"
    values = decode(error.inputs, content)
    if len(error.inputs) == 1:
        values = [values]
    listed = values.values() if isinstance(values, dict) else values
    named = [
        f"{parameter.name}={_plain(value)}" if parameter.name else _plain(value)
        for parameter, value in zip(error.inputs, listed, strict=True)
    ]
    return shown(f"{error.name}({', '.join(named)})")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value).decode()
