"""Unified diffs of changes whose places are known. Takes time in proportion to the text, however many changes.

The lines that a change touches are compared line by line only where they are few: comparing is quadratic. The result
is what `patch` and `git apply` take, with the files' own line endings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from trunkline.base.values import Value
from trunkline.tools.replacing import TextChange, replaced
from trunkline.tools.truncation import mark

#: Lines around a change, as everybody shows them.
CONTEXT = 3
#: Lines that are compared with each other. More than this is shown as all of the old ones, then all of the new ones.
_FEW_LINES = 400

_NO_NEWLINE = "\\ No newline at end of file\n"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


class _Change(Value):
    """Lines `start` up to `stop` of the old text become `lines`."""

    start: int
    stop: int
    lines: Sequence[str]


def unified_diff(old: str, changes: Sequence[TextChange], name: str, limit: int, created: bool = False) -> str:
    """The diff of a text and what the changes make of it; `name` is the file's, from the workspace.

    Whole hunks are left out at the end, and a mark is left, where there are more than `limit` characters.
    """
    hunks = list(_hunks(split_lines(old), list(_line_changes(old, changes))))
    header = f"--- {'/dev/null' if created else label('a/', name)}\n+++ {label('b/', name)}\n"
    sizes = list(accumulate(map(len, hunks), initial=len(header)))
    if sizes[-1] <= limit:
        return header + "".join(hunks)
    # The first one is always there; if it alone is too long, it loses its middle where the text is put to use.
    kept = max(bisect_right(sizes, limit - len(mark(sizes[-1]))) - 1, 1)
    rest = mark(sizes[-1] - sizes[kept]).lstrip("\n") if kept < len(hunks) else ""
    return header + "".join(hunks[:kept]) + rest


def split_lines(text: str) -> list[str]:
    """The lines with their endings. Only a line feed ends one: `str.splitlines` knows a dozen other characters."""
    *lines, last = text.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def label(prefix: str, name: str) -> str:
    """A file's name as programs read it back."""
    label = prefix + name.lstrip("/")
    if any(ord(char) < 32 or char in '"\\' for char in label):
        return f'"{label.translate(_ESCAPES)}"'
    # Else what follows the first space is taken for a date.
    return f"{label}\t" if " " in label else label


def _line_changes(old: str, changes: Iterable[TextChange]) -> Iterator[_Change]:
    lines = split_lines(old)
    ends = list(accumulate(map(len, lines)))
    starts = [0, *ends[:-1]] if ends else []
    for first, stop, group in _regions(starts, changes):
        begin = starts[first] if lines else 0
        before = old[begin : ends[stop - 1] if stop else 0]
        shifted = [TextChange(change.start - begin, change.end - begin, change.text) for change in group]
        yield from _compared(lines[first:stop], split_lines(replaced(before, shifted)), first)


def _regions(starts: list[int], changes: Iterable[TextChange]) -> Iterator[tuple[int, int, list[TextChange]]]:
    """Ranges of whole lines with the changes in each; a range ends behind the line in which its last change ends."""
    first = stop = 0
    group: list[TextChange] = []
    for change in changes:
        begin = max(bisect_right(starts, change.start) - 1, 0)
        if group and begin >= stop:
            yield first, stop, group
            group = []
        if not group:
            first = begin
        group.append(change)
        stop = bisect_right(starts, change.end)
    if group:
        yield first, stop, group


def _compared(old: list[str], new: list[str], offset: int) -> Iterator[_Change]:
    """The changes within one region, whose first line has the number `offset`."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new, offset = old[head : len(old) - tail], new[head : len(new) - tail], offset + head
    if not old and not new:
        return
    if not old or not new or len(old) == len(new) == 1 or max(len(old), len(new)) > _FEW_LINES:
        yield _Change(offset, offset + len(old), new)
        return
    from difflib import SequenceMatcher

    for tag, start, stop, new_start, new_stop in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            yield _Change(offset + start, offset + stop, new[new_start:new_stop])


def _hunks(lines: list[str], changes: Iterable[_Change]) -> Iterator[str]:
    shift = 0
    group: list[_Change] = []
    for change in changes:
        if group and change.start - group[-1].stop > 2 * CONTEXT:
            yield _hunk(lines, group, shift)
            shift += sum(_growth(earlier) for earlier in group)
            group = []
        group.append(change)
    if group:
        yield _hunk(lines, group, shift)


def _growth(change: _Change) -> int:
    return len(change.lines) - (change.stop - change.start)


def _hunk(lines: list[str], changes: Sequence[_Change], shift: int) -> str:
    """Changes that are close to each other; `shift` is how many lines the ones before have added."""
    start = max(changes[0].start - CONTEXT, 0)
    stop = min(changes[-1].stop + CONTEXT, len(lines))
    size = stop - start
    grown = size + sum(_growth(change) for change in changes)
    text = [f"@@ -{_range(start, size)} +{_range(start + shift, grown)} @@\n"]
    position = start
    for change in changes:
        text += (_marked(" ", line) for line in lines[position : change.start])
        text += (_marked("-", line) for line in lines[change.start : change.stop])
        text += (_marked("+", line) for line in change.lines)
        position = change.stop
    text += (_marked(" ", line) for line in lines[position:stop])
    return "".join(text)


def _range(start: int, size: int) -> str:
    if size == 1:
        return str(start + 1)
    # An empty range is named by the line before it.
    return f"{start + 1 if size else start},{size}"


def _marked(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}"
