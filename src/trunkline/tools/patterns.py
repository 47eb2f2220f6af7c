"""Patterns for names and paths, as shells, git and search tools know them.

    *  ?  [a-z]  [!a-z]  [[:alpha:]]  \\x        within one name
    **                                           as a whole name: any number of directories
    {a,b}                                        either; only where `expand_braces` is used

Matching a name takes time in proportion to its length times the pattern's, whatever the pattern: a search runs in
threads that nobody can interrupt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from trunkline.tools.arguments import ToolInputError

#: Alternatives that one pattern with braces may stand for. Nobody writes more; nested ones grow very fast.
MOST_ALTERNATIVES = 256

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~", "space": "\\t-\\r ",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip

#: A name is matched by this; `None` stands for `**`.
Segment = Callable[[str], object] | None


class BadPattern(ToolInputError):
    """The pattern has no meaning; the text says why."""


def name_regex(pattern: str) -> str:
    """The regular expression, for `fullmatch`, of a pattern for one name.

    Raises:
        BadPattern: a bracket is not closed, or a backslash stands at the end.
    """
    runs: list[str] = [""]
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == "*":
            runs.append("")
        elif char == "?":
            runs[-1] += "."
        elif char == "[":
            part, position = _bracket(pattern, position)
            runs[-1] += part
        elif char == "\\":
            if position == len(pattern):
                raise BadPattern(f"`{pattern}` ends with a backslash, which must be followed by another character")
            runs[-1] += re.escape(pattern[position])
            position += 1
        else:
            runs[-1] += re.escape(char)
    if len(runs) == 1:
        return f"(?s:{runs[0]})"
    first, *middle, last = runs
    # The leftmost place is always good enough for all but the last run, so there is never a reason to try another.
    skipped = "".join(f"(?>.*?{run})" for run in middle if run)
    return f"(?s:{first}{skipped}.*{last})"


def _bracket(pattern: str, position: int) -> tuple[str, int]:
    """A set of characters; `position` is behind its opening bracket. Gives the position behind the closing one."""
    negated = pattern[position : position + 1] in ("!", "^")
    start = position = position + negated
    items: list[str] = []
    while position == start or pattern[position : position + 1] != "]":
        named = re.compile(r"\[:(\w+):\]").match(pattern, position)
        if named and named[1] in _CLASSES:
            items.append(_CLASSES[named[1]])
            position = named.end()
            continue
        low, position = _member(pattern, position)
        high = low
        if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] not in ("", "]"):
            high, position = _member(pattern, position + 1)
        if low <= high:
            items.append(f"{re.escape(low)}-{re.escape(high)}")
    if not items:
        return ("." if negated else "(?!)"), position + 1
    return f"[{'^' if negated else ''}{''.join(items)}]", position + 1


def _member(pattern: str, position: int) -> tuple[str, int]:
    position += pattern[position : position + 1] == "\\"
    if position >= len(pattern):
        raise BadPattern(f"`{pattern}` has a `[` that is not closed; write `\\[` for the character itself")
    return pattern[position], position + 1


def segments(pattern: str) -> list[Segment]:
    """What matches the names of a path one after the other.

    Raises:
        BadPattern: one of them has no meaning.
    """
    found: list[Segment] = []
    for name in pattern.split("/"):
        if name == "**":
            if not found or found[-1] is not None:
                found.append(None)
        else:
            found.append(re.compile(name_regex(name)).fullmatch)
    return found


def match_path(pattern: Sequence[Segment], names: Sequence[str]) -> bool:
    """Whether the names of a path match. A `**` at the end stands for at least one name, elsewhere for any number."""
    if pattern and pattern[-1] is None:
        pattern = [*pattern, _anything]
    at = name = 0
    # Where the latest `**` stands, and how far it reaches so far.
    star, reach = -1, 0
    while name < len(names):
        segment = pattern[at] if at < len(pattern) else _nothing
        if segment is None:
            star, reach = at, name
            at += 1
        elif segment(names[name]):
            at, name = at + 1, name + 1
        elif star >= 0:
            reach += 1
            at, name = star + 1, reach
        else:
            return False
    return at == len(pattern)


def _anything(name: str) -> object:
    return True


def _nothing(name: str) -> object:
    return None


def expand_braces(pattern: str) -> list[str]:
    """All that `{a,b}` stands for; braces without a comma between them are characters like any other.

    Raises:
        BadPattern: that is too much.
    """
    found: list[str] = []
    for alternative in _expand(pattern):
        found.append(alternative)
        if len(found) > MOST_ALTERNATIVES:
            raise BadPattern(f"`{pattern[:80]}` expands to more than {MOST_ALTERNATIVES} patterns; use fewer braces")
    return found


def _expand(pattern: str) -> Iterator[str]:
    span = _first_braces(pattern)
    if span is None:
        yield pattern
        return
    opening, commas, closing = span
    before, after = pattern[:opening], pattern[closing + 1 :]
    for start, stop in zip([opening, *commas], [*commas, closing], strict=True):
        # One at a time: a pattern that stands for too much must not be expanded to its end.
        yield from (before + expanded for expanded in _expand(pattern[start + 1 : stop] + after))


def _first_braces(pattern: str) -> tuple[int, list[int], int] | None:
    """The first pair with a comma of its own: where it opens, its commas, where it closes."""
    opened: list[tuple[int, list[int]]] = []
    pairs: list[tuple[int, list[int], int]] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif char == "{":
            opened.append((position, []))
        elif char == "," and opened:
            opened[-1][1].append(position)
        elif char == "}" and opened:
            opening, commas = opened.pop()
            if commas:
                pairs.append((opening, commas, position))
        position += 1
    return min(pairs) if pairs else None
