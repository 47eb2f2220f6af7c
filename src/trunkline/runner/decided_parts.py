"""Where in a model's output decisions may stand, as opposed to talk about them.

What others wrote comes back in a model's answers: quoted, and often refused. So what counts is where JSON stands, and
the rules are those of Markdown, which models write:

1. What the output begins with in `<think>` or `<thinking>` is thought, up to the end if it is not closed. So is what
   comes before a closing tag at the edge of a line, since some servers leave the opening one out.
2. Lines that begin with `>` quote somebody, and so does what follows such a line without an empty one between them,
   unless the line ended with JSON that was whole. What stands in a tag that says so (`<blockquote>`, `<example>`,
   `<reasoning>`, `<!--` ...) is no decision either, up to the end if it is not closed.
3. A fenced block without a language, or marked as JSON, may decide. Blocks of other languages do not, and neither do
   those that are called an example or a quote (`json example`). A fence within a string of JSON is text, and one that
   is shorter than the first does not end the block.
4. JSON counts on lines of its own: it begins one, at most after the mark of a list, and ends one. JSON within a
   sentence is part of the sentence.

A part may still be no valid JSON. Time is in proportion to the text. No IO.
"""

from __future__ import annotations

import re
from enum import IntEnum

from trunkline.base.values import Value

_THOUGHT = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_THOUGHT_END = r"</think(?:ing)?>"
#: At the edge of a line. (Elsewhere, somebody writes about tags.)
_THOUGHT_END_FIRST = re.compile(rf"[ \t]*{_THOUGHT_END}", re.IGNORECASE)
_THOUGHT_END_LAST = re.compile(rf"{_THOUGHT_END}[ \t\r]*+$", re.IGNORECASE)

_QUOTE = re.compile(r"[ \t]*>")
_BLANK_OR_TICK = " \t\r`"
#: What a tag at the edge of a line may say of what it holds: that it is thought, or somebody else's.
_ASIDE_NAMES = (
    "think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|blockquote|quotes?|q|cite|examples?|details"
)
_ASIDE = rf"(?:<({_ASIDE_NAMES})(?:[ \t][^<>\n]*+)?>|<!--)"
_ASIDE_FIRST = re.compile(rf"[ \t]*+{_ASIDE}", re.IGNORECASE)
_ASIDE_LAST = re.compile(rf"{_ASIDE}[ \t\r]*+$", re.IGNORECASE)
_COMMENT_END = re.compile("-->")
#: A line that goes on with the paragraph of a quote above it: no empty one, no fence, no list.
_GOES_ON = re.compile(r"[ \t]*+(?!>|[-*+\u2022][ \t]|\(?\d{1,3}[.):][ \t]|`{3}|~{3})[^ \t\r\n]")
_MARK = r"[ \t]*+(?:(?:[-*+\u2022]|\(?\d{1,3}[.):])[ \t]++)?"
_LEAD = re.compile(_MARK + r"(?:`{1,3}+(?:json\w{0,2}+)?[ \t]*+)?")
#: Between two parts in one line, and behind the last one.
_BETWEEN = re.compile(r"[ \t,;`\r]*+")
_TAIL = re.compile(r"\.?[ \t\r]*+$")
#: With the language, and what else is said of the block: that it is an example, or whose it is.
_FENCE_FIRST = re.compile(_MARK + r"(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+[^`\n]*+)$")
_FENCE_LAST = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)([\w+-]*+)[ \t\r]*+$")
#: How a fence may end: alone in its line, or right behind what it holds.
_FENCE_ENDS = {
    "`": re.compile(r"(?:^|(?<=[}\]]))[ \t]*+(`{3,}+)[ \t\r]*+$", re.MULTILINE),
    "~": re.compile(r"(?:^|(?<=[}\]]))[ \t]*+(~{3,}+)[ \t\r]*+$", re.MULTILINE),
}
#: Words behind a block's language that say that it is not what is decided.
_NOT_MEANT = re.compile(r"\b(?:examples?|samples?|quotes?|quoted|rejected|refused|hypothetical|not|never)\b")
_JSON = ("json", "jsonl", "jsonc", "json5", "ndjson")

#: Where JSON begins for sure, and where something may that can be mended: other quotes, names without any, notes.
_BEGINNING = re.compile(r"\{\s*[\"}]|\[\s*[\[{\]\"]")
_LAX_BEGINNING = re.compile(r"\{\s*[\"'\u201c\u2018}\w/#]|\[\s*[\[{\]\"/#]")
#: Within prose, which is passed over; also over the ends of lines.
_IN_PROSE = re.compile(r"\{[ \t]*+[\"}]|\[[ \t]*+[\[{\]\"]|[\[{][ \t\r]*+$")
_STRUCTURE = re.compile(r"\\.|[\"\[\]{}]", re.DOTALL)
OPEN, CLOSED = frozenset("[{"), frozenset("]}")


class Rank(IntEnum):
    """Where a part stands. The higher ones decide; what stands in the others is talk about it."""

    LINE = 0
    FENCE = 1
    JSON_FENCE = 2


class Candidate(Value):
    """Something that may be a decision, or several."""

    text: str
    rank: Rank
    whole: bool = True
    """Its brackets match. If not, it goes on to the end of its block."""


class Candidates(Value):
    """All of them, in order."""

    found: tuple[Candidate, ...]
    doubtful: Candidate | None = None
    """What may be one if there is no other: brackets that do not match, and perhaps prose."""
    within_prose: bool = False
    """There is more that looks like JSON, and stands in sentences."""


class BracketSpan(Value):
    """What matches from one bracket on."""

    end: int | None
    """Behind the bracket that closes the first one; None: there is none."""
    in_string: bool
    last_element: int | None
    """Behind the last complete array or object right within the first one."""


def without_thoughts(output: str) -> str:
    """What is said after the thoughts at the beginning; nothing, if they do not end."""
    position = 0
    while (opened := _THOUGHT.match(output, position)) is not None:
        closed = re.compile(rf"</{opened[1]}>", re.IGNORECASE).search(output, opened.end())
        if closed is None:
            return ""
        position = closed.end()
    return output[position:].strip()


def parts(text: str) -> Candidates:
    """The parts of a text that may be decisions."""
    return _Reading(text).parts()


def span(text: str, start: int, stop: int | None = None) -> BracketSpan:
    """What matches from the bracket at `start` on."""
    depth, in_string = 0, False
    last: int | None = None
    for match in _STRUCTURE.finditer(text, start, len(text) if stop is None else stop):
        mark = match[0]
        if mark == '"':
            in_string = not in_string
        elif in_string or mark[0] == "\\":
            continue
        elif mark in OPEN:
            depth += 1
        elif mark in CLOSED:
            depth -= 1
            if depth == 1:
                last = match.end()
            if depth == 0:
                return BracketSpan(match.end(), False, last)
    return BracketSpan(None, in_string, last)


class _Reading:
    """Reads a text once, line by line. What has brackets that match is one line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[Candidate] = []
        self._doubtful: Candidate | None = None
        self._within_prose = False
        self._beginning = _LAX_BEGINNING
        self._passing = True
        """Whether JSON in prose is passed over. Not behind one without an end, or each would be looked for anew."""
        self._line = (0, 0, -1)
        """The line that was found last: from where, up to where at most, and its end."""

    def parts(self) -> Candidates:
        text, position = self._text, 0
        while position < len(text):
            end = self._line_end(position, len(text))
            if _QUOTE.match(text, position, end):
                position = end + 1 if text[position:end].rstrip(_BLANK_OR_TICK)[-1] in CLOSED else self._quoted(end + 1)
            elif (tag := _THOUGHT_END_FIRST.match(text, position, end)) is not None:
                self._found.clear()
                position = tag.end()
            elif (aside := _ASIDE_FIRST.match(text, position, end)) is not None:
                position = self._behind(aside)
            elif (behind := self._row(position, len(text), Rank.LINE)) is not None:
                position = behind
            elif (
                fence := _FENCE_FIRST.match(text, position, end) or _FENCE_LAST.search(text, position, end)
            ) is not None:
                position = self._block(end + 1, fence[1], fence[2].strip().lower())
            elif (aside := _ASIDE_LAST.search(text, position, end)) is not None:
                position = self._behind(aside)
            elif _THOUGHT_END_LAST.search(text, position, end):
                self._found.clear()
                position = end + 1
            else:
                position = self._prose(position, end, len(text))
        return Candidates(tuple(self._found), self._doubtful, self._within_prose)

    def _quoted(self, position: int) -> int:
        """Pass over what still belongs to a quote: the lines up to an empty one, a fence or a list."""
        text = self._text
        while position < len(text):
            end = self._line_end(position, len(text))
            if not _GOES_ON.match(text, position, end):
                break
            position = self._prose(position, end, len(text))
        return position

    def _behind(self, tag: re.Match[str]) -> int:
        """Where what a tag holds is over: at the end, if nothing closes it."""
        closing = re.compile(rf"</{tag[1]}[ \t]*+>", re.IGNORECASE) if tag[1] else _COMMENT_END
        closed = closing.search(self._text, tag.end())
        return len(self._text) if closed is None else closed.end()

    def _fence_end(self, start: int, fence: str) -> tuple[int, int]:
        """Where a block ends that this fence began, and where the text goes on."""
        if start < len(self._text):
            for closing in _FENCE_ENDS[fence[0]].finditer(self._text, start):
                if len(closing[1]) >= len(fence):
                    return closing.start(), closing.end() + 1
        return len(self._text), len(self._text)

    def _block(self, start: int, fence: str, language: str) -> int:
        """Read a fenced block, and say where it ends."""
        text = self._text
        stop, behind = self._fence_end(start, fence)
        language, _, told = language.partition(" ")
        if (language and language not in _JSON) or _NOT_MEANT.search(told):
            return behind
        rank = Rank.JSON_FENCE if language else Rank.FENCE
        position = start
        while position < stop:
            end = self._line_end(position, stop)
            if stop < behind and self._begins_in_string(position, stop):
                # The fence stands in a string: somebody's text, with a block of its own in it.
                whole = span(text, self._lead(position, stop)).end
                # Without an end, nobody knows what of the rest is in the string: none of it counts.
                stop, behind = (stop, len(text)) if whole is None else self._fence_end(whole, fence)
            if _QUOTE.match(text, position, end):
                position = end + 1
            elif (next := self._row(position, stop, rank)) is not None:
                position = next
            else:
                position = self._prose(position, end, stop)
        return behind

    def _lead(self, start: int, stop: int) -> int:
        """Where in a line that begins at `start` its JSON would begin."""
        lead = _LEAD.match(self._text, start, stop)
        return lead.end() if lead else start

    def _begins_in_string(self, start: int, stop: int) -> bool:
        """Whether JSON begins in a line, and has not left a string at `stop`."""
        begun = self._lead(start, stop)
        return bool(_BEGINNING.match(self._text, begun, stop)) and span(self._text, begun, stop).in_string

    def _row(self, start: int, stop: int, rank: Rank) -> int | None:
        """Take the parts that make up a line, and say where it ends; None if there is more in it, or nothing."""
        text, row = self._text, list[Candidate]()
        position = self._lead(start, stop)
        while self._beginning.match(text, position, stop):
            found = span(text, position, stop)
            if found.end is None and self._beginning is _LAX_BEGINNING:
                # It may be prose: only what is JSON for sure counts from here on.
                self._doubtful = self._doubtful or Candidate(text[position:stop], rank, False)
                self._beginning = _BEGINNING
                continue
            if found.end is None:
                self._found += [*row, Candidate(text[position:stop], rank, False)]
                return stop
            row.append(Candidate(text[position : found.end], rank))
            between = _BETWEEN.match(text, found.end, stop)
            position = between.end() if between else found.end
            end = self._line_end(position, stop)
            if _TAIL.match(text, position, end):
                self._found += row
                return end + 1
        if not row:
            return None
        self._within_prose = True
        return self._prose(position, self._line_end(position, stop), stop)

    def _prose(self, position: int, end: int, stop: int) -> int:
        """Pass over the rest of a line, and over what begins in it as JSON. Says where the next line begins."""
        while self._passing and (match := _IN_PROSE.search(self._text, position, end)) is not None:
            found = span(self._text, match.start(), stop)
            self._within_prose = True
            if found.end is None:
                self._passing = False
                break
            position = found.end
            end = self._line_end(position, stop)
        return end + 1

    def _line_end(self, position: int, stop: int) -> int:
        since, limit, end = self._line
        if limit != stop or not since <= position <= end:
            found = self._text.find("\n", position, stop)
            end = stop if found < 0 else found
            self._line = (position, stop, end)
        return end
