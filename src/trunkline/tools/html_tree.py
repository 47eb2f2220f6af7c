"""HTML as a tree, however broken it is: what pages have in common with it is often little.

It is made for reading and not for showing: elements are closed where their neighbours say that they end, nothing is
ever refused, and what is nested deeper than anybody reads is flattened.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import TypeAlias

#: Elements inside each other. Whoever walks the tree calls itself for each; real pages have some thirty.
DEEPEST = 120

#: They have no end, and nothing in them.
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track",
     "wbr"}
)  # fmt: skip
#: What stands by itself in a page, and not in a line.
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl",
     "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6",
     "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre",
     "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)  # fmt: skip
_CELLS = frozenset({"td", "th"})
_ROWS = _CELLS | {"tr"}
_GROUPS = _ROWS | {"thead", "tbody", "tfoot"}
#: What a beginning ends, if that is open; and what it does not look behind.
_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu", "table"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl", "table"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl", "table"})),
    "td": (_CELLS, frozenset({"tr", "table"})),
    "th": (_CELLS, frozenset({"tr", "table"})),
    "tr": (_ROWS, frozenset({"table"})),
    "thead": (_GROUPS, frozenset({"table"})),
    "tbody": (_GROUPS, frozenset({"table"})),
    "tfoot": (_GROUPS, frozenset({"table"})),
    "option": (frozenset({"option"}), frozenset({"select", "table"})),
}
_PARAGRAPH = frozenset({"p"})
_NOT_PARAGRAPHS = BLOCKS - _PARAGRAPH


class Element:
    """One element, with what is in it: others, and text."""

    __slots__ = ("attributes", "children", "has_blocks", "tag")

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Piece] = []
        self.has_blocks = False
        """Whether there is something in it, at any depth, that does not fit into a line."""

    def walk(self) -> Iterator[Element]:
        """This element and all in it, each before those in it."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += [child for child in reversed(element.children) if isinstance(child, Element)]

    def text(self) -> str:
        """All the text in it, as it stands there."""
        pieces: list[str] = []
        waiting: list[Piece] = [self]
        while waiting:
            piece = waiting.pop()
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                waiting += reversed(piece.children)
        return "".join(pieces)


#: What an element consists of.
Piece: TypeAlias = "Element | str"


def parse(html: str) -> Element:
    """The tree of a page. Its root has no tag."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_before(tag)
        # The first of two with one name counts, as in browsers.
        element = Element(tag, {name: value or "" for name, value in reversed(attrs)})
        self._open[-1].children.append(element)
        if tag in BLOCKS:
            for above in reversed(self._open):
                if above.has_blocks:
                    break
                above.has_blocks = True
        if tag not in _VOID and len(self._open) < DEEPEST:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # The slash means nothing in HTML, except where the element is a drawing's.
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "br":
            self.handle_starttag("br", [])
            return
        for place in range(len(self._open) - 1, 0, -1):
            open_tag = self._open[place].tag
            if open_tag == tag:
                del self._open[place:]
                return
            # The end of something in a line does not end what the line stands in.
            if tag not in BLOCKS and open_tag in BLOCKS:
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def _end_before(self, tag: str) -> None:
        if tag in _ENDS:
            self._end(*_ENDS[tag])
        elif tag in BLOCKS:
            self._end(_PARAGRAPH, _NOT_PARAGRAPHS)

    def _end(self, ended: frozenset[str], boundary: frozenset[str]) -> None:
        found = 0
        for place in range(len(self._open) - 1, 0, -1):
            tag = self._open[place].tag
            if tag in ended:
                found = place
            elif tag in boundary:
                break
        if found:
            del self._open[found:]
