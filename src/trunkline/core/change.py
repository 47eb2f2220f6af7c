"""What changes from one text to another, line by line. Takes time in proportion to the texts, and a moment at most.

Lines that begin and end both texts alike are left aside, and what is between them is compared only where that is
little: the time for that grows with the third power of the lines at worst, and whoever wrote the texts may want it to
take for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trunkline.base.values import Value

#: Lines around a change, as everybody shows them.
CONTEXT = 3
#: Pairs of lines that are compared: a fifth of a second at worst. More than this is shown as all of the old ones, then
#: all of the new ones.
MOST_PAIRS = 100_000

#: Says that a text does not end with a line feed, where the other one does.
NO_NEWLINE = " <no line feed at the end>"

#: Where old lines begin and end, and the new ones in their place.
_Range = tuple[int, int, int, int]


class DiffRow(Value):
    """A line of a change: `+`, `-` or a space, or `@` for what is left out."""

    sign: str
    number: int | None
    text: str


def change(old: str, new: str) -> list[DiffRow]:
    """The rows that differ, with a few around them. Nothing if the texts are the same."""
    before, after = _lines(old, new), _lines(new, old)
    differences = list(_differences(before, after))
    nexts = [*(first for first, _, _, _ in differences[1:]), len(before)]
    rows: list[DiffRow] = []
    reached = 0
    for (first, last, start, stop), next_first in zip(differences, nexts, strict=False):
        begin = max(reached, first - CONTEXT)
        rows += _left_out(begin - reached)
        rows += [DiffRow(" ", start - first + at + 1, before[at]) for at in range(begin, first)]
        rows += [DiffRow("-", at + 1, before[at]) for at in range(first, last)]
        rows += [DiffRow("+", at + 1, after[at]) for at in range(start, stop)]
        reached = min(last + CONTEXT, next_first)
        rows += [DiffRow(" ", stop - last + at + 1, before[at]) for at in range(last, reached)]
    return rows + _left_out(len(before) - reached) if rows else []


def _left_out(count: int) -> list[DiffRow]:
    """Says how many lines are the same in both, and not shown."""
    return [DiffRow("@", None, f"⋮ {count:,} line{'' if count == 1 else 's'} unchanged")] if count else []


def _lines(text: str, other: str) -> list[str]:
    if "\r" in text and "\r" in other and _is_all_crlf(text) and _is_all_crlf(other):
        # The file's own line endings, which stay as they are.
        text = text.replace("\r\n", "\n")
    # Only a line feed ends a line: `str.splitlines` knows a dozen other characters.
    *lines, last = text.split("\n")
    if last:
        lines.append(last + (NO_NEWLINE if other.endswith("\n") else ""))
    return lines


def _is_all_crlf(text: str) -> bool:
    return text.count("\r\n") == text.count("\n") == text.count("\r")


def _differences(before: Sequence[str], after: Sequence[str]) -> Iterator[_Range]:
    """Stretches of the old lines, and those of the new ones that stand in their place."""
    head = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        head += 1
    tail = 0
    most = min(len(before), len(after)) - head
    while tail < most and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return
    if len(old) * len(new) > MOST_PAIRS:
        yield head, head + len(old), head, head + len(new)
        return
    from difflib import SequenceMatcher

    for kind, first, last, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield head + first, head + last, head + start, head + stop
