"""YAML as a tree of values that know where they stand. Nothing is guessed: a scalar also keeps its text as written.

YAML's own composer is not used. Its fast form ends the process when a text is nested deeply enough, and neither form
minds a key that comes twice. This one builds the tree of the parser's events, with a limit for each thing that grows:
levels, values, and the text that aliases stand for.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.place import Place, PlacedError
from trunkline.base.values import Value

#: Larger than any document that a person writes, small enough to read at once.
MAX_BYTES = 4 * 1024 * 1024
#: As deep as JSON may be.
MAX_DEPTH = jsontext.MAX_DEPTH
#: Aliases can make a small text stand for an endless one: the values of a document, aliases followed.
MAX_VALUES = 100_000
#: What aliases may stand for in all: as much as could have been written out.
MAX_ALIASED_CHARS = MAX_BYTES

QUOTE_PLACEHOLDERS = 'A text that begins with a placeholder needs quotes, as in "{{MESSAGE}}".'

Path = tuple[str | int, ...]
Kind = Literal["text", "bool", "number", "null", "other"]

_TAG = "tag:yaml.org,2002:"
# Dates are texts to us: JSON has none.
_KINDS: dict[str, Kind] = {
    **dict.fromkeys((f"{_TAG}{name}" for name in ("str", "timestamp", "value", "merge")), "text"),
    **dict.fromkeys((f"{_TAG}{name}" for name in ("int", "float")), "number"),
    f"{_TAG}bool": "bool",
    f"{_TAG}null": "null",
}
_UNTAGGED = (None, "!")


class DocumentError(PlacedError):
    """What is wrong at one place of a document: file, line and column where known, and the keys that lead there.

    `what` is the whole of the document, such as `the script`; it is named where no key leads to the place.
    `named`: the sentence begins with the keys, or with `what`; else it says by itself what it is about.
    """

    def __init__(
        self,
        file: str,
        place: Place | None,
        path: Path,
        problem: str,
        *,
        hint: str | None = None,
        what: str = "",
        named: bool = True,
    ) -> None:
        about = f"{spelled(path) or what} " if named and (path or what) else ""
        self.message = f"{file if place is None else f'{file}:{place.line}:{place.column}'}: {about}{problem}"
        super().__init__(f"{self.message} {hint}" if hint else self.message)
        self.file = file
        self.line = place.line if place else None
        self.column = place.column if place else None
        self.path = path
        self.problem = f"{problem} {hint}" if hint else problem
        self.hint = hint


class YamlNode(Value):
    """Base of the three kinds of value. `place` is None where it is not known."""

    place: Place | None
    value: Any
    """All of it as plain JSON values."""


class Scalar(YamlNode):
    """One value: its text as written, and what YAML takes it for. `plain`: it stands there without quotes."""

    text: str
    kind: Kind
    plain: bool


class Listing(YamlNode):
    """A list."""

    items: tuple[YamlNode, ...]


class YamlTable(YamlNode):
    """A mapping. Its keys are texts, each there once, with the place of each."""

    members: dict[str, tuple[Place | None, YamlNode]]


def spelled(path: Path) -> str:
    """`turns[0].steps[2].tool`"""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
    return f"`{text}`" if text else ""


def compose(text: str, file: str, what: str, *, as_written: bool = False) -> YamlNode | None:
    """The tree of the one document in a text; None if it is empty.

    `as_written`: values are taken as they are written, so that those will do which JSON has not, such as `.inf`.

    Raises:
        DocumentError: it is not YAML, or more than a document may be.
    """
    import yaml

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(
            file, _place_at(text, error.start), (), "not YAML: half a character (a lone surrogate)."
        ) from None
    loader: Any = None
    try:
        # The fast one takes a tenth of the time; where it was not built, the other one does.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        return _Composer(loader, file, what, as_written).document()
    except yaml.YAMLError as error:
        raise _not_yaml(error, text, file) from None
    finally:
        if loader is not None:
            loader.dispose()


def _place_at(text: str, position: int) -> Place:
    return Place(text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1)


def _not_yaml(error: Any, text: str, file: str) -> DocumentError:
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)
    place = _place_at(text, position) if isinstance(position, int) else None
    if mark is not None:
        # At the end of a text the mark is on a line that nobody sees.
        last = text.rstrip()
        place = Place(mark.line + 1, mark.column + 1)
        place = place if place.line <= last.count("\n") + 1 else _place_at(last, len(last))
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
    written = text.split("\n")[place.line - 1] if place is not None else ""
    return DocumentError(file, place, (), f"not YAML: {_plain(problem, written)}.", hint=_hint(problem, written))


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
        return "Put a string that contains one in quotes."
    return "Keys that belong together begin in the same column, and each is followed by `: `."


class _Anchor(Value):
    """A value that aliases may stand for, and how much it is."""

    node: YamlNode
    values: int
    chars: int


class _Composer:
    """Makes one tree of the events of a loader."""

    def __init__(self, loader: Any, file: str, what: str, as_written: bool) -> None:
        self._loader = loader
        self._file = file
        self._what = what
        self._as_written = as_written
        self._anchors: dict[str, _Anchor] = {}
        self._values = 0
        self._chars = 0
        self._aliased_chars = 0

    def document(self) -> YamlNode | None:
        import yaml

        loader = self._loader
        loader.get_event()
        if loader.check_event(yaml.StreamEndEvent):
            return None
        loader.get_event()
        root = self._node(())
        loader.get_event()
        if not loader.check_event(yaml.StreamEndEvent):
            problem = "another document begins here."
            raise DocumentError(self._file, _start(loader.get_event()), (), problem, hint="A file holds one document.")
        return root

    def _node(self, path: Path) -> YamlNode:
        import yaml

        event = self._loader.get_event()
        place = _start(event)
        if len(path) > MAX_DEPTH:
            raise self._wrong(place, (), f"is nested deeper than {MAX_DEPTH} levels.")
        values, chars = self._values, self._chars
        self._count(place, 1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, place, path)
        node: YamlNode
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, place, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event.tag, f"{_TAG}seq", place, path)
            node = self._listing(place, path)
        else:
            self._check_tag(event.tag, f"{_TAG}map", place, path)
            node = self._table(place, path)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(node, self._values - values, self._chars - chars)
        return node

    def _scalar(self, event: Any, place: Place, path: Path) -> Scalar:
        import yaml

        tag, text = event.tag, event.value
        if tag in _UNTAGGED:
            tag = self._loader.resolve(yaml.ScalarNode, text, event.implicit)
        self._chars += len(text)
        kind = _KINDS.get(tag, "other")
        value = text
        if kind in ("number", "bool", "null"):
            try:
                value = self._loader.construct_object(yaml.ScalarNode(tag, text, event.start_mark, event.end_mark))
            except ValueError:
                # `!!int abc`, or more digits than Python reads.
                kind = "other"
        if not self._as_written:
            if kind == "other":
                raise self._wrong(place, path, f"has a value or a tag that is not known here: `{tag}`.")
            if isinstance(value, float) and not isfinite(value):
                raise self._wrong(place, path, "must be a finite number.")
        return Scalar(place, value, text, kind, not event.style)

    def _listing(self, place: Place, path: Path) -> Listing:
        import yaml

        items: list[YamlNode] = []
        while not self._loader.check_event(yaml.SequenceEndEvent):
            items.append(self._node((*path, len(items))))
        self._loader.get_event()
        return Listing(place, [item.value for item in items], tuple(items))

    def _table(self, place: Place, path: Path) -> YamlTable:
        import yaml

        members: dict[str, tuple[Place | None, YamlNode]] = {}
        while not self._loader.check_event(yaml.MappingEndEvent):
            at = _start(self._loader.peek_event())
            # What is wrong with a key is told of the mapping, and the place is the key's.
            key = self._node((*path, ""))
            if not isinstance(key, Scalar):
                # `{{MESSAGE}}` is a mapping with a mapping for its key.
                hint = QUOTE_PLACEHOLDERS if isinstance(key, YamlTable) else None
                raise self._wrong(at, path, "has a key that is not a string.", hint)
            if key.text == "<<" and key.plain:
                raise self._wrong(at, path, "merges another mapping (`<<`), which is not read.", "Write the keys out.")
            if key.text in members:
                first = members[key.text][0]
                hint = f"It is in line {first.line} already." if first else None
                raise self._wrong(at, path, f"has the key `{key.text}` twice.", hint)
            members[key.text] = (at, self._node((*path, key.text)))
        self._loader.get_event()
        return YamlTable(place, {name: node.value for name, (_, node) in members.items()}, members)

    def _alias(self, anchor: str | None, place: Place, path: Path) -> YamlNode:
        found = self._anchors.get(anchor or "")
        if found is None:
            # Also inside of what it stands for, which would have no end.
            raise self._wrong(place, path, f"is the alias `*{anchor}`, which is not known here.", "Write it out.")
        self._count(place, found.values - 1)
        self._chars += found.chars
        self._aliased_chars += found.chars
        if self._aliased_chars > MAX_ALIASED_CHARS:
            problem = f"has aliases that expand to more than {MAX_ALIASED_CHARS} characters."
            raise self._wrong(place, (), problem, "Write the values out.")
        node = found.node
        return node.replace(place=place) if isinstance(node, Scalar) else node

    def _count(self, place: Place, values: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise self._wrong(place, (), f"holds more than {MAX_VALUES} values, aliases included.")

    def _check_tag(self, tag: str | None, known: str, place: Place, path: Path) -> None:
        if tag not in _UNTAGGED and tag != known:
            raise self._wrong(place, path, f"has a value or a tag that is not known here: `{tag}`.", "Remove it.")

    def _wrong(self, place: Place, path: Path, problem: str, hint: str | None = None) -> DocumentError:
        return DocumentError(self._file, place, path, problem, hint=hint, what=self._what)


def _start(event: Any) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1)
