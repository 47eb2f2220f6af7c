"""How large a pattern becomes when it is compiled, told from its text.

The engine spells repetitions out: what is to come at least `n` times is there `n + 1` times, `+` included, and what is
within another one as often as the two multiplied. So a hundred characters can become gigabytes.

What would make the text hard to read, remarks and verbose mode, is refused: the engine ignores blanks and more there,
in places that it does not document, and whoever counts must not read another pattern than the engine.
"""

from __future__ import annotations

import re

#: What a pattern consists of. A set with another `[` in it, unless it is one as in `[[:alpha:]]`, is none of these. A
#: repetition behind flags is one of what is before them.
_TOKEN = re.compile(
    r"""
    (?P<flags> \(\?[A-Za-z0-9-]*\))
    | (?P<several> \\[XR])
    | (?P<members> \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\[\\])*\])
    | (?P<plain> \\.)
    | (?P<open> \()
    | (?P<close> \))
    | (?P<least> \+ | \{\d+(?:,\d*)?\})
    | (?P<set> \[)
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_LEAST = re.compile(r"\+|\{(\d+)(?:,\d*)?\}")
#: What follows `(?` where it is not text, and what is wrong with it. Within a set it is text, and refused all the same.
_UNFIT = re.compile(
    r"""
    (?<!\\)(?:\\\\)*\(\?(?:
        # `(?R)`, `(?1)`, `(?-1)`, `(?&name)`, `(?P>name)`, `(?P&name)`: it fills memory in no time.
        (?P<calls> R | [+-]?\d | & | P[>&])
        | (?P<remark> \#)
        # `(?x)`, `(?i-x:...)`.
        | (?P<verbose> [A-Za-z0-9-]*x)
    )
    """,
    re.VERBOSE,
)
_WHY = {
    "calls": "patterns within themselves are not for guardrails",
    "remark": "remarks, `(?#`, are not for guardrails",
    "verbose": "the flag `x`, for patterns with blanks and remarks, is not for guardrails",
}
#: Parts of `\X`, all that makes one character on the screen, and of `\R`, whatever ends a line.
_SEVERAL = 4
#: Digits of a count that are looked at. Beyond that it is too much, however much it is.
_DIGITS = 9


def unfit(line: str) -> str | None:
    """What a pattern has that none may have; None if there is nothing."""
    found = _UNFIT.search(line)
    return _WHY[found.lastgroup] if found is not None and found.lastgroup is not None else None


def count_parts(line: str) -> int:
    """How many parts a pattern that is not `unfit` has once it is spelled out; rather too many than too few."""
    if (found := _nested(line)) is not None:
        return found
    # As if all repetitions were within each other.
    parts = _SEVERAL * len(line)
    for count in _LEAST.finditer(line):
        parts *= _copies(count[0])
    return parts


def _nested(line: str) -> int | None:
    """The parts of a pattern whose groups are seen; None if they are not."""
    around: list[int] = []
    total = last = 0
    """Of the group so far, and of what a repetition would be of."""
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup
        if kind == "open":
            around.append(total)
            total, last = 1, 0
        elif kind == "close":
            if not around:
                return None
            last = total + 1
            total = around.pop() + last
        elif kind == "least":
            more = last * (_copies(token[0]) - 1) + 1
            total += more
            last += more
        elif kind == "set":
            return None
        elif kind != "flags":
            last = _SEVERAL if kind == "several" else len(token[0]) // 2 if kind == "members" else 1
            total += last
    return None if around else total


def _copies(count: str) -> int:
    return 2 if count == "+" else int(re.sub(r"\D.*", "", count[1:])[:_DIGITS]) + 1
