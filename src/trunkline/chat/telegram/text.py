"""Markdown as agents write it, made into what Telegram shows: a plain text, and entities that say what is bold in it.

Text is only ever taken away (the asterisks, the fences), never added. So whatever fits into a message before still fits
after it; what is not understood stays as it was written; and an emphasis that is still open, in the middle of an
answer, shows its asterisks until it is closed.

Understood are fenced code, inline code, bold, italic, struck text, links, headings (bold) and tables (shown as code, so
that their columns stay in line). Emphasis ends with its line: a stray asterisk spoils no more than that.
"""

from __future__ import annotations

import re
from typing import Any

from trunkline.base.values import Value
from trunkline.chat.telegram.inline import Span, beside, inline

#: Telegram drops the ones after these.
MAX_ENTITIES = 100

#: What Telegram calls a language: the first word after a fence, if it looks like one.
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`\n]*")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<title>\S.*?)(?:[ \t]+#+)?[ \t]*")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
_RULER = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")


class Rendered(Value):
    """A text to send, and its `entities` in the form of the Bot API."""

    text: str
    entities: tuple[dict[str, Any], ...] = ()


def units(text: str) -> int:
    """How long a text is in UTF-16 code units, which is how Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def carried(text: str) -> str:
    """The text without halves of characters, which no UTF-8 can carry and Telegram refuses."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def render(markdown: str) -> Rendered:
    """The text and entities of a message. One that would show nothing at all is left as it is written."""
    page = _Page()
    lines = carried(markdown).split("\n")
    position = 0
    while position < len(lines):
        position = page.block(lines, position)
    rendered = page.finished()
    return rendered if rendered.text.strip() else Rendered(carried(markdown))


class _Page:
    """What was rendered so far. A block is a text with spans in it; blocks are separated by a line feed."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._size = 0
        self._entities: list[dict[str, Any]] = []

    def block(self, lines: list[str], position: int) -> int:
        """Take the block that begins with this line, and tell where the next one begins."""
        line = lines[position]
        if fence := _FENCE.fullmatch(line):
            return self._code(lines, position, fence)
        if _ROW.fullmatch(line) and position + 1 < len(lines) and _RULER.fullmatch(lines[position + 1]):
            return self._table(lines, position)
        if heading := _HEADING.fullmatch(line):
            text, spans = inline(heading["title"])
            code = [span for span in spans if span.type == "code"]
            kept = [span for span in spans if span.type != "bold"]
            self._add(text, [*beside(Span("bold", 0, len(text)), code), *kept])
        else:
            self._add(*inline(line))
        return position + 1

    def finished(self) -> Rendered:
        # What contains comes before what it contains.
        ordered = sorted(self._entities, key=lambda entity: (entity["offset"], -entity["length"]))
        return Rendered("\n".join(self._blocks), tuple(ordered[:MAX_ENTITIES]))

    def _code(self, lines: list[str], position: int, fence: re.Match[str]) -> int:
        mark, indent = fence["fence"], len(fence["indent"])
        closing = re.compile(rf"[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
        end = position + 1
        # An open one goes on to the end: more of it is being written.
        while end < len(lines) and not closing.fullmatch(lines[end]):
            end += 1
        body = [_without_indent(line, indent) for line in lines[position + 1 : end]]
        self._pre("\n".join(body), fence["language"])
        return end + 1

    def _table(self, lines: list[str], position: int) -> int:
        end = position
        while end < len(lines) and _ROW.fullmatch(lines[end]):
            end += 1
        self._pre("\n".join(lines[position:end]), "")
        return end

    def _pre(self, text: str, language: str) -> None:
        if text.strip():
            more = {"language": language} if language else {}
            self._add(text, [Span("pre", 0, len(text), more)])

    def _add(self, text: str, spans: list[Span]) -> None:
        if self._blocks:
            self._size += 1
        for span in spans:
            offset = self._size + units(text[: span.start])
            length = units(text[span.start : span.end])
            if length:
                self._entities.append({"type": span.type, "offset": offset, "length": length, **span.more})
        self._blocks.append(text)
        self._size += units(text)


def _without_indent(line: str, indent: int) -> str:
    """The line without as much space as its fence has before it: code in a list is indented with its item."""
    return line[min(indent, len(line) - len(line.lstrip(" \t"))) :]
