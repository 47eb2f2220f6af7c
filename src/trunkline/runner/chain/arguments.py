"""An agent's arguments, which are JSON, as the values that a function takes; and a function's values as JSON.

Numbers are whole JSON numbers or decimal strings (or hexadecimal ones with `0x`); addresses, bytes and texts are
strings; arrays are arrays; tuples are arrays, or objects by the names of their members. What comes back is in the same
form, with every number as a decimal string: JSON's readers round what is larger than 2**53.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from trunkline.runner.chain.abi import Function, Parameter, Refusal, Type

#: What a node takes in one transaction.
MOST_CALL_BYTES = 128 * 1024

#: What a view may return: it goes into an agent's prompt.
MOST_RETURNED_BYTES = 32 * 1024

#: An honest encoding is read twice at most: once for its pointers and once for its values. Pointers that lead many
#: times to one place make much out of little.
_MOST_READINGS = 4

_DECIMAL = re.compile(r"-?[0-9]{1,78}")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,64}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_OCTETS = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_WEI = re.compile(r"[0-9]{1,78}")

#: A function's name alone, in front of its arguments.
_SHOWN_CHARS = 60


def encode(function: Function, given: Any) -> bytes:
    """The bytes of a call.

    Raises:
        Refusal: the arguments are not what the function takes.
    """
    from eth_abi.abi import encode as encoded

    listed = [] if given is None else given
    if not isinstance(listed, list | tuple):
        raise Refusal("`args` must be an array, with one item for each argument of the function.")
    if len(listed) != len(function.inputs):
        takes = ", ".join(f"{parameter.type.name} {parameter.name}".strip() for parameter in function.inputs)
        many = "argument" if len(function.inputs) == 1 else "arguments"
        raise Refusal(
            f"`{function.signature}` takes {len(function.inputs)} {many} ({takes or 'none'}),"
            f" and `args` has {len(listed)}."
        )
    values = [
        _value(value, parameter.type, f"args[{number}]")
        for number, (value, parameter) in enumerate(zip(listed, function.inputs, strict=True))
    ]
    data: bytes = function.selector + encoded([parameter.type.name for parameter in function.inputs], values)
    if len(data) > MOST_CALL_BYTES:
        raise Refusal(f"The arguments have {len(data)} bytes, and a transaction takes {MOST_CALL_BYTES}.")
    return data


def wei(value: Any) -> int:
    """The money that goes along. Nothing, null and an empty text are none.

    Raises:
        Refusal: it is no whole number of wei.
    """
    if value is None or value == "":
        return 0
    if isinstance(value, float):
        value = _whole(value)
    if isinstance(value, str) and _WEI.fullmatch(value.strip()):
        value = int(value.strip())
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**256:
        return value
    raise Refusal('`value` must be wei as a decimal string, such as "1000".')


def decode(parameters: Sequence[Parameter], data: bytes) -> Any:
    """What a function returned: nothing, one value, or all of them like the members of a tuple.

    Raises:
        Refusal: these bytes are not that, or too many.
    """
    if not parameters:
        return None
    values = decoded([parameter.type.name for parameter in parameters], data)
    if len(parameters) == 1:
        return _json(values[0], parameters[0].type)
    return _members(values, parameters)


def decoded(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """The values in an encoding, with bounded effort.

    Raises:
        Refusal: these bytes are not that, or too many.
    """
    from eth_abi.codec import ABIDecoder
    from eth_abi.decoding import ContextFramesBytesIO
    from eth_abi.exceptions import DecodingError
    from eth_abi.registry import registry

    if len(data) > MOST_RETURNED_BYTES:
        raise Refusal(f"The contract returned {len(data)} bytes, more than the {MOST_RETURNED_BYTES} that are read.")

    class Bounded(ContextFramesBytesIO):
        left = _MOST_READINGS * len(data)

        def read(self, size: int | None = -1, /) -> bytes:
            piece: bytes = super().read(size)
            self.left -= len(piece)
            if self.left < 0:
                raise Refusal("What the contract returned leads many times to one place; it is not read.")
            return piece

    class BoundedDecoder(ABIDecoder):
        stream_class = Bounded

    try:
        values: tuple[Any, ...] = BoundedDecoder(registry).decode(list(types), data)
    except (DecodingError, OverflowError, ValueError, RecursionError):
        raise Refusal("What the contract returned is not what its ABI says.") from None
    return values


def _value(value: Any, type: Type, where: str) -> Any:
    if type.kind in ("uint", "int"):
        return _number(value, type, where)
    if type.kind == "array":
        return _items(value, type, where)
    if type.kind == "tuple":
        return _tuple(value, type, where)
    if type.kind == "bool":
        if value in ("true", "false"):
            return value == "true"
        if isinstance(value, bool):
            return value
        raise _wrong(where, type, "must be true or false")
    if not isinstance(value, str):
        raise _wrong(where, type, "must be a string")
    if type.kind == "address":
        return _address(value, type, where)
    if type.kind == "bytes":
        return _octets(value, type, where)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(where, type, "contains an unpaired surrogate") from None
    return value


def _number(value: Any, type: Type, where: str) -> int:
    if isinstance(value, float):
        value = _whole(value)
    if isinstance(value, str):
        text = value.strip()
        if _DECIMAL.fullmatch(text):
            value = int(text)
        elif _HEXADECIMAL.fullmatch(text):
            value = int(text, 16)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(where, type, "must be a whole number, or a decimal string")
    bits = type.size or 256
    least, most = (0, 2**bits - 1) if type.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not least <= value <= most:
        raise _wrong(where, type, f"must be from {least} to {most}")
    return value


def _whole(value: float) -> int | float:
    """A number such as 1e18 as the integer that was written; others stay as they are, and are refused."""
    written = Decimal(repr(value))
    return int(written) if written == Decimal(value) and written == written.to_integral_value() else value


def _address(value: str, type: Type, where: str) -> str:
    from eth_utils.address import is_checksum_address

    if not _ADDRESS.fullmatch(value):
        raise _wrong(where, type, "must be `0x` and 40 hexadecimal digits")
    digits = value[2:]
    if digits not in (digits.lower(), digits.upper()) and not is_checksum_address(value):
        raise _wrong(where, type, "has the wrong mix of upper and lower case (EIP-55), so it is probably mistyped")
    return value.lower()


def _octets(value: str, type: Type, where: str) -> bytes:
    if not _OCTETS.fullmatch(value):
        raise _wrong(where, type, "must be `0x` and an even number of hexadecimal digits")
    data = bytes.fromhex(value[2:])
    if type.size is not None and len(data) != type.size:
        raise _wrong(where, type, f"must have {type.size} bytes, and has {len(data)}")
    return data


def _items(value: Any, type: Type, where: str) -> list[Any]:
    if not isinstance(value, list | tuple) or type.item is None:
        raise _wrong(where, type, "must be an array")
    if type.size is not None and len(value) != type.size:
        raise _wrong(where, type, f"must have {type.size} items, and has {len(value)}")
    return [_value(item, type.item, f"{where}[{number}]") for number, item in enumerate(value)]


def _tuple(value: Any, type: Type, where: str) -> tuple[Any, ...]:
    names = [member.name for member in type.members]
    if isinstance(value, Mapping):
        if sorted(value) != sorted(names):
            raise _wrong(where, type, f"must have the members {', '.join(names)}")
        value = [value[name] for name in names]
    if not isinstance(value, list | tuple) or len(value) != len(names):
        raise _wrong(where, type, f"must be an array of {len(names)}, or an object")
    return tuple(
        _value(item, member.type, f"{where}.{member.name or number}")
        for number, (item, member) in enumerate(zip(value, type.members, strict=True))
    )


def _wrong(where: str, type: Type, problem: str) -> Refusal:
    name = type.name if len(type.name) <= _SHOWN_CHARS else f"{type.name[:_SHOWN_CHARS]}…"
    return Refusal(f"`{where}` ({name}) {problem}.")


def _json(value: Any, type: Type) -> Any:
    if type.kind in ("uint", "int"):
        return str(value)
    if type.kind == "bytes":
        return f"0x{value.hex()}"
    if type.kind == "address":
        from eth_utils.address import to_checksum_address

        return to_checksum_address(value)
    if type.kind == "array" and type.item is not None:
        item = type.item
        return [_json(one, item) for one in value]
    if type.kind == "tuple":
        return _members(value, type.members)
    return value


def _members(values: Sequence[Any], members: Sequence[Parameter]) -> Any:
    """By name, if all have one of their own; else in order."""
    shown = [_json(value, member.type) for value, member in zip(values, members, strict=True)]
    names = [member.name for member in members]
    return dict(zip(names, shown, strict=True)) if all(names) and len({*names}) == len(names) else shown
