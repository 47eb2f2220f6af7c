"""The one text of a JSON value that both ends hash, whatever the order and the spelling in transit.

It is the text that JavaScript makes: members sorted by the UTF-16 units of their names, no white space, numbers as
JavaScript prints doubles, non-ASCII characters raw, lone surrogates as escapes.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

#: From here on, JavaScript prints a number with an exponent.
_EXPONENT_FROM = 21
#: And below this many zeros after the point.
_MOST_ZEROS = 6
#: Integers up to here are exact as doubles, and print as they are.
_EXACT = 2**53

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def stable(value: Any) -> str:
    """The canonical text of a value as `codec.parse_body` returns them.

    Raises:
        TypeError: the value holds something that is not JSON.
    """
    pieces: list[str] = []
    _write(value, pieces)
    text = "".join(pieces)
    return text if text.isascii() else _LONE_SURROGATE.sub(_escaped, text)


def number(value: float) -> str:
    """A number as JavaScript prints it in JSON; `null` for one that is not finite."""
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return str(value)
    try:
        double = float(value)
    except OverflowError:
        return "null"
    if not isfinite(double):
        return "null"
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    digits, point = _shortest(abs(double))
    return sign + _placed(digits, point)


def _write(value: Any, pieces: list[str]) -> None:
    if isinstance(value, str):
        pieces.append(encode_basestring(value))
    elif value is None:
        pieces.append("null")
    elif value is True:
        pieces.append("true")
    elif value is False:
        pieces.append("false")
    elif isinstance(value, int | float):
        pieces.append(number(value))
    elif isinstance(value, dict):
        _write_object(value, pieces)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            pieces.append("," if index else "[")
            _write(item, pieces)
        pieces.append("]" if value else "[]")
    else:
        raise TypeError(f"not JSON: {type(value).__name__}")


def _write_object(members: dict[str, Any], pieces: list[str]) -> None:
    for index, name in enumerate(sorted(members, key=_utf16)):
        pieces.append("," if index else "{")
        pieces.append(encode_basestring(name))
        pieces.append(":")
        _write(members[name], pieces)
    pieces.append("}" if members else "{}")


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _shortest(double: float) -> tuple[str, int]:
    """The fewest digits that tell it from all other doubles, and where the point stands among them."""
    mantissa, _, exponent = repr(double).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), point


def _placed(digits: str, point: int) -> str:
    """Those digits with their point, their zeros or their exponent."""
    if len(digits) <= point <= _EXPONENT_FROM:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _EXPONENT_FROM:
        return f"{digits[:point]}.{digits[point:]}"
    if -_MOST_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    exponent = point - 1
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"
