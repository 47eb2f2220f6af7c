"""One line of Markdown: what is shown of it, and which parts are bold, code or a link.

The rules for emphasis are those of CommonMark within one line, with two exceptions. Runs of asterisks pair up if they
are equally long or one is of three. And two asterisks need no space or punctuation around them, so that something is
bold also in scripts without spaces. `snake_case_name` and `2 * 3 * 4` stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from trunkline.base.values import Value

SpanType = Literal["bold", "italic", "strikethrough", "code", "pre", "text_link"]

#: Where Telegram follows a link to. Others, such as a path, stay as they are written: the address is what matters.
_ADDRESS = r"<?(?P<url>(?:https?|tg)://[^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*+)>?"
_TOKEN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    rf"|!?\[(?P<label>[^\[\]]*+)\]\({_ADDRESS}(?:[ \t]+\"[^\"]*+\")?\)"
    r"|<(?P<auto>https?://[^\s<>]++)>"
    # Left alone, as it may hold underscores; but not with the asterisks of `**https://example.org**`.
    r"|(?P<bare>https?://[^\s<>*`\[\]]++)"
    r"|(?P<run>\*+|_+|~+)"
)

#: The longest run that is emphasis: bold and italic at once. A longer one is a ruler, or a masked password.
_LONGEST_RUN = 3
_KINDS: Mapping[tuple[str, int], SpanType] = {
    ("*", 1): "italic",
    ("_", 1): "italic",
    ("*", 2): "bold",
    ("_", 2): "bold",
    ("~", 2): "strikethrough",
}


class Span(Value):
    """A part of a text that is shown in a special way. `more` is what the Bot API wants to know besides."""

    type: SpanType
    start: int
    end: int
    more: Mapping[str, Any] = {}


class _Piece:
    """A part of the line as it is shown, with spans of its own."""

    __slots__ = ("spans", "start", "text")

    def __init__(self, text: str, spans: Sequence[Span] = ()) -> None:
        self.text = text
        self.spans = spans
        self.start = 0


class _Run(_Piece):
    """Delimiters. Those that emphasis uses up are taken from `text`; the others are shown."""

    __slots__ = ("closes", "opens")

    def __init__(self, text: str, before: str, after: str) -> None:
        super().__init__(text)
        left = _flanks(after, before)
        right = _flanks(before, after)
        if text[0] == "_":
            # Within a word it is a part of a name.
            self.opens = left and (not right or _is_punctuation(before))
            self.closes = right and (not left or _is_punctuation(after))
        elif len(text) > 1:
            self.opens, self.closes = not after.isspace(), not before.isspace()
        else:
            self.opens, self.closes = left, right


def inline(line: str) -> tuple[str, list[Span]]:
    """What is shown of a line, and its spans. They nest; code is in nothing, and nothing is in code."""
    pieces = list(_pieces(line))
    pairs = _pairs([piece for piece in pieces if isinstance(piece, _Run)])
    position = 0
    spans: list[Span] = []
    for piece in pieces:
        piece.start = position
        spans += [span.replace(start=span.start + position, end=span.end + position) for span in piece.spans]
        position += len(piece.text)
    code = [span for span in spans if span.type == "code"]
    for kind, opener, closer in pairs:
        # What an opener has left stands before the emphasis, and what a closer has left, behind it.
        spans += beside(Span(kind, opener.start + len(opener.text), closer.start), code)
    return "".join(piece.text for piece in pieces), spans


def beside(span: Span, code: Sequence[Span]) -> Iterator[Span]:
    """The parts of a span that are not code: no entity may contain that."""
    start = span.start
    for hole in code:
        if span.start <= hole.start < span.end:
            if hole.start > start:
                yield span.replace(start=start, end=hole.start)
            start = hole.end
    if span.end > start:
        yield span.replace(start=start)


def _pieces(line: str) -> Iterator[_Piece]:
    position = 0
    while found := _TOKEN.search(line, position):
        if found.start() > position:
            yield _Piece(line[position : found.start()])
        position = found.end()
        if found["ticks"]:
            piece, position = _code(line, found)
            yield piece
        elif found["label"] is not None:
            yield _link(found["label"], found["url"])
        elif found["run"]:
            yield _run(line, found)
        else:
            yield _Piece(found["escaped"] or found["auto"] or found["bare"])
    if position < len(line):
        yield _Piece(line[position:])


def _code(line: str, opening: re.Match[str]) -> tuple[_Piece, int]:
    """The code between two equal runs of ticks, and where it ends. Without a second one the ticks are text."""
    ticks = opening["ticks"]
    closing = re.compile(rf"(?<!`){ticks}(?!`)").search(line, opening.end())
    if closing is None:
        return _Piece(ticks), opening.end()
    code = line[opening.end() : closing.start()]
    # The spaces that keep ticks in the code apart from those around it.
    if code.startswith(" ") and code.endswith(" ") and code.strip():
        code = code[1:-1]
    return _Piece(code, [Span("code", 0, len(code))]), closing.end()


def _link(label: str, url: str) -> _Piece:
    text, spans = inline(label)
    if not text.strip():
        return _Piece(url)
    # A link may be bold in part, but cannot be code.
    kept = [span for span in spans if span.type != "code"]
    return _Piece(text, [Span("text_link", 0, len(text), {"url": url}), *kept])


def _run(line: str, found: re.Match[str]) -> _Piece:
    run = found["run"]
    if len(run) > _LONGEST_RUN or (run[0] == "~" and len(run) != 2):
        return _Piece(run)
    before = line[found.start() - 1] if found.start() else " "
    after = line[found.end()] if found.end() < len(line) else " "
    return _Run(run, before, after)


def _pairs(runs: Sequence[_Run]) -> list[tuple[SpanType, _Run, _Run]]:
    """Which runs open and close what. Uses up their delimiters.

    Each search goes down a stack, finds what it looks for, and takes everything above away: the whole is linear.
    """
    pairs: list[tuple[SpanType, _Run, _Run]] = []
    stack: list[_Run] = []
    waiting: Counter[str] = Counter()
    for run in runs:
        while run.closes and run.text and any(waiting[mark] for mark in _partners(run.text)):
            while stack[-1].text not in _partners(run.text):
                waiting[stack.pop().text] -= 1
            opener = stack.pop()
            waiting[opener.text] -= 1
            used = min(len(opener.text), len(run.text), 2)
            kind = _KINDS[run.text[0], used]
            opener.text, run.text = opener.text[used:], run.text[used:]
            pairs.append((kind, opener, run))
            if opener.text:
                stack.append(opener)
                waiting[opener.text] += 1
        if run.opens and run.text:
            stack.append(run)
            waiting[run.text] += 1
    return pairs


def _partners(mark: str) -> tuple[str, ...]:
    """The runs that can open what this one closes."""
    if len(mark) == _LONGEST_RUN:
        return mark, mark[:1], mark[:2]
    return mark, mark[0] * _LONGEST_RUN


def _flanks(near: str, far: str) -> bool:
    """Whether a delimiter leans on the character `near` it, as CommonMark has it."""
    return not near.isspace() and (not _is_punctuation(near) or far.isspace() or _is_punctuation(far))


def _is_punctuation(char: str) -> bool:
    return not char.isalnum() and not char.isspace()
