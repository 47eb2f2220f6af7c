"""The functions and errors of a contract, as its ABI describes them.

    function = abi.choose(entries, "inc(uint256)")
    function.signature, function.inputs[0].type.name

A function is meant by its name, or by its signature where there are several of that name. Only what is asked for is
read: the rest of an ABI may be as long and as odd as it likes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.runner.chain.jsonrpc import ChainError

#: What an agent is told that names no function of the ABI.
NOT_ALLOWED = "Function not allowed."

#: Arrays of arrays of arrays: more than compilers make, few enough for any stack.
MOST_NESTED = 12

#: A fixed array that is longer does not fit into a transaction.
MOST_ITEMS = 4096

#: How many of several functions of one name are listed.
MOST_CANDIDATES = 20

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,255}")
_SUFFIX = re.compile(r"(.*)\[([0-9]{0,4})\]", re.DOTALL)
_NUMBER = re.compile(r"(u?int)([0-9]{0,3})")
_FIXED_BYTES = re.compile(r"bytes([0-9]{1,2})")
_BARE_NUMBER = re.compile(r"\b(u?int)\b")

Kind = Literal["uint", "int", "bool", "address", "string", "bytes", "array", "tuple"]


class Refusal(ChainError):
    """What was asked for is not possible or not allowed; the text says why. Nothing was sent."""


class Type(Value):
    """The type of a value.

    `size`: bits of a number, bytes of `bytesN`, items of a fixed array; None where there is no limit.
    """

    kind: Kind
    name: str
    """In its canonical form, as it stands in a signature."""
    size: int | None = None
    item: Type | None = None
    members: tuple[Parameter, ...] = ()


class Parameter(Value):
    """A value that goes in or comes out, by its name (which may be empty) and type."""

    name: str
    type: Type


class Function(Value):
    """A function, or an error, of a contract. `entry` is what the ABI says about it."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    mutability: str
    entry: Mapping[str, Any]

    @property
    def signature(self) -> str:
        """The name with the types of the arguments: what tells it from others of the same name."""
        return f"{self.name}({','.join(parameter.type.name for parameter in self.inputs)})"

    @property
    def selector(self) -> bytes:
        """The four bytes that mean it on the chain."""
        from eth_utils.crypto import keccak

        return keccak(text=self.signature)[:4]

    @property
    def is_view(self) -> bool:
        """Whether it changes nothing, so that it is called and not sent."""
        return self.mutability in ("view", "pure")

    @property
    def is_payable(self) -> bool:
        """Whether it takes money."""
        return self.mutability == "payable"


def choose(entries: Sequence[Any], wanted: Any) -> Function:
    """The function of that name, or of that signature.

    Raises:
        Refusal: there is none, or more than one of the name, or its entry makes no sense.
    """
    if not isinstance(wanted, str) or not wanted:
        raise Refusal(NOT_ALLOWED)
    asked = wanted.strip()
    if "(" not in asked:
        found = [read(entry) for entry in _named(entries, "function", asked)]
        if len(found) > 1:
            several = ", ".join(f"`{function.signature}`" for function in found[:MOST_CANDIDATES])
            raise Refusal(f"There are several functions `{asked}`. Give the full signature of one: {several}.")
        if not found:
            raise Refusal(NOT_ALLOWED)
        return found[0]
    signature = canonical(asked)
    for entry in _named(entries, "function", signature.partition("(")[0]):
        function = read(entry)
        if function.signature == signature:
            return function
    raise Refusal(NOT_ALLOWED)


def errors(entries: Sequence[Any]) -> Iterator[Function]:
    """The errors that a contract may give as its reason. Entries that make no sense are left out."""
    for entry in entries:
        if isinstance(entry, Mapping) and entry.get("type") == "error":
            try:
                yield read(entry)
            except Refusal:
                continue


def canonical(signature: str) -> str:
    """A signature as people write it, in the form that counts: no spaces, `uint256` for `uint`."""
    name, bracket, types = "".join(signature.split()).partition("(")
    return name + bracket + _BARE_NUMBER.sub(r"\g<1>256", types)


def read(entry: Mapping[str, Any]) -> Function:
    """A function or an error from its entry.

    Raises:
        Refusal: the entry makes no sense.
    """
    name = entry.get("name")
    try:
        inputs = _parameters(entry.get("inputs", ()), 0)
        outputs = _parameters(entry.get("outputs", ()), 0)
    except ValueError as error:
        raise Refusal(f"The ABI's entry for `{name}` cannot be used: {error}.") from None
    return Function(str(name), inputs, outputs, _mutability(entry), entry)


def _named(entries: Sequence[Any], type: str, name: str) -> list[Mapping[str, Any]]:
    if not _NAME.fullmatch(name):
        return []
    return [
        entry
        for entry in entries
        if isinstance(entry, Mapping) and entry.get("type", "function") == type and entry.get("name") == name
    ]


def _mutability(entry: Mapping[str, Any]) -> str:
    """How much a function changes. Compilers before 0.5 said it in other words."""
    if isinstance(said := entry.get("stateMutability"), str):
        return said
    if entry.get("constant") is True:
        return "view"
    return "payable" if entry.get("payable") is True else "nonpayable"


def _parameters(listed: Any, depth: int) -> tuple[Parameter, ...]:
    if not isinstance(listed, list | tuple):
        raise ValueError("its parameters are not a list")
    found = []
    for entry in listed:
        if not isinstance(entry, Mapping):
            raise ValueError("a parameter is not an object")
        name = entry.get("name")
        found.append(Parameter(name if isinstance(name, str) else "", _type(entry.get("type"), entry, depth)))
    return tuple(found)


def _type(name: Any, entry: Mapping[str, Any], depth: int) -> Type:
    if not isinstance(name, str):
        raise ValueError("a parameter has no type")
    if depth > MOST_NESTED:
        raise ValueError(f"types are nested more than {MOST_NESTED} deep")
    if suffix := _SUFFIX.fullmatch(name):
        item = _type(suffix[1], entry, depth + 1)
        size = int(suffix[2]) if suffix[2] else None
        if size is not None and not 0 < size <= MOST_ITEMS:
            raise ValueError(f"an array of {size} items")
        return Type("array", f"{item.name}[{'' if size is None else size}]", size, item)
    if name == "tuple":
        members = _parameters(entry.get("components"), depth + 1)
        if not members:
            raise ValueError("a tuple without members")
        return Type("tuple", f"({','.join(member.type.name for member in members)})", None, None, members)
    return _plain_type(name)


def _plain_type(name: str) -> Type:
    if name in ("bool", "address", "string"):
        return Type(name, name)  # type: ignore[arg-type]  # the three names are kinds
    if name in ("bytes", "function"):
        return Type("bytes", "bytes") if name == "bytes" else Type("bytes", "bytes24", 24)
    if number := _NUMBER.fullmatch(name):
        bits = int(number[2] or 256)
        if bits in range(8, 257, 8):
            return Type("uint" if number[1] == "uint" else "int", f"{number[1]}{bits}", bits)
    if (fixed := _FIXED_BYTES.fullmatch(name)) and 0 < int(fixed[1]) <= 32:
        return Type("bytes", name, int(fixed[1]))
    raise ValueError(f"the type `{name[:40]}` is not known")
