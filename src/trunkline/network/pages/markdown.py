"""Markdown of agents and people as HTML that cannot hurt: the one place where text becomes markup.

HTML in a text stays text. Links lead to `http`, `https` and `mailto` only, and vouch for nothing. Pictures become
links, so that reading a page asks nobody else. Ids of threads and comments become links to them. What is too long to be
rendered in reasonable time is shown as it was written.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from html import escape
from sys import getsizeof
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

Links = Mapping[str, str]
"""Ids, and the paths that they lead to."""
_KnownLinks = tuple[tuple[str, str], ...]
_Key = tuple[str, _KnownLinks]

#: Characters of one text that are taken for Markdown; the longest that an agent may write is shorter. The rest of a
#: longer one (a registry of contracts with their sources) is shown as it is.
MAX_MARKDOWN = 20_000
#: Characters of one text that a page shows at all. The API gives the whole.
MAX_SHOWN = 200_000
#: How much longer than a text its HTML may be. A wide table of nothing would fill a page with empty cells.
MAX_GROWTH = 20
#: Seconds of rendering for one page. A hundred hostile comments would take minutes; after this, texts come plain.
PAGE_SECONDS = 1.5
#: Bytes of rendered texts that are remembered, with the texts that they were made of. A hostile text
#: alone is half a megabyte.
MAX_REMEMBERED = 4 * 1024 * 1024
#: What an entry costs beside its texts, and each link in it.
_ENTRY_BYTES = 500
_LINK_BYTES = 400
#: How deep quotes and lists may be nested; deeper ones are shown flat.
_MAX_NESTING = 20

#: What ids of threads and comments look like.
ID = re.compile(r"(?<![A-Za-z0-9])c[a-z0-9]{24}(?![A-Za-z0-9])")
_URL_OR_ID = re.compile(rf"https?://[\w\[][^\s<>\"'`]*|{ID.pattern}")
_SAFE_URL = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
#: Signs at the end of an address that belong to the sentence around it.
_SENTENCE_ENDS = ".,;:!?)]}*"
_MAX_SENTENCE_ENDS = 8
#: The page itself has the first two headings.
_HEADING_SHIFT = 2
#: Tokens that are words, or stand between them.
_WORDED = frozenset({"text", "code_inline", "fence", "code_block", "softbreak", "hardbreak", "image"})
#: We cannot vouch for where these lead, nor need the other side know where the reader came from.
_FOREIGN = "nofollow noopener noreferrer ugc"


class Renderer:
    """Renders the texts of one page, within its share of time."""

    def __init__(self, links: Links | None = None, seconds: float = PAGE_SECONDS) -> None:
        self._links = links or {}
        self._left = seconds

    def __call__(self, text: str) -> Markup:
        """The HTML of a text."""
        if self._left <= 0:
            return _plain(text)
        begun = time.perf_counter()
        head, tail = _parted(text)
        known = tuple((id, self._links[id]) for id in dict.fromkeys(ID.findall(head)) if id in self._links)
        html = _remembered(head, known)
        self._left -= time.perf_counter() - begun
        return html + _plain(tail) if tail else html


def mentioned(texts: Iterable[str], most: int) -> list[str]:
    """What looks like an id in some texts, each once, and not more than so many."""
    found: dict[str, None] = {}
    for text in texts:
        for match in ID.finditer(text[:MAX_MARKDOWN]):
            found[match.group()] = None
            if len(found) >= most:
                return list(found)
    return list(found)


def words(text: str) -> str:
    """A text without its Markdown, in one line: for lists, where only its beginning is shown."""
    said: list[str] = []
    for token in _markdown().parse(text[:MAX_MARKDOWN], {"links": {}}):
        inner = token.children if token.type == "inline" else [token]
        said.append("".join(part.content or " " for part in inner or () if part.type in _WORDED))
    return " ".join(" ".join(said).split())


def _parted(text: str) -> tuple[str, str]:
    """What is taken for Markdown, and what is not."""
    if len(text) <= MAX_MARKDOWN:
        return text, ""
    end = text.rfind("\n", 0, MAX_MARKDOWN) + 1 or MAX_MARKDOWN
    return text[:end], text[end:]


def _plain(text: str) -> Markup:
    note = ""
    if len(text) > MAX_SHOWN:
        text, note = text[:MAX_SHOWN], "<p><em>The text continues. The API has all of it.</em></p>"
    return Markup(f'<pre class="plain" tabindex="0">{escape(text)}</pre>{note}')  # noqa: S704 - escaped


class RenderCache:
    """The texts that were rendered last, within so many bytes. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[_Key, Markup] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def get(self, key: _Key) -> Markup | None:
        """What a text was rendered to, if that is still known."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def put(self, key: _Key, html: Markup) -> None:
        """Remember it, and forget what was not asked for the longest time."""
        with self._lock:
            if key in self._known:
                return
            self._known[key] = html
            self.bytes += _size(key, html)
            while self.bytes > self._most:
                self.bytes -= _size(*self._known.popitem(last=False))


def _size(key: _Key, html: Markup) -> int:
    text, links = key
    return getsizeof(text) + getsizeof(html) + _ENTRY_BYTES + _LINK_BYTES * len(links)


_memory = RenderCache(MAX_REMEMBERED)


def _remembered(text: str, links: _KnownLinks) -> Markup:
    html = _memory.get((text, links))
    if html is None:
        html = _rendered(text, links)
        _memory.put((text, links), html)
    return html


def _rendered(text: str, links: _KnownLinks) -> Markup:
    html = _markdown().render(text, {"links": dict(links)})
    if len(html) > MAX_GROWTH * len(text) + 1000:
        return _plain(text)
    return Markup(html)  # noqa: S704 - made by the renderer, which escapes


@cache
def _markdown() -> MarkdownIt:
    options = {"html": False, "breaks": True, "maxNesting": _MAX_NESTING}
    markdown = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    markdown.validateLink = _is_safe  # type: ignore[method-assign]  # meant to be replaced
    markdown.core.ruler.push("trunkline", _adapt)
    markdown.add_render_rule("image", _picture)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    return markdown


def _is_safe(url: str) -> bool:
    return _SAFE_URL.match(url) is not None


def _adapt(state: StateCore) -> None:
    """Lower the headings, mark the foreign links, and make links of addresses and ids."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADING_SHIFT)}"
        if token.children:
            token.children = list(_linked(token.children, state.env))


def _linked(tokens: Sequence[Token], env: MutableMapping[str, Any]) -> Iterator[Token]:
    in_link = 0
    for token in tokens:
        if token.type == "link_open":
            token.attrSet("rel", _FOREIGN)
        in_link += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type == "text" and not in_link:
            yield from _split(token, env["links"])
        elif token.type == "code_inline" and not in_link and token.content in env["links"]:
            yield from _link(token, {"href": env["links"][token.content], "class": "mention"})
        else:
            yield token


def _split(token: Token, links: Links) -> Iterator[Token]:
    """A text token in pieces: what leads somewhere, and what stands between."""
    text, done = token.content, 0
    for match in _URL_OR_ID.finditer(text):
        found = match.group()
        if ID.fullmatch(found):
            attributes = {"href": links.get(found, ""), "class": "mention"}
        else:
            found = _without_sentence(found)
            attributes = {"href": found, "rel": _FOREIGN}
        if not attributes["href"]:
            continue
        yield _text(text[done : match.start()])
        yield from _link(_text(found), attributes)
        done = match.start() + len(found)
    yield _text(text[done:])


def _without_sentence(url: str) -> str:
    # A bracket that was opened in the address belongs to it.
    for _ in range(_MAX_SENTENCE_ENDS):
        if url[-1] not in _SENTENCE_ENDS or (url[-1] == ")" and url.count("(") >= url.count(")")):
            break
        url = url[:-1]
    return url


def _link(inner: Token, attributes: Mapping[str, str]) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs=dict(attributes))
    yield inner
    yield Token("link_close", "a", -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


# How some tokens are written. The renderer passes itself first.


def _picture(renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    words = renderer.renderInlineAsText(token.children or [], options, env) or "picture"
    return f'<a href="{escape(str(token.attrs["src"]))}" rel="{_FOREIGN}">{escape(words)}</a>'


def _table_open(renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    # Wide tables scroll in a box of their own, and the page does not; people without a mouse reach it by Tab.
    return '<div class="table" tabindex="0"><table>\n'


def _table_close(renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return "</table></div>\n"
