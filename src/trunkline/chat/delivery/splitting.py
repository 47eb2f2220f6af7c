"""Cutting Markdown into messages that a platform takes.

A cut is made between paragraphs if one ends late enough, else between lines, else between words, else where it must.
What is lost at a cut is white space, and in code nothing but the line end. A code fence that is cut is closed in the
one part and opened again, with its language, in the next; so each part can be shown by itself.

The work grows with the text, not with its square: `measure` sees each stretch a few times at most.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from trunkline.base.values import Value

Measure = Callable[[str], int]

#: How much of a message must be used for a cut to be worth its place: a short message reads worse than a paragraph,
#: a line or a word in two pieces.
PARAGRAPH_FILL = 0.5
LINE_FILL = 0.3
WORD_FILL = 0.1

#: A fence is carried over a cut only when that leaves most of the message to the text.
MOST_FENCE_SHARE = 0.5

#: A language is a word. What is longer is something else, and is not repeated.
LONGEST_LANGUAGE = 32

#: Beyond this much indentation it is not repeated either: nobody writes that.
DEEPEST_INDENT = 12

#: Steps by which a first guess is made to fit, before it is simply halved. Measures that count characters need two.
GUESSES = 8

#: Marks, joiners and the like that belong to the character before. No character people write has more.
LONGEST_CLUSTER = 32

#: A longer run of backticks or tildes is a ruler, or an attack: taken for a fence, it would be repeated at each cut.
LONGEST_FENCE = 64

_MARK = rf"(?:`{{3,{LONGEST_FENCE}}}+(?!`)|~{{3,{LONGEST_FENCE}}}+(?!~))"
_FENCE_LINE = re.compile(rf"^([ \t]*+)({_MARK})([^\n]*+)", re.MULTILINE)
# No more indentation than this: looking further, at each cut, would not be linear.
_RUN = re.compile(rf"[ \t]{{0,64}}+{_MARK}")
_JOINER = "\u200d"
_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)++")


class _Fence(Value):
    """A code fence that is open."""

    opening: str
    closing: str


class _Turn(Value):
    """A line of the text that opens or closes a fence."""

    start: int
    end: int
    fence: _Fence | None
    """What is open after it."""


class _Cut(Value):
    """One part ends, the next begins, and what stands between is dropped."""

    end: int
    start: int
    closing: str = ""
    """What the part needs at its end."""
    opening: str = ""
    """What the next needs at its beginning."""


def split(text: str, limit: int, measure: Measure = len) -> list[str]:
    """The text in parts of at most `limit`, none of them blank. A blank text has none.

    Only a single character that is larger than the limit stands alone, and is over it.
    """
    parts, rest = advance(text, limit, measure)
    return [*parts, closed(rest)] if rest.strip() else parts


def advance(text: str, limit: int, measure: Measure = len) -> tuple[list[str], str]:
    """The parts of a text that goes on: those that are complete, and the rest, to which more can be added.

    The rest fits, as `closed` gives it; where it begins within code, the fence was opened again.
    """
    splitter = _Splitter(text, limit, measure)
    parts = [part for part in splitter.parts() if part.strip()]
    return parts, splitter.rest


def closed(text: str) -> str:
    """The text with its last code fence closed, if it is open."""
    fence = None
    for turn in _turns(text):
        fence = turn.fence
    if fence is None:
        return text
    return text + (fence.closing if text.endswith("\n") else f"\n{fence.closing}")


def resumed(text: str, start: int) -> str:
    """The text from a position on, with the code fence opened again that was open there."""
    if start >= len(text):
        return ""
    cut = _Splitter(text, sys.maxsize, len).cut_at(start, -1)
    return cut.opening + text[cut.start :]


class _Splitter:
    """One text on its way to parts."""

    def __init__(self, text: str, limit: int, measure: Measure) -> None:
        self._text = text
        self._limit = max(1, limit)
        self._measure = measure
        self._turns = list(_turns(text))
        self._starts = [turn.start for turn in self._turns]
        self.rest = text

    def parts(self) -> Iterator[str]:
        """All but the last, which is `rest` in the end. Some may be blank."""
        start, opening = 0, ""
        while not self._ends(start, opening):
            cut = self._find(start, opening)
            yield self._part(start, opening, cut)
            start, opening = cut.start, cut.opening
        self.rest = opening + self._text[start:]

    def cut_at(self, position: int, start: int) -> _Cut:
        """What cutting here means: here or a little before, but after `start`."""
        text = self._text
        if position > 0 and text[position - 1] != "\n" and (run := _RUN.match(text, position)):
            # Within a line it is no fence; at the beginning of a line it would be one.
            position = run.end()
        if text[position : position + 1] == "\n" and text[position - 1 : position] != "\n":
            position += 1
        turn = self._line_around(position)
        if turn is not None and turn.start > start:
            if turn.fence is None and (fence := self._open_at(turn.start)) and self._carries(fence):
                # The line that closes the fence is not needed any more: this part has closed it.
                return _Cut(_line_end(text, turn.start), self._after_blank(turn.end), f"\n{fence.closing}")
            position = turn.start
        elif turn is None and (fence := self._open_at(position)) and self._carries(fence):
            return _Cut(_line_end(text, position), position, f"\n{fence.closing}", f"{fence.opening}\n")
        first = max(start, 0)
        return _Cut(first + len(text[first:position].rstrip()), self._after_blank(position))

    def _ends(self, start: int, opening: str) -> bool:
        """Whether the rest fits."""
        # What has more characters than the limit is not even measured: that would not be linear.
        if len(self._text) - start > self._limit:
            return False
        return self._measure(closed(opening + self._text[start:])) <= self._limit

    def _find(self, start: int, opening: str) -> _Cut:
        """The best cut after `start`, so that the part before it fits."""
        size = min(self._limit, len(self._text) - start)
        guesses = 0
        while True:
            cut = self._best(start, start + size)
            measured = self._measure(self._part(start, opening, cut))
            if measured <= self._limit:
                return cut
            if size == 1:
                return _Cut(start + 1, start + 1)
            guesses += 1
            size = min(size, max(1, cut.end - start))
            size = max(1, min(size - 1, size * self._limit // measured) if guesses <= GUESSES else size // 2)

    def _best(self, start: int, most: int) -> _Cut:
        """The best cut at or before `most`, as if everything up to there fitted."""
        text, size = self._text, most - start
        paragraph = text.rfind("\n\n", start, most)
        if paragraph > start + size * PARAGRAPH_FILL and self._open_at(paragraph) is None:
            return self.cut_at(paragraph, start)
        code = self._opening_before(most)
        if code > start + size * PARAGRAPH_FILL:
            return self.cut_at(code, start)
        line = most if text[most : most + 1] == "\n" else text.rfind("\n", start, most) + 1
        if line > start + size * LINE_FILL and not self._tears(line, start):
            return self.cut_at(line, start)
        word = most if text[most : most + 1].isspace() else _last_space(text, start, most) + 1
        if word > start + size * WORD_FILL and not self._tears(word, start):
            return self.cut_at(word, start)
        return self.cut_at(_cluster_start(text, start, most), start)

    def _tears(self, position: int, start: int) -> bool:
        """Whether a part that begins with a fence would end with that line."""
        turn = self._line_around(position)
        return turn is not None and turn.start <= start

    def _part(self, start: int, opening: str, cut: _Cut) -> str:
        content = self._text[start : cut.end]
        # Closed once more: a fence's line that is longer than a message is torn, and may open what nothing closes.
        return closed(opening + content + cut.closing) if content.strip() else ""

    def _carries(self, fence: _Fence) -> bool:
        return self._measure(f"{fence.opening}\n\n{fence.closing}") <= self._limit * MOST_FENCE_SHARE

    def _open_at(self, position: int) -> _Fence | None:
        """The fence that is open at a position."""
        index = bisect_left(self._starts, position) - 1
        return self._turns[index].fence if index >= 0 else None

    def _opening_before(self, position: int) -> int:
        """Where the fence begins that is open at a position; -1 if none is."""
        index = bisect_left(self._starts, position) - 1
        return self._turns[index].start if index >= 0 and self._turns[index].fence else -1

    def _line_around(self, position: int) -> _Turn | None:
        """The fence's line that a cut here would tear, or leave without the code it belongs to."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return None
        turn = self._turns[index]
        around = turn.start < position <= turn.end + 1 if turn.fence else turn.start <= position < turn.end
        return turn if around else None

    def _after_blank(self, position: int) -> int:
        """Past spaces and blank lines, but not into the indentation of the next line."""
        text = self._text
        if position > 0 and text[position - 1] != "\n":
            while position < len(text) and text[position] != "\n" and text[position].isspace():
                position += 1
        blank = _BLANK_LINES.match(text, position)
        return blank.end() if blank else position


def _turns(text: str) -> Iterator[_Turn]:
    """The lines that open and close fences, in order."""
    mark = ""
    for line in _FENCE_LINE.finditer(text):
        indent, run, info = line.groups()
        info = info.strip()
        if mark:
            if run[0] == mark[0] and len(run) >= len(mark) and not info:
                mark = ""
                yield _Turn(line.start(), line.end(), None)
        elif not (run[0] == "`" and "`" in info):
            mark = run
            yield _Turn(line.start(), line.end(), _fence(indent, run, info))


def _fence(indent: str, run: str, info: str) -> _Fence:
    language = info.split(maxsplit=1)[0] if info else ""
    indent = indent if len(indent) <= DEEPEST_INDENT else ""
    return _Fence(indent + run + (language if len(language) <= LONGEST_LANGUAGE else ""), indent + run)


def _line_end(text: str, position: int) -> int:
    """Before the line end that a position comes after, if it does."""
    return position - 1 if text[position - 1 : position] == "\n" else position


def _last_space(text: str, start: int, end: int) -> int:
    return max(text.rfind(" ", start, end), text.rfind("\t", start, end))


def _cluster_start(text: str, start: int, position: int) -> int:
    """The position, or a little before, so that no character is torn from its marks."""
    lowest = max(start + 1, position - LONGEST_CLUSTER)
    found = position
    while found > lowest and found < len(text) and _clings(text[found], text[found - 1]):
        found -= 1
    return found if found > lowest or lowest == start + 1 else position


def _clings(char: str, before: str) -> bool:
    return (
        char == _JOINER
        or before == _JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or (char > "\x7f" and unicodedata.category(char) in ("Mn", "Mc", "Me"))
        or (char == "\n" and before == "\r")
    )
