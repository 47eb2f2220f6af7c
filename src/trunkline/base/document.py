"""Documents that people write, in YAML or JSON: read with the place of every value, and checked with it.

    demo.yaml:7:11: unknown key `categry` in `turns[0].steps[2].tool`. Did you mean `category`?

Scripts, profiles and graphs are read here. Both formats give plain JSON values; what JSON could not say (sets, merged
keys, a key that comes twice) is refused. JSON needs the standard library alone; PyYAML is imported for YAML, and to say
where something stands in JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import isfinite
from typing import Any

from trunkline.base import jsontext
from trunkline.base.document_yaml import (
    MAX_BYTES,
    DocumentError,
    Listing,
    Path,
    Scalar,
    YamlNode,
    YamlTable,
    compose,
    spelled,
)
from trunkline.base.nearest import UNKNOWN_KEY, about_key, hint_for
from trunkline.base.place import Place
from trunkline.base.regular import read_regular

__all__ = ["MAX_BYTES", "DocumentError", "Part", "Path", "listed", "parse", "read"]

#: How much of a wrong value is repeated.
SHOWN_CHARS = 80

_KINDS = {"bool": "a boolean", "number": "a number", "null": "null", "text": "a string", "other": "a tagged value"}
_TRUTHS = ("true", "false", "yes", "no", "on", "off")


def read(path: str, what: str, *, as_written: bool = False) -> Part:
    """Read a document from a regular file; see `parse`.

    Raises:
        OSError: it cannot be read.
        DocumentError: it is not what its name says, or larger than `MAX_BYTES`.
    """
    return parse(read_regular(path, MAX_BYTES + 1).data, path, what, as_written=as_written)


def parse(data: bytes, name: str, what: str, *, as_written: bool = False) -> Part:
    """The one value of a document, with all that is in it.

    `name` is what errors call the file; one that ends in `.json` is JSON, all others YAML. `what` is the whole of it,
    such as `the script`. `as_written`: whoever reads it takes single values as they are written; what JSON could not
    say (`.inf`, foreign tags) is refused where it is read, and not before.

    Raises:
        DocumentError: it is not JSON or YAML, as the name says, or more than a document may be.
    """
    if len(data) > MAX_BYTES:
        problem = f"is larger than {MAX_BYTES} bytes."
        raise DocumentError(name, None, (), problem, hint="Is it the right file?", what=what)
    if name.endswith(".json"):
        try:
            value = jsontext.loads(data)
        except ValueError as error:
            raise DocumentError(name, None, (), f"not JSON: {error}.") from None
        return Part(_unplaced(value), _Source(name, what, data))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        hint = "Save the file as UTF-8."
        raise DocumentError(name, Place(line, column), (), "not UTF-8.", hint=hint) from None
    root = compose(text, name, what, as_written=as_written)
    return Part(Scalar(None, None, "", "null", True) if root is None else root, _Source(name, what))


class _Source:
    """What the parts of one document have in common."""

    def __init__(self, file: str, what: str, json: bytes | None = None) -> None:
        self.file = file
        self.what = what
        self._json = json
        """The text, if it is JSON: its places are looked for when something is wrong."""

    @property
    def is_json(self) -> bool:
        """Whether the document is JSON."""
        return self._json is not None

    def place(self, path: Path) -> Place | None:
        """Where something stands in JSON, found out by reading it again as YAML; None if that cannot be."""
        if self._json is None:
            return None
        try:
            node = compose(self._json.decode("utf-8-sig"), self.file, self.what, as_written=True)
        except (ValueError, ImportError):
            return None
        place = node.place if node is not None else None
        for key in path:
            if isinstance(node, YamlTable) and isinstance(key, str) and key in node.members:
                place, node = node.members[key]
            elif isinstance(node, Listing) and isinstance(key, int) and key < len(node.items):
                node = node.items[key]
                place = node.place
        return place


class Part:
    """One value of a document: what it is, and where it stands. Each method checks what the value must be.

    All of them raise `DocumentError`, with file, line, column and key.
    """

    def __init__(self, node: YamlNode, source: _Source, path: Path = (), place: Place | None = None) -> None:
        self._node = node
        self._source = source
        self._path = path
        self._place = place or node.place

    @property
    def value(self) -> Any:
        """All of it, as plain JSON values."""
        return self._node.value

    @property
    def key(self) -> str:
        """The last of the keys that lead to it; empty for the whole."""
        return str(self._path[-1]) if self._path else ""

    @property
    def place(self) -> Place | None:
        """Where it stands, or its key; None if that is not known."""
        return self._place or self._source.place(self._path)

    # What is wrong with it.

    def wrong(self, problem: str, hint: str | None = None) -> DocumentError:
        """The error that says where this part stands and what is wrong with it."""
        return self._wrong(self.place, problem, hint)

    def told(self, problem: str) -> str:
        """The same as a sentence, for what is odd and no error."""
        return self.wrong(problem).message

    def unknown(self, hint: str | None = None) -> DocumentError:
        """The error for a member whose key nothing reads; it is about the mapping that has the key."""
        source, mapping = self._source, self._path[:-1]
        problem = f"{about_key(self.key, UNKNOWN_KEY)} in {spelled(mapping) or source.what}."
        return DocumentError(source.file, self.place, mapping, problem, hint=hint, what=source.what, named=False)

    def wrong_keys(self, known: Collection[str], required: Iterable[str] = ()) -> Iterator[DocumentError]:
        """What `members` has to complain of, all of it."""
        for key, member in self.all_members().items():
            if key not in known:
                hint = hint_for(key, known) or f"The keys are {listed(known)}."
                yield member.unknown(hint)
        for key in required:
            if self.value.get(key) is None:
                yield self.wrong(f"needs the key `{key}`.")

    # What is in it.

    def members(self, known: Collection[str], required: Iterable[str] = ()) -> dict[str, Part]:
        """The members of a mapping whose keys are known; those that are `null` count as absent."""
        for error in self.wrong_keys(known, required):
            raise error
        return {key: member for key, member in self.all_members().items() if not member.is_null}

    def all_members(self) -> dict[str, Part]:
        """The members of a mapping, whatever they are."""
        node = self._node
        if not isinstance(node, YamlTable):
            hint = "Write `NAME: value`, one to a line." if self._path else None
            raise self.wrong(f"must be a mapping, not {self._kind()}.", hint)
        return {
            key: Part(member, self._source, (*self._path, key), place) for key, (place, member) in node.members.items()
        }

    def object(self) -> dict[str, Any]:
        """A mapping of whatever is in it."""
        self.all_members()
        found: dict[str, Any] = self.value
        return found

    def items(self) -> list[Part]:
        """The items of a list."""
        node = self._node
        if not isinstance(node, Listing):
            hint = "Write one item to a line, each after `- `." if isinstance(node, Scalar) else None
            raise self.wrong(f"must be a list, not {self._kind()}.", hint)
        return [Part(item, self._source, (*self._path, index)) for index, item in enumerate(node.items)]

    def at(self, *keys: str | int) -> Part:
        """The part that some keys lead to; it must be there."""
        part = self
        for key in keys:
            part = part.items()[key] if isinstance(key, int) else part.all_members()[key]
        return part

    def walk(self) -> Iterator[Part]:
        """This part, and all that are in it."""
        yield self
        if isinstance(self._node, YamlTable | Listing):
            inner = self.all_members().values() if isinstance(self._node, YamlTable) else self.items()
            for part in inner:
                yield from part.walk()

    # What it is.

    def text(self, *, empty: bool = True, list_hint: str | None = None) -> str:
        """A text; by default an empty one will do. `list_hint` is for those who wrote a list."""
        node = self._node
        if not isinstance(node, Scalar) or node.kind != "text":
            is_plain = isinstance(node, Scalar) and node.kind in ("bool", "number")
            hint = "Put it in quotes." if is_plain else list_hint if isinstance(node, Listing) else None
            raise self.wrong(f"must be a string, not {self._kind()}.", hint)
        if not empty and not node.text.strip():
            raise self.wrong("must not be empty.")
        return node.text

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(item.text() for item in self.items())

    def written(self, null_hint: str) -> str:
        """Whatever single value stands there, as it is written: `yes`, `0x10` and `1.50` stay what they are."""
        node = self._node
        if not isinstance(node, Scalar) or node.kind in ("other", "null"):
            hint = null_hint if isinstance(node, Scalar) and node.kind == "null" else None
            raise self.wrong(f"must be a string, not {self._kind()}.", hint)
        return node.text

    def texts_written(self) -> tuple[str, ...]:
        """A list of single values, each as it is written."""
        return tuple(item.written('Write "" for an empty text, or remove the line.') for item in self.items())

    def seconds(self) -> float:
        """A length of time."""
        return self._number("a number of seconds, 0 or more")

    def count(self) -> int:
        """A whole number, 0 or more."""
        number = self._number("a whole number, 0 or more")
        if number != int(number):
            raise self.wrong("must be a whole number, 0 or more.")
        return int(number)

    def flag(self) -> bool:
        """True or false."""
        value, node = self.value, self._node
        if not isinstance(value, bool):
            is_quoted = isinstance(node, Scalar) and node.text.lower() in _TRUTHS
            raise self.wrong(
                f"must be `true` or `false`, not {self._kind()}.", "Remove the quotes." if is_quoted else None
            )
        return value

    def choice(self, known: Collection[str]) -> str:
        """One of the known names; numbers count as they are written."""
        given = self.as_text
        if given in known:
            return given
        got = f"`{given[:SHOWN_CHARS]}`" if given else self._kind()
        raise self.wrong(f"must be one of {listed(known)}, not {got}.", hint_for(given, known))

    @property
    def as_text(self) -> str:
        """What is written there, whatever it is meant for; nothing if it is no single value."""
        return self._node.text if isinstance(self._node, Scalar) else ""

    @property
    def is_mapping(self) -> bool:
        """Whether it has members."""
        return isinstance(self._node, YamlTable)

    @property
    def is_json(self) -> bool:
        """Whether it is of a JSON document: there, each `place` is found by reading all of it again."""
        return self._source.is_json

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there."""
        return isinstance(self._node, Scalar) and self._node.kind == "null"

    def _wrong(self, place: Place | None, problem: str, hint: str | None) -> DocumentError:
        source = self._source
        return DocumentError(source.file, place, self._path, problem, hint=hint, what=source.what)

    def _number(self, what: str) -> float:
        node = self._node
        try:
            # Python's own reading: what YAML has besides (base 60, octal) nobody means here.
            number = float(node.text) if isinstance(node, Scalar) and node.plain else None
        except ValueError:
            number = None
        if number is None or not isfinite(number) or number < 0:
            is_quoted = isinstance(node, Scalar) and not node.plain and node.text.strip().replace(".", "", 1).isdigit()
            is_shown = isinstance(node, Scalar) and node.plain and node.text
            got = f"`{self.as_text[:SHOWN_CHARS]}`" if is_shown else self._kind()
            raise self.wrong(f"must be {what}, not {got}.", "Remove the quotes." if is_quoted else None)
        return number

    def _kind(self) -> str:
        if isinstance(self._node, Scalar):
            return _KINDS[self._node.kind]
        return "a list" if isinstance(self._node, Listing) else "a mapping"


def listed(names: Iterable[str]) -> str:
    """Names in backticks, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def _unplaced(value: Any) -> YamlNode:
    """The tree of a JSON value."""
    if isinstance(value, dict):
        return YamlTable(None, value, {key: (None, _unplaced(member)) for key, member in value.items()})
    if isinstance(value, list):
        return Listing(None, value, tuple(map(_unplaced, value)))
    if isinstance(value, str):
        return Scalar(None, value, value, "text", False)
    kind: Any = "null" if value is None else "bool" if isinstance(value, bool) else "number"
    return Scalar(None, value, jsontext.dumps(value).decode(), kind, True)
