"""String storages: lists, and texts by key.

A `List` is what it is. A `Map` has each key once, a `Multimap` any number of times; both are kept sorted by key, texts
of one key in the order in which they came, and that is also their order as a list.

From files: `.txt` is a list, one text per line, without blank lines and those that begin with `#`. `.json` is an array
of `{"id": ..., "text": ...}`, of the kind that is asked for: as a list, its texts as they stand there. Where nobody
says one, as in a node that names a file, it is a map, and a `.mm.json` a multimap. The latter cannot be had as a map.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from trunkline.agents.graph import confined
from trunkline.base import jsontext
from trunkline.core.faults import StorageError
from trunkline.core.graph.ordinals import StringStorageKind as Kind

#: Texts of one storage.
MAX_STRINGS = 1_000_000

KIND_NAMES = {Kind.LIST: "List", Kind.MAP: "Map", Kind.MULTIMAP: "Multimap"}


class StringStorage:
    """Texts that do not change. `name` is what errors call them.

    Raises:
        StorageError: they do not fit the kind.
    """

    __slots__ = ("__weakref__", "_keys", "_origin", "kind", "lines")

    def __init__(self, name: str, kind: int, strings: Sequence[str], keys: Sequence[str] = ()) -> None:
        self.kind = kind
        self._origin: StringStorage | None = None
        if kind not in KIND_NAMES:
            raise _wrong(name, f"{kind} is not a kind of storage")
        if not strings:
            raise _wrong(name, "there are no strings")
        if len(strings) > MAX_STRINGS:
            raise _wrong(name, f"there are more than {MAX_STRINGS} strings")
        if kind == Kind.LIST:
            if keys:
                raise _wrong(name, "a List has no keys")
            self.lines: tuple[str, ...] = tuple(strings)
            self._keys: tuple[str, ...] = ()
            return
        if len(keys) != len(strings):
            raise _wrong(name, f"there are {len(keys)} keys for {len(strings)} strings")
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self.lines = tuple(strings[index] for index in order)
        self._keys = tuple(keys[index] for index in order)
        if kind == Kind.MAP:
            for first, second in zip(self._keys, self._keys[1:], strict=False):
                if first == second:
                    raise _wrong(name, f"the key `{first}` is there twice")

    def lent(self) -> StringStorage:
        """The same texts as a storage of somebody's own. As long as they have it, this one is there, too."""
        made = StringStorage.__new__(StringStorage)
        made.kind, made.lines, made._keys, made._origin = self.kind, self.lines, self._keys, self
        return made

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each line; none in a List."""
        return self._keys

    def find_first(self, key: str) -> str | None:
        """The first text of a key."""
        place = bisect_left(self._keys, key)
        return self.lines[place] if place < len(self._keys) and self._keys[place] == key else None


def load(root: str | None, path: str, name: str = "", kind: int | None = None) -> StringStorage:
    """The storage in a file, of that kind, or else of the one that its name tells.

    Raises:
        OutsideStorage: outside the root.
        StorageMissing: not there.
        StorageError: not what it should be.
    """
    name = name or path
    data = confined.read(root, path, StorageError)
    told = Kind.of_file(path)
    if told is None:
        raise _wrong(name, f"`{path}` ends neither in `.txt` nor in `.json`")
    if kind is None:
        kind = told
    elif kind != told and not _may_be(kind, told):
        raise _wrong(name, f"`{path}` is a {KIND_NAMES[told]}, and no {KIND_NAMES.get(kind, kind)}")
    if told == Kind.LIST:
        return StringStorage(name, kind, _lines(data, name))
    keys, strings = [], []
    for number, record in enumerate(_records(data, name)):
        if not isinstance(record, dict) or not all(isinstance(record.get(key), str) for key in ("id", "text")):
            raise _wrong(name, f"record {number} has no `id` and `text`")
        keys.append(record["id"])
        strings.append(record["text"])
    return StringStorage(name, kind, strings, keys if kind != Kind.LIST else ())


def _may_be(kind: int, told: int) -> bool:
    """Whether a file whose name tells one kind can be read as another: keys can be left out, or be there twice."""
    return told != Kind.LIST and (kind == Kind.LIST or (kind, told) == (Kind.MULTIMAP, Kind.MAP))


def _lines(data: bytes, name: str) -> list[str]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(name, f"not UTF-8 at byte {error.start}") from None
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _records(data: bytes, name: str) -> list[object]:
    try:
        found = jsontext.loads(data)
    except ValueError as error:
        raise _wrong(name, f"not JSON: {error}") from None
    if not isinstance(found, list):
        raise _wrong(name, "not an array of records")
    return found


def _wrong(name: str, problem: str) -> StorageError:
    return StorageError(f"The storage `{name}`: {problem}.")
