"""Reads the `tests` of a graph's file. What is wrong with one is told with its place, and the others read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol, TypeVar, get_args

from trunkline.agents.graph.patterns import PatternBook, PatternError
from trunkline.agents.graph.written_tests import (
    MAX_TESTS,
    MAX_TURNS,
    NONE,
    Expectation,
    ExpectKey,
    TestModels,
    WrittenTest,
    WrittenTurn,
    as_texts,
    pattern_of,
)
from trunkline.base.document import Part
from trunkline.base.nearest import suggestion
from trunkline.base.place import Place
from trunkline.base.values import Value

T = TypeVar("T")

_KEYS: tuple[ExpectKey, ...] = get_args(ExpectKey)
_STATUSES = ("success", "error")


class PartReader(Protocol):
    """What a graph's file is read with."""

    def tried(self, read: Callable[..., T], *arguments: Any) -> T | None:
        """What it gives; None if it complains."""

    def known(self, part: Part | None, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Part]:
        """The members that are known; others are complained of."""


class GraphNames(Value):
    """What tests may name."""

    nodes: frozenset[str]
    tools: frozenset[str] | None
    """None if they are not known."""
    memories: frozenset[str]
    placed: bool = True
    """Whether places are to be found, which in JSON takes long."""


def read(part: Part, names: GraphNames, reader: PartReader) -> tuple[WrittenTest, ...]:
    """All tests of a file.

    Raises:
        DocumentError: they are no list, or too many.
    """
    items = _few(part, MAX_TESTS, "tests")
    found: list[WrittenTest] = []
    taken: set[str] = set()
    for item in items:
        test = reader.tried(_test, item, names, reader)
        if test is None:
            continue
        if test.name in taken:
            reader.tried(_refuse, item.at("name"), f"is `{test.name}`, as that of another test.")
        taken.add(test.name)
        found.append(test)
    return tuple(found)


def _test(part: Part, names: GraphNames, reader: PartReader) -> WrittenTest:
    members = reader.known(part, ("name", "models", "turns"), ("name", "turns"))
    name = _text(members["name"]) if "name" in members else ""
    models: Any = members["models"].choice(get_args(TestModels)) if "models" in members else "any"
    turns = _few(members["turns"], MAX_TURNS, "turns") if "turns" in members else []
    read = [reader.tried(_turn, each, names, reader) for each in turns]
    return WrittenTest(name, tuple(filter(None, read)), models, _place(part, names))


def _turn(part: Part, names: GraphNames, reader: PartReader) -> WrittenTurn:
    members = reader.known(part, ("say", "expect"), ("say",))
    say = members["say"].text() if "say" in members else ""
    expect = reader.known(members.get("expect"), _KEYS)
    found: list[Expectation] = []
    for key, member in expect.items():
        found += reader.tried(lambda member, key: tuple(_expectations(key, member, names)), member, key) or ()
    return WrittenTurn(say, tuple(found), _place(part, names))


def _expectations(key: Any, part: Part, names: GraphNames) -> Iterator[Expectation]:
    place = _place(part, names)
    match key:
        case "text" | "not_text":
            for each in _one_or_more(part):
                yield Expectation(key, (_wanted(each),), _place(each, names) or place)
        case "path":
            yield Expectation(key, tuple(_node(each, names) for each in part.items()), place)
        case "visits" | "avoids":
            for each in _one_or_more(part):
                yield Expectation(key, (_node(each, names),), _place(each, names) or place)
        case "tool":
            for each in _one_or_more(part):
                yield _tool(each, names, _place(each, names) or place)
        case "memory":
            for name, member in part.all_members().items():
                _check_known(member, name, names.memories, "in `memories`")
                for each in _one_or_more(member):
                    yield Expectation(key, (name, _wanted(each)), _place(each, names) or place)
        case "status":
            yield Expectation(key, (part.choice(_STATUSES),), place)
        case _:
            yield Expectation(key, (_text(part),), place)


def _tool(part: Part, names: GraphNames, place: Place | None) -> Expectation:
    if not part.is_mapping:
        return Expectation("tool", (_known_tool(part, names),), place)
    members = part.members(("name", "arguments"), ("name",))
    arguments = members["arguments"].object() if "arguments" in members else {}
    return Expectation("tool", (_known_tool(members["name"], names),), place, as_texts(arguments))


def _known_tool(part: Part, names: GraphNames) -> str:
    name = _text(part)
    if name != NONE and names.tools is not None:
        _check_known(part, name, names.tools, "a tool of the graph")
    return name


def _node(part: Part, names: GraphNames) -> str:
    name = _text(part)
    _check_known(part, name, names.nodes, "a node")
    return name


def _check_known(part: Part, name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        raise part.wrong(f"names `{name}`, which is not {what}.{suggestion(name, known)}")


def _wanted(part: Part) -> str:
    text = _text(part)
    if (pattern := pattern_of(text)) is not None:
        try:
            PatternBook().compile((pattern,))
        except PatternError as error:
            raise part.wrong(f"is not a regular expression that can be used: {error}.") from None
    return text


def _text(part: Part) -> str:
    return part.text(empty=False)


def _one_or_more(part: Part) -> list[Part]:
    return part.items() if isinstance(part.value, list) else [part]


def _few(part: Part, most: int, what: str) -> list[Part]:
    items = part.items()
    if not 1 <= len(items) <= most:
        raise part.wrong(f"has {len(items)} {what}, and must have 1 to {most}.")
    return items


def _refuse(part: Part, problem: str) -> None:
    raise part.wrong(problem)


def _place(part: Part, names: GraphNames) -> Place | None:
    return part.place if names.placed else None
