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
from itertools import product

from trunkline.base.shapes import ShapeError

#: Alternatives that one pattern with braces may stand for. Nobody writes more; nested ones grow very fast.
MOST_ALTERNATIVES = 256
#: Characters in all of them together.
MOST_EXPANDED = 65_536
#: A longer text is not the path of any file: systems refuse it. It may be a way to one for who follows it step by step.
LONGEST_PATH = 4_096

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~", "space": "\\t-\\r ",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip

#: A name is matched by this; `None` stands for `**`.
Segment = Callable[[str], object] | None


class BadPattern(ShapeError):
    """The pattern has no meaning; the text says why."""

    def __init__(self, problem: str) -> None:
        super().__init__("", problem)


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


def match_beginnings(pattern: Sequence[Segment], names: Sequence[str]) -> Iterator[int]:
    """How many of the first names of a path match, for each number that does; one pass for all of them."""
    if pattern and pattern[-1] is None:
        pattern = [*pattern, _anything]
    reached = _behind_stars(pattern, {0})
    if len(pattern) in reached:
        yield 0
    for count, name in enumerate(names, 1):
        stay = {at for at in reached if at < len(pattern) and pattern[at] is None}
        going = ((at, pattern[at]) for at in reached - stay if at < len(pattern))
        reached = _behind_stars(pattern, stay | {at + 1 for at, segment in going if segment and segment(name)})
        if not reached:
            return
        if len(pattern) in reached:
            yield count


def _behind_stars(pattern: Sequence[Segment], places: set[int]) -> set[int]:
    """These places in a pattern, and those behind each `**`, which may stand for no name at all."""
    return places | {at + 1 for at in places if at < len(pattern) and pattern[at] is None}


def expand_braces(pattern: str) -> list[str]:
    """All that `{a,b}` stands for; braces without a comma between them are characters like any other.

    Raises:
        BadPattern: that is too much.
    """
    if len(pattern) > MOST_EXPANDED:
        raise _too_much(pattern)
    # For each brace that is open, and for what is around them all: the parts between its commas.
    opened: list[list[_Parts]] = [[[]]]
    for piece in _BRACES.findall(pattern):
        if piece == "{":
            opened.append([[]])
        elif piece == "," and len(opened) > 1:
            opened[-1].append([])
        elif piece == "}" and len(opened) > 1:
            between = opened.pop()
            found = [text for parts in between for text in _combined(parts, pattern)]
            opened[-1][-1].append(found if len(between) > 1 else [f"{{{text}}}" for text in found])
        else:
            opened[-1][-1].append([piece])
    # One that is not closed is a character, and so are its commas.
    all_parts: _Parts = list(opened[0][0])
    for first, *rest in opened[1:]:
        all_parts += [["{"], *first, *(each for parts in rest for each in ([","], *parts))]
    return _combined(all_parts, pattern)


def alternatives(pattern: str) -> Sequence[str]:
    """The same; one that stands for too much, with which nothing is searched, is a text like any other."""
    try:
        return expand_braces(pattern)
    except BadPattern:
        return (pattern,)


#: Texts that follow one another, each with all that may stand in its place.
_Parts = list[list[str]]
_BRACES = re.compile(r"(?:[^{},\\]|\\.)+|[{},\\]", re.DOTALL)


def _combined(parts: _Parts, pattern: str) -> list[str]:
    """Each way to put them together."""
    count = 1
    for part in parts:
        count *= len(part)
        if count > MOST_ALTERNATIVES:
            raise _too_much(pattern)
    if sum(count // len(part) * sum(map(len, part)) for part in parts) > MOST_EXPANDED:
        raise _too_much(pattern)
    return ["".join(chosen) for chosen in product(*parts)]


def _too_much(pattern: str) -> BadPattern:
    return BadPattern(
        f"`{pattern[:80]}` expands to more than {MOST_ALTERNATIVES} patterns, or {MOST_EXPANDED} characters; use fewer "
        "braces"
    )
