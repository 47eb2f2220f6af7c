"""Markdown that arrives in pieces: what of it is finished, and how it looks."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from rich import markdown as rich_markdown
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import MarkdownElement
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

#: Colours from the terminal's own palette, on its own background.
CODE_THEME = "ansi_dark"

# What `rich` would leave out is text here: HTML, and the addresses that links refer to, which come when the links have
# long been shown. Images it would put into the wrong place.
_PARSER = (
    MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["html_block", "reference"])
)
_PARSER.disable(["html_inline", "image"])


class MarkdownStream:
    """The text so far that is not finished. Cut at blocks: paragraphs, lists, tables, fenced code."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, text: str) -> None:
        """Some more."""
        self.rest += text

    def finished(self) -> list[str]:
        """Take the blocks that no further text can change."""
        whole_lines, feed, _ = self.rest.rpartition("\n")
        if not feed:
            return []
        starts = block_starts(whole_lines)
        if len(starts) < 2:
            return []
        lines = self.rest.split("\n")
        self.rest = "\n".join(lines[starts[-1] :])
        return ["\n".join(lines[start:end]) for start, end in pairwise(starts)]

    def close(self) -> list[str]:
        """Take everything: there is no more to come."""
        rest, self.rest = self.rest, ""
        lines = rest.split("\n")
        starts = block_starts(rest)
        ends = [*starts[1:], len(lines)]
        blocks = ["\n".join(lines[start:end]) for start, end in zip(starts, ends, strict=True)]
        return blocks or ([rest] if rest.strip() else [])


def block_starts(text: str) -> list[int]:
    """The numbers of the lines where the outermost blocks of a text begin."""
    return [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.nesting >= 0 and token.map]


def is_table(text: str) -> bool:
    """Whether a block is a table, whose every row can change how wide the others are."""
    return any(token.type == "table_open" for token in _PARSER.parse(text))


class _Heading(rich_markdown.Heading):
    LEVEL_ALIGN: ClassVar = {}


class _Code(rich_markdown.CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Padding(code(str(self.text).rstrip("\n"), self.lexer_name), (0, 0, 0, 2))


class _Rule(rich_markdown.HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr")


class _Item(rich_markdown.ListItem):
    """`1.` and not `1`: so that it can be told from a number in the text. `rich` leaves out those without words."""

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._labelled(console, options, " • ", "markdown.item.bullet")

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        label = f" {str(number).rjust(len(str(last_number - 1)))}. "
        yield from self._labelled(console, options, label, "markdown.item.number")

    def _labelled(self, console: Console, options: ConsoleOptions, label: str, look: str) -> RenderResult:
        lines = console.render_lines(self.elements, options.update(width=options.max_width - len(label)), pad=False)
        style = console.get_style(look)
        # One without words is an item all the same.
        for index, line in enumerate(lines or [[]]):
            yield Segment(" " * len(label) if index else label, style)
            yield from line
            yield Segment.line()


class Markdown(rich_markdown.Markdown):
    """Markdown as it looks in a conversation: headings on the left, code without a background, addresses shown."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **rich_markdown.Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
        "list_item_open": _Item,
    }

    def __init__(self, markup: str) -> None:
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.markup = markup
        self.parsed = _PARSER.parse(markup)
        for token in self.parsed:
            for child in token.children or ():
                # A model that ends a line means it: verses, addresses, short lists.
                if child.type == "softbreak":
                    child.type = "hardbreak"


def formatted(text: str) -> RenderableType:
    """A text as Markdown; as it is, where nothing would be seen of it: `42.` is a list with nothing in it, `#` a
    heading."""
    shown = Markdown(text)
    return shown if any(token.content.strip() or token.type == "hr" for token in shown.parsed) else Text(text)


def code(text: str, language: str) -> Syntax:
    """Code in colours, broken where the terminal ends."""
    return Syntax(text, language or "text", theme=CODE_THEME, background_color="default", word_wrap=True)
