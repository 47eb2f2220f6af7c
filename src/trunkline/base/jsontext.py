"""JSON text in and out, strict where peers are careless and careful where Python is not.

Reading refuses what is not JSON although the standard library takes it (`NaN`, numbers beyond double range) and what
would exhaust the stack. Lone surrogates are carried: they come in as escapes and go out as escapes.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from json.encoder import encode_basestring, encode_basestring_ascii
from math import isfinite
from typing import Any

#: Deep enough for any tool's arguments; far from the recursion limit of the encoders that see the data later.
MAX_DEPTH = 200

#: Larger integers are no numbers to any reader, and Python itself refuses to spell those of thousands of digits.
_MAX_BITS = 1024

#: Every integer of so many digits is a double.
_EXACT_DIGITS = 15

#: What Python says of such, to whoever can change the program.
_PYTHONS_ADVICE = "set_int_max_str_digits"

#: The JSON string literal of a text, quotes included, non-ASCII characters as they are.
quote = encode_basestring
#: The same in ASCII alone: the one that can carry lone surrogates, which UTF-8 cannot.
quote_ascii = encode_basestring_ascii

#: Brackets alone, as 2 for one that opens and 0 for one that closes.
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_DOWN_OR_UP = bytes.maketrans(b"[]{}", bytes((2, 0, 2, 0)))

#: A string, whole or cut off by the end of the text: what is left without them is structure.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def loads(
    data: bytes,
    max_depth: int = MAX_DEPTH,
    max_values: int | None = None,
    *,
    doubles: bool = False,
    unique: bool = False,
) -> Any:
    """Parse one JSON text in UTF-8.

    With `doubles`, numbers are what JavaScript takes them for: long integers are rounded, and what is beyond double
    range is infinite. With `unique`, no object may have two members of one name, which readers take differently.

    Raises:
        ValueError: it is not JSON, not UTF-8, nested deeper than `max_depth`, or made of more than `max_values`
            members and items. The text says which.
    """
    if max_values is not None and len(data) > max_values and _more_values_than(data, max_values):
        raise ValueError(f"more than {max_values} members and items")
    # Before it is parsed: where a library has lifted the limit on recursion, the parser would exhaust the stack. Only a
    # text with that many brackets can be that deep, so the common line is not looked at.
    if data.count(b"[") + data.count(b"{") > max_depth and _deepest(data) > max_depth:
        raise ValueError(f"nested deeper than {max_depth} levels")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"invalid UTF-8 at byte {error.start}") from None
    try:
        decoder = _double_decoder if doubles else _unique_decoder if unique else _decoder
        return decoder.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError(f"nested deeper than {max_depth} levels") from None
    except ValueError as error:
        if _PYTHONS_ADVICE in str(error):
            raise ValueError("a number has too many digits") from None
        raise


def dumps(value: Any) -> bytes:
    """One compact JSON text in UTF-8, without a line feed in it.

    Numbers that JSON or its readers cannot carry, non-finite or of thousands of digits, become `null`.

    Raises:
        TypeError: the value holds something that is not JSON, or holds itself.
    """
    try:
        return _encoded(value)
    except (ValueError, RecursionError):
        pass
    try:
        return _encoded(_carried(value))
    except (ValueError, RecursionError) as error:
        raise TypeError(f"not JSON: {error}") from None


def whole(text: str) -> str:
    """A text that came as JSON for those who take UTF-8 alone, such as databases: `?` for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def _more_values_than(data: bytes, limit: int) -> bool:
    """Whether a text separates more values than that, which its parser would have to make one by one."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") <= limit:
        return False
    # Every string has two quotes that nothing escapes, and is a member's name or a value.
    if data.count(b'"') - data.count(b'\\"') > 4 * limit:
        return True
    # The commas and brackets may stand in strings, as in a pasted table.
    structure = _STRING.sub(b"", data)
    return structure.count(b",") + structure.count(b"[") + structure.count(b"{") > limit


def _encoded(value: Any) -> bytes:
    try:
        return _encoder.encode(value).encode("utf-8")
    except UnicodeEncodeError:
        return _ascii_encoder.encode(value).encode("ascii")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _once_each(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, member in members:
        if name in found:
            raise ValueError(f"`{name[:40]}` is given twice")
        found[name] = member
    return found


def _double(text: str) -> int | float:
    """An integer, as far as a double holds it exactly."""
    return int(text) if len(text) <= _EXACT_DIGITS else float(text)


def _deepest(data: bytes) -> int:
    """How many brackets are open at once, at most."""
    brackets = _STRING.sub(b"", data).translate(_DOWN_OR_UP, _NO_BRACKETS)
    return max(accumulate(step - 1 for step in brackets), default=0)


def _carried(value: Any) -> Any:
    """The value with `None` for every number that cannot be written."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else None
    if isinstance(value, dict):
        return {_carried(key): _carried(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_carried(member) for member in value]
    return value


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float)
_unique_decoder = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite_float, object_pairs_hook=_once_each
)
_double_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_double)
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ascii_encoder = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
