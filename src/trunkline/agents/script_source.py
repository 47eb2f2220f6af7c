"""A script's text as a tree of parts that know where they stand, so that every complaint can say where.

    /home/me/demo.yaml, line 7: `turns[0].steps[2].tool` has no key `categry`. Did you mean `category`?

JSON needs the standard library alone; PyYAML is imported for YAML only. Both give plain JSON values: what YAML would
turn into dates stays text, and what JSON could not say (sets, infinity, merged keys) is refused. Lines are known for
YAML, and for JSON where its syntax is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.base.nearest import suggestion
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    import yaml

#: Larger than any script that a person writes, small enough to read at once.
MAX_BYTES = 4 * 1024 * 1024
#: Aliases can make a small YAML text stand for an endless one: the values that a script may hold, aliases followed.
MAX_VALUES = 100_000

Path = tuple[str | int, ...]


def read(path: str) -> Part:
    """Read a script from a file; names that end in `.json` are JSON, all others YAML.

    Raises:
        ConfigError: it cannot be read, or is not what its name says.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigError(f"The script `{path}` cannot be read: {problem}.") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"The script `{path}` is larger than {MAX_BYTES} bytes. Split it.")
    return parse(data, path)


def parse(data: bytes, name: str, what: str = "the script") -> Part:
    """The parts of a script's text. `name` is what errors call it, and tells JSON from YAML; `what` is the whole of it.

    Raises:
        ConfigError: it is not JSON or YAML, as the name says.
    """
    lines: dict[Path, int] = {}
    if name.endswith(".json"):
        try:
            value = jsontext.loads(data)
        except ValueError as error:
            raise ConfigError(f"{name} is not JSON: {error}.") from None
    else:
        value = _parse_yaml(data, name, lines, what)
    return Part(value, name, lines, what=what)


class Misplaced(ConfigError):
    """What is wrong at one place of a file: its line where that is known, and the keys that lead there."""

    def __init__(self, file: str, line: int | None, path: Path, problem: str, what: str = "") -> None:
        place = file if line is None else f"{file}, line {line}"
        about = f"{_spelled(path) or what} " if path or what else ""
        super().__init__(f"{place}: {about}{problem}")
        self.file = file
        self.line = line
        self.path = path
        self.problem = problem


class Part:
    """One value of a script: what it is, and where it stands. Each method checks what the value must be.

    All of them raise `ConfigError`, with file, line (where it is known) and key.
    """

    def __init__(
        self, value: Any, file: str, lines: Mapping[Path, int], path: Path = (), what: str = "the script"
    ) -> None:
        self.value = value
        self._file = file
        self._lines = lines
        self._path = path
        self._what = what

    def wrong(self, problem: str, key: str | None = None) -> Misplaced:
        """The error that says where this part (or the given key of it) stands and what is wrong with it."""
        line = self._lines.get(self._path if key is None else (*self._path, key))
        return Misplaced(self._file, line, self._path, problem, self._what)

    def members(self, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Part]:
        """The members of an object whose keys are known; those that are `null` count as absent."""
        for error in self.wrong_keys(known, required):
            raise error
        return {key: self._inner(key, member) for key, member in self.value.items() if member is not None}

    def wrong_keys(self, known: Sequence[str], required: Sequence[str] = ()) -> Iterator[Misplaced]:
        """What `members` has to complain of, all of it."""
        for key in self.object():
            if key not in known:
                hint = suggestion(key, known) or f" The keys are {listed(known)}."
                yield self.wrong(f"has no key `{key}`.{hint}", key)
        for key in required:
            if self.value.get(key) is None:
                yield self.wrong(f"needs the key `{key}`.")

    def items(self) -> list[Part]:
        """The items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong(f"must be a list, not {_kind(self.value)}.")
        return [self._inner(index, item) for index, item in enumerate(self.value)]

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            hint = " Put it in quotes." if isinstance(self.value, bool | int | float) else ""
            raise self.wrong(f"must be a text, not {_kind(self.value)}.{hint}")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(item.text() for item in self.items())

    def seconds(self) -> float:
        """A length of time."""
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0 or not isfinite(value):
            raise self.wrong("must be a number of seconds, 0 or more.")
        return float(value)

    def count(self) -> int:
        """A whole number, 0 or more."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.wrong("must be a whole number, 0 or more.")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.wrong(f"must be `true` or `false`, not {_kind(self.value)}.")
        return self.value

    def choice(self, known: Collection[str]) -> str:
        """One of the known names."""
        if not isinstance(self.value, str) or self.value not in known:
            hint = suggestion(self.value, known) if isinstance(self.value, str) else ""
            raise self.wrong(f"must be one of {listed(known)}.{hint}")
        return self.value

    def object(self) -> dict[str, Any]:
        """An object of whatever is in it."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"must be an object, not {_kind(self.value)}.")
        return self.value

    def at(self, *keys: str | int) -> Part:
        """The part that some keys lead to; it must be there."""
        part = self
        for key in keys:
            part = part._inner(key, part.value[key])
        return part

    def _inner(self, key: str | int, value: Any) -> Part:
        return Part(value, self._file, self._lines, (*self._path, key), self._what)


def listed(names: Collection[str]) -> str:
    """Names in backticks, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def _spelled(path: Path) -> str:
    """`turns[0].steps[2].tool`"""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
    return f"`{text}`" if text else ""


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {bool: "a truth value", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _parse_yaml(data: bytes, name: str, lines: dict[Path, int], what: str) -> Any:
    import yaml

    loader = None
    try:
        loader = yaml.SafeLoader(data)
        node = loader.get_single_node()
        return _Plain(loader, name, lines, what).value_of(node, ()) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise Misplaced(name, None if mark is None else mark.line + 1, (), f"not YAML: {problem}.") from None
    except RecursionError:
        raise Misplaced(name, None, (), f"is nested deeper than {jsontext.MAX_DEPTH} levels.", what) from None
    finally:
        if loader is not None:
            loader.dispose()


class _Plain:
    """Makes JSON values of YAML nodes, and notes their lines."""

    _SIMPLE = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
    #: Texts to us: JSON has no dates and no bytes.
    _TEXTS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "value"))

    def __init__(self, loader: yaml.SafeLoader, name: str, lines: dict[Path, int], what: str) -> None:
        self._loader = loader
        self._name = name
        self._lines = lines
        self._what = what
        self._values = 0

    def value_of(self, node: yaml.Node, path: Path) -> Any:
        import yaml

        self._values += 1
        # An object keeps the line of its key, which is where people look for it.
        line = self._lines.setdefault(path, node.start_mark.line + 1)
        if len(path) > jsontext.MAX_DEPTH:
            raise self._wrong(line, f"is nested deeper than {jsontext.MAX_DEPTH} levels.", ())
        if self._values > MAX_VALUES:
            raise self._wrong(line, f"holds more than {MAX_VALUES} values, aliases included.", ())
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.value_of(item, (*path, index)) for index, item in enumerate(node.value)]
        if node.tag in self._TEXTS:
            return node.value
        if node.tag in self._SIMPLE:
            return self._simple(node, path)
        raise self._wrong(line, f"has a tag that scripts do not know: `{node.tag}`.", path)

    def _simple(self, node: yaml.Node, path: Path) -> Any:
        value = self._loader.construct_object(node)
        if isinstance(value, float) and not isfinite(value):
            raise self._wrong(self._lines[path], "must be a finite number.", path)
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, member in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                raise self._wrong(line, "has a key that is not a text.", path)
            if key.tag.endswith(":merge"):
                raise self._wrong(line, "merges another object (`<<`), which scripts cannot. Write its keys out.", path)
            if key.value in found:
                raise self._wrong(line, f"has the key `{key.value}` twice.", path)
            self._lines[*path, key.value] = line
            found[key.value] = self.value_of(member, (*path, key.value))
        return found

    def _wrong(self, line: int, problem: str, path: Path) -> Misplaced:
        return Misplaced(self._name, line, path, problem, self._what)
