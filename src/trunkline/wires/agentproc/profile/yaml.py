"""A profile's text as a tree of values that know their lines. Nothing is guessed: a scalar keeps the text as written.

YAML's own composer is not used. Its fast form ends the process when a text is nested deeply enough, and neither form
minds a key that comes twice. This one builds the tree of the parser's events, with a limit for each thing that grows:
bytes, levels, and the text that aliases stand for.
"""

from __future__ import annotations

from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.core.faults import ConfigError

#: Larger than any profile that a person writes, small enough to read at once.
MAX_BYTES = 1024 * 1024
#: A profile has three; what we do not read may have some more.
MAX_DEPTH = 32

QUOTE_PLACEHOLDERS = 'A text that begins with a placeholder needs quotes, as in "{{MESSAGE}}".'

Kind = Literal["text", "bool", "number", "null", "other"]

_TAG = "tag:yaml.org,2002:"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys((f"{_TAG}{name}" for name in ("str", "timestamp", "value", "merge")), "text"),
    **dict.fromkeys((f"{_TAG}{name}" for name in ("int", "float")), "number"),
    f"{_TAG}bool": "bool",
    f"{_TAG}null": "null",
}
_UNTAGGED = (None, "!")


class Node(Value):
    """Base of the three kinds of value."""

    line: int


class Scalar(Node):
    """One value: its text as written, and what YAML takes it for. `plain`: it stands there without quotes."""

    text: str
    kind: Kind
    plain: bool


class Listing(Node):
    """A list."""

    items: tuple[Node, ...]


class Table(Node):
    """A mapping. Its keys are texts, each there once, with the line of each."""

    members: dict[str, tuple[int, Node]]


def read(text: str, source: str) -> Node | None:
    """The tree of the one document in a text; `None` if it is empty.

    Raises:
        ConfigError: it is not YAML, or more than a profile may be.
    """
    import yaml

    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ConfigError(f"{source}, line {line}: not YAML: half a character (a lone surrogate).") from None
    if size > MAX_BYTES:
        raise too_large(source)
    loader: Any = None
    try:
        # The fast one reads a profile in a tenth of the time; where it was not built, the other one does.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        return _Composer(loader, source).document()
    except yaml.YAMLError as error:
        raise _not_yaml(error, text, source) from None
    finally:
        if loader is not None:
            loader.dispose()


def too_large(source: str) -> ConfigError:
    """The error for a file over the limit."""
    return ConfigError(f"{source}: a profile has at most {MAX_BYTES} bytes.", hint="Is it the right file?")


def _not_yaml(error: Any, text: str, source: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)
    line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
    if mark is not None:
        # At the end of a text the mark is on a line that nobody sees.
        line = min(mark.line + 1, text.rstrip().count("\n") + 1)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
    place = source if line is None else f"{source}, line {line}"
    written = text.split("\n")[line - 1] if line is not None else ""
    return ConfigError(f"{place}: not YAML: {_plain(problem, written)}.", hint=_hint(problem, written))


#: What the parser says where lines do not stand below each other as they should.
_SLIPS = (
    "mapping values are not allowed",
    "did not find expected key",
    "did not find expected '-' indicator",
    "expected <block end>",
    "could not find expected ':'",
)


def _plain(problem: str, written: str) -> str:
    """The parser's words, or plainer ones where those say little to people."""
    if not problem.startswith(_SLIPS):
        return problem
    if problem.startswith(_SLIPS[0]) and written.count(": ") > 1:
        return "a second `: ` in this line"
    return "this line does not fit the one above it"


def _hint(problem: str, written: str) -> str | None:
    """What people most often do wrong in a line like this."""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "Indent with spaces, not with tabs."
    if "{{" in written:
        return QUOTE_PLACEHOLDERS
    if not problem.startswith(_SLIPS):
        return None
    if problem.startswith(_SLIPS[0]) and written.count(": ") > 1:
        return "Put a text that holds one in quotes."
    return "Keys that belong together begin in the same column, and each has a `: ` behind it."


class _Composer:
    """Makes one tree of the events of a loader."""

    def __init__(self, loader: Any, source: str) -> None:
        self._loader = loader
        self._source = source
        self._anchors: dict[str, Node] = {}
        self._aliased_chars = 0

    def document(self) -> Node | None:
        import yaml

        loader = self._loader
        loader.get_event()
        if loader.check_event(yaml.StreamEndEvent):
            return None
        loader.get_event()
        root = self._node(0)
        loader.get_event()
        if not loader.check_event(yaml.StreamEndEvent):
            line = loader.get_event().start_mark.line + 1
            raise self._wrong(line, "another document begins here.", "A file holds one profile.")
        return root

    def _node(self, depth: int) -> Node:
        import yaml

        event = self._loader.get_event()
        line: int = event.start_mark.line + 1
        if depth > MAX_DEPTH:
            raise self._wrong(line, f"nested deeper than {MAX_DEPTH} levels.")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, line)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event.tag, f"{_TAG}seq", line)
            node = self._listing(line, depth)
        else:
            self._check_tag(event.tag, f"{_TAG}map", line)
            node = self._table(line, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _scalar(self, event: Any, line: int) -> Scalar:
        import yaml

        tag = event.tag
        if tag in _UNTAGGED:
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if "\0" in event.value:
            raise self._wrong(line, "a NUL character, which no program can receive.", "Remove it.")
        return Scalar(line, event.value, _KINDS.get(tag, "other"), not event.style)

    def _listing(self, line: int, depth: int) -> Listing:
        import yaml

        items = []
        while not self._loader.check_event(yaml.SequenceEndEvent):
            items.append(self._node(depth + 1))
        self._loader.get_event()
        return Listing(line, tuple(items))

    def _table(self, line: int, depth: int) -> Table:
        import yaml

        members: dict[str, tuple[int, Node]] = {}
        while not self._loader.check_event(yaml.MappingEndEvent):
            key = self._node(depth + 1)
            if not isinstance(key, Scalar):
                raise self._wrong(key.line, "a key that is not a text.", QUOTE_PLACEHOLDERS)
            if key.text == "<<" and key.plain:
                raise self._wrong(key.line, "merge keys (`<<`) are not read.", "Write the keys out.")
            if key.text in members:
                first = members[key.text][0]
                raise self._wrong(key.line, f"`{key.text}` is here a second time.", f"It is in line {first} already.")
            members[key.text] = (key.line, self._node(depth + 1))
        self._loader.get_event()
        return Table(line, members)

    def _alias(self, anchor: str | None, line: int) -> Node:
        node = self._anchors.get(anchor or "")
        if not isinstance(node, Scalar):
            known = "stands for no single value" if anchor in self._anchors else "is not known here"
            raise self._wrong(line, f"the alias `*{anchor}` {known}.", "Write the value out.")
        self._aliased_chars += len(node.text)
        if self._aliased_chars > MAX_BYTES:
            raise self._wrong(line, f"aliases stand for more than {MAX_BYTES} characters.", "Write the values out.")
        return Scalar(line, node.text, node.kind, node.plain)

    def _check_tag(self, tag: str | None, known: str, line: int) -> None:
        if tag not in _UNTAGGED and tag != known:
            raise self._wrong(line, f"the tag `{tag}` is not known.", "Remove it.")

    def _wrong(self, line: int, problem: str, hint: str | None = None) -> ConfigError:
        return ConfigError(f"{self._source}, line {line}: {problem}", hint=hint)
