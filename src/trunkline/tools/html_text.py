"""A web page as text that is good to read: headings, lists, links, code and tables in Markdown; no scripts, no menus.

    python -m trunkline.tools.html_text ADDRESS < page        # UTF-8; the address is what its links begin from

Other people's HTML is read in a process of its own (by `web_fetch`): some of it keeps a parser busy for good.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from urllib.parse import urljoin, urlsplit

from trunkline.tools.html_tree import BLOCKS, Element, parse

#: How much text there must be in what a page calls its main part, for the rest to be left out.
LEAST_MAIN_CHARS = 200
#: Columns of a table that are shown: more is no table that anybody reads.
MOST_COLUMNS = 50
#: Of an address in a link: what is longer is data, or says who follows it.
LONGEST_ADDRESS = 2000

#: What is no text of the page.
_NEVER = frozenset(
    {"audio", "base", "button", "canvas", "datalist", "embed", "head", "iframe", "input", "link", "map", "meta",
     "noframes", "noscript", "object", "param", "script", "select", "source", "style", "svg", "template", "textarea",
     "title", "track", "video"}
)  # fmt: skip
#: What stands around it.
_AROUND = frozenset({"nav", "aside", "footer"})
_ROLES_AROUND = frozenset({"navigation", "search", "contentinfo", "complementary", "menu", "menubar", "toolbar"})
_HIDDEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
#: Signs that are links to the very heading that they stand at.
_ANCHORS = frozenset({"", "#", "¶", "§", "🔗"})
_LANGUAGE = re.compile(r"(?:^|\s)(?:language-|lang-|highlight-source-|brush:\s*)([A-Za-z0-9_+#-]{1,20})")
_BLANKS = re.compile(r"[ \t\r\n\f\v\xa0]+")
_MARKS = {"b": "**", "strong": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_HEADING = re.compile(r"h([1-6])")
#: Controls, which are nothing in a text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def readable(html: str, address: str) -> tuple[str, str]:
    """A page's title, and its text. Links lead from `address`."""
    root = parse(html)
    title = next((_line(element.text()) for element in root.walk() if element.tag == "title"), "")
    base = next((each.attributes.get("href", "") for each in root.walk() if each.tag == "base"), "")
    writer = _Writer(urljoin(address, base) if base else address)
    main = _main(root)
    text = ""
    if main is not None:
        text = writer.page(main, _is_menu)
    if len(text) < LEAST_MAIN_CHARS:
        # A page that calls everything a menu, or does not end one, is better read with it than not at all.
        text = writer.page(root, _is_around) or writer.page(root, _is_nothing) or text
    return title, text


def _main(root: Element) -> Element | None:
    """What the page says is its main part: the longest, where there are several."""
    found = [each for each in root.walk() if each.tag == "main" or each.attributes.get("role") == "main"]
    articles = [each for each in root.walk() if each.tag == "article"]
    if not found and len(articles) == 1:
        found = articles
    return max(found, key=lambda element: len(element.text()), default=None)


def _is_nothing(element: Element) -> bool:
    return element.tag in _NEVER


def _is_menu(element: Element) -> bool:
    about = element.attributes
    return (
        element.tag in _NEVER
        or element.tag == "nav"
        or about.get("role") in ("navigation", "search")
        or "hidden" in about
        or about.get("aria-hidden") == "true"
        or _HIDDEN.search(about.get("style", "")) is not None
    )


def _is_around(element: Element) -> bool:
    return _is_menu(element) or element.tag in _AROUND or element.attributes.get("role") in _ROLES_AROUND


class _Writer:
    """Writes elements down. A block is a piece of text that stands apart from those around it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._skips: Callable[[Element], bool] = _is_nothing

    def page(self, root: Element, skips: Callable[[Element], bool]) -> str:
        self._skips = skips
        return _CONTROLS.sub("", "\n\n".join(self._blocks(root))).strip()

    def _blocks(self, element: Element) -> list[str]:
        blocks: list[str] = []
        line: list[str] = []

        def end_line() -> None:
            if text := _tidy("".join(line)):
                blocks.append(text)
            line.clear()

        for child in element.children:
            if isinstance(child, str):
                line.append(_BLANKS.sub(" ", child))
            elif self._skips(child):
                continue
            elif child.tag in BLOCKS:
                end_line()
                blocks += self._block(child)
            elif child.has_blocks and child.tag != "a":
                end_line()
                blocks += self._blocks(child)
            else:
                line.append(self._inline(child))
        end_line()
        return blocks

    def _block(self, element: Element) -> list[str]:
        tag = element.tag
        if heading := _HEADING.fullmatch(tag):
            text = self._line_of(element)
            return [f"{'#' * int(heading[1])} {text}"] if text else []
        if tag in _LISTS:
            return _some(self._list(element))
        if tag == "pre":
            return _some(_fenced(element))
        if tag == "blockquote":
            inner = "\n\n".join(self._blocks(element))
            return _some("\n".join(f"> {line}".rstrip() for line in inner.split("\n")) if inner else "")
        if tag == "table":
            return self._table(element)
        if tag == "dd":
            return _some(_indented(": ", "\n\n".join(self._blocks(element))))
        if tag == "hr":
            return ["---"]
        return self._blocks(element)

    def _list(self, element: Element) -> str:
        start = element.attributes.get("start", "")
        number = int(start) if start.isascii() and start.isdecimal() and len(start) < 7 else 1
        items = []
        for child in element.children:
            # (A list right in a list is what many pages have for one in its last entry.)
            if isinstance(child, str) or self._skips(child):
                continue
            blocks = self._block(child) if child.tag in _LISTS else self._blocks(child)
            if not blocks:
                continue
            if child.tag in _LISTS:
                items.append(_indented("  ", "\n".join(blocks)))
                continue
            text = blocks[0]
            for block in blocks[1:]:
                text += ("\n" if block.startswith(("- ", "1. ")) else "\n\n") + block
            items.append(_indented(f"{number}. " if element.tag == "ol" else "- ", text))
            number += 1
        return "\n".join(items)

    def _table(self, table: Element) -> list[str]:
        rows = [[cell for cell in row.children if isinstance(cell, Element)] for row in _rows(table)]
        rows = [[cell for cell in row if cell.tag in ("td", "th")] for row in rows]
        if self._is_layout(table, rows):
            return self._blocks(table)
        lines = []
        for row in rows:
            cells = []
            for cell in row[:MOST_COLUMNS]:
                text = _line(" ".join(self._blocks(cell))).replace("|", "\\|")
                cells += [text, *[""] * (_span(cell) - 1)]
            if any(cells):
                lines.append(cells[:MOST_COLUMNS])
        width = max(map(len, lines), default=0)
        if not width:
            return []
        shown = ["| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |" for cells in lines]
        title = [self._line_of(each) for each in table.children if isinstance(each, Element) and each.tag == "caption"]
        return [*filter(None, title), "\n".join([shown[0], "|" + " --- |" * width, *shown[1:]])]

    def _is_layout(self, table: Element, rows: list[list[Element]]) -> bool:
        """Whether it only puts things beside each other: then they are read one after the other."""
        if table.attributes.get("role") in ("presentation", "none") or max(map(len, rows), default=0) < 2:
            return True
        inside = (each.tag for row in rows for cell in row for each in cell.walk())
        return any(tag in ("table", "pre", "h1", "h2", "h3") for tag in inside)

    def _line_of(self, element: Element) -> str:
        return _line("".join(self._pieces(element)))

    def _pieces(self, element: Element) -> Iterator[str]:
        for child in element.children:
            if isinstance(child, str):
                yield _BLANKS.sub(" ", child)
            elif not self._skips(child):
                yield self._inline(child)

    def _inline(self, element: Element) -> str:
        tag = element.tag
        if tag == "br":
            return "\n"
        if tag == "img":
            text = _line(element.attributes.get("alt", ""))
            address = self._leading_to(element.attributes.get("src", ""))
            return f"![{text}]({address})" if text and address else text
        if tag in _CODE:
            text = _line(element.text())
            mark = "``" if "`" in text else "`"
            return f"{mark}{text}{mark}" if text else ""
        inner = "".join(self._pieces(element))
        if tag == "a":
            return self._link(element, inner)
        mark = _MARKS.get(tag, "")
        # Marks stand at the words: `** so**` would be no mark.
        words = inner.strip()
        if not mark or not words or "\n" in words:
            return f" {inner} " if tag in BLOCKS else inner
        before, after = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
        return f"{before}{mark}{words}{mark}{after}"

    def _link(self, element: Element, inner: str) -> str:
        text = _line(inner)
        address = self._leading_to(element.attributes.get("href", ""))
        if text in _ANCHORS:
            return ""
        return f"[{text}]({address})" if address else inner

    def _leading_to(self, reference: str) -> str:
        """A whole address; nothing for what leads nowhere that could be fetched."""
        reference = _BLANKS.sub("", reference)
        if not reference or reference.startswith("#") or len(reference) > LONGEST_ADDRESS:
            return ""
        try:
            address = urljoin(self._address, reference)
            if urlsplit(address).scheme not in ("http", "https", "mailto"):
                return ""
        except ValueError:
            return ""
        return address.replace("(", "%28").replace(")", "%29")


def _rows(table: Element) -> Iterator[Element]:
    for child in table.children:
        if isinstance(child, Element):
            if child.tag == "tr":
                yield child
            elif child.tag in ("thead", "tbody", "tfoot"):
                yield from (each for each in child.children if isinstance(each, Element) and each.tag == "tr")


def _span(cell: Element) -> int:
    """How many columns a cell has, as it says itself."""
    said = cell.attributes.get("colspan", "")
    if not (said.isascii() and said.isdecimal()):
        return 1
    # (No number is read that is too long to be one.)
    return min(max(int(said), 1), MOST_COLUMNS) if len(said) <= len(str(MOST_COLUMNS)) else MOST_COLUMNS


def _fenced(element: Element) -> str:
    code = element.text().replace("\r\n", "\n").strip("\n").rstrip()
    if not code:
        return ""
    classes = " ".join(each.attributes.get("class", "") for each in element.walk())
    language = _LANGUAGE.search(classes)
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language[1] if language else ''}\n{code}\n{fence}"


def _indented(mark: str, text: str) -> str:
    """A text behind a mark, its other lines below its first."""
    first, *rest = text.split("\n")
    return "\n".join([mark + first, *(" " * len(mark) + line if line else "" for line in rest)]) if text else ""


def _some(text: str) -> list[str]:
    return [text] if text else []


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


def _tidy(text: str) -> str:
    """Lines without blanks around them, and no more than one empty one."""
    lines = [re.sub(" +", " ", line).strip() for line in text.split("\n")]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip()


def main(address: str) -> int:
    """Print the title of the page on standard input, a line feed, and its text."""
    from trunkline.tools.helper import limit_memory

    limit_memory()
    title, text = readable(sys.stdin.buffer.read().decode("utf-8", "replace"), address)
    sys.stdout.buffer.write(f"{title}\n{text}".encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
