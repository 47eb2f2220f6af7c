"""Graphs as YAML files, with file and line in every complaint.

    start: guard
    default_model: smollm2-135m
    nodes:
      guard:
        type: HumanMessageGuardrail
        inline_strings: ["ignore (all )?previous"]
        triggered: refuse
        not_triggered: answer
      refuse: {type: CannedResponse, inline_strings: ["Nice try."]}
      answer: {type: Generate, system_prompt: "You are a smith.", stream: true}

The keys of a node are those of its parameters; an exit may also be called by its name alone. Where the wire has numbers
for names, the names can be written, and where it has a text with commas or JSON in it, a list or an object. A storage's
texts may be in a file beside the graph.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_type_hints

from trunkline.agents.graph import bundled, embedded, storages, yaml_tests
from trunkline.agents.graph.agent import MAX_MAX_STEPS
from trunkline.agents.graph.memory_file import MemoryFile
from trunkline.agents.graph.nodes.strings import Guardrail
from trunkline.agents.graph.params import MAX_ENTRIES, RULES, out_of_range
from trunkline.agents.graph.patterns import PatternBook
from trunkline.agents.graph.plan import MAX_NODES, make_node, make_nodes
from trunkline.agents.graph.storages import StringStorage
from trunkline.agents.graph.written_tests import WrittenTest
from trunkline.agents.graph.yaml_sampling import READERS
from trunkline.agents.graph.yaml_tests import GraphNames
from trunkline.base import document, jsontext
from trunkline.base.document import DocumentError, Part, listed
from trunkline.base.nearest import nearest, suggestion
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, Fault, GraphError
from trunkline.core.graph.description import (
    CharacterDefinition,
    GraphDescription,
    NodeDescription,
    NodeParams,
    RememberParams,
    SamplingOverrides,
    ToolDefinition,
    ToolParamDefinition,
)
from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.core.graph.ordinals import (
    CannedResponseSelectionStrategy,
    DirectorStrategy,
    Placement,
    StringStorageKind,
)

T = TypeVar("T")

#: What is told of one file.
MAX_COMPLAINTS = 100

_KINDS: dict[str, type[NodeParams]] = {rules.type: params for params, rules in RULES.items()}
_NAMES: dict[str, dict[str, int]] = {
    field: {name.lower(): number for number, name in enumeration.names().items()}
    for field, enumeration in (
        ("placement", Placement),
        ("selection_strategy", CannedResponseSelectionStrategy),
        ("strategy", DirectorStrategy),
    )
}
#: Words of a node's complaint about itself, and the key that it is about.
_ABOUT = {
    "its template": "template",
    "its system prompt": "system_prompt",
    "pattern ": "inline_strings",
    "tool": "tools",
    "`characters`": "characters",
}
_ROOT = ("start", "nodes", "default_model", "diagnostics", "max_steps", "storages", "knowledge", "memories", "tests")


class GraphFile(Value):
    """What a file says: a graph, how an agent is made of it, the storages that it brings along, and its tests."""

    graph: GraphDescription
    default_model: str = ""
    diagnostics: bool = False
    max_steps: int = 0
    storages: tuple[StringStorageDescription, ...] = ()
    knowledge: tuple[EmbeddedStorageDescription, ...] = ()
    tests: tuple[WrittenTest, ...] = ()


class GraphReading(Value):
    """What was read, as far as it could be: `file` is None unless nothing is `wrong`. `root` is None for no YAML."""

    root: Part | None
    file: GraphFile | None
    wrong: tuple[DocumentError, ...]
    beside: tuple[str, ...] = ()
    """The paths of the files that were looked at besides."""


def load(path: str) -> GraphFile:
    """Read and check a graph's file, or the bundled graph of that name.

    Raises:
        ConfigError: it cannot be read, or no agent can be made of it. What only a host can know is not checked.
    """
    return _sound(read(path))


def parse(data: bytes, name: str) -> GraphFile:
    """The same, of a text, which can name no files. `name` is what errors call it; one that ends in `.json` is JSON.

    Raises:
        ConfigError: as `load`.
    """
    return _sound(read_data(data, name, None))


def read(path: str) -> GraphReading:
    """Read a graph's file, and go on where something is wrong with it. The texts of storages may be in its folder.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        data = read_regular(bundled.locate(path), document.MAX_BYTES + 1).data
    except OSError as error:
        hint = _other(path) if isinstance(error, FileNotFoundError | NotRegular) else None
        raise ConfigError(f"The graph `{path}` cannot be read: {error.strerror}.", hint=hint) from None
    return read_data(data, path, bundled.folder_of(path))


def _other(path: str) -> str:
    """What may have been meant by a name that is no file's."""
    if (meant := nearest(path, bundled.names())) is not None:
        return f"Did you mean `{meant}`, which is bundled?"
    return f"Name a file, or a bundled one: {listed(bundled.names())}."


def _sound(found: GraphReading) -> GraphFile:
    if found.file is None:
        raise ConfigError.of(found.wrong[0])
    return found.file


def read_data(data: bytes, name: str, folder: str | None) -> GraphReading:
    """The same, of a text that need not be in a file. `folder` is where the texts of storages may be, None for nowhere;
    `name` as in `parse`."""
    try:
        root = document.parse(data, name, "the graph")
    except DocumentError as error:
        return GraphReading(None, None, (error,))
    reader = _Reader(folder)
    try:
        found = reader.tried(reader.file, root)
    except _Enough:
        found = None
    return GraphReading(root, found if not reader.wrong else None, tuple(reader.wrong), tuple(reader.beside))


class _Enough(Exception):
    """Nobody reads more complaints than these."""


class _Reader:
    """Makes a graph of a file's parts. What is wrong is put aside in `wrong`, and the rest looked at all the same."""

    def __init__(self, folder: str | None) -> None:
        self.wrong: list[DocumentError] = []
        self._failed: dict[str, set[str]] = {}
        """Of each node that something is wrong with, the keys that cannot be read."""
        self._folder = folder
        self.beside: dict[str, None] = {}
        """The paths of files that the graph's one names."""

    def tried(self, read: Callable[..., T], *arguments: Any) -> T | None:
        """What it gives; None if it complains."""
        try:
            return read(*arguments)
        except DocumentError as error:
            self._complain(error)
            return None

    def _complain(self, error: DocumentError) -> None:
        self.wrong.append(error)
        if len(self.wrong) >= MAX_COMPLAINTS:
            raise _Enough

    def known(self, part: Part | None, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Part]:
        """The members whose keys are known; the others are complained of."""
        if part is None:
            return {}
        for error in part.wrong_keys(known, required):
            self._complain(error)
        return {key: member for key, member in _all_members(part).items() if key in known}

    def file(self, root: Part) -> GraphFile:
        """All of it."""
        members = self.known(root, _ROOT, ("start", "nodes"))
        nodes = (self.tried(_all_members, members["nodes"]) or {}) if "nodes" in members else {}
        if len(nodes) > MAX_NODES:
            raise members["nodes"].wrong(f"has {len(nodes)} nodes, and may have {MAX_NODES}.")
        described = [self.tried(self._node, name, part, nodes) for name, part in nodes.items()]
        start = self.tried(members["start"].text) if "start" in members else None
        if start is not None and start not in nodes:
            told = f"which is not one of the nodes {listed(nodes)}." if nodes else "and there are no nodes."
            self._complain(members["start"].wrong(f"is `{start}`, {told}"))
        default_model = (self.tried(members["default_model"].text) or "") if "default_model" in members else ""
        memories = self._each(members.get("memories"), self._memory)
        most = {found.name: entries for found, entries in memories}
        described = [node if node is None else _bounded(node, nodes[node.name], most) for node in described]
        for number, node in enumerate(described):
            if node is not None:
                self._check(number, node, nodes[node.name], default_model)
        made = GraphFile(
            GraphDescription(tuple(filter(None, described)), start or ""),
            default_model,
            bool("diagnostics" in members and self.tried(members["diagnostics"].flag)),
            (self.tried(_steps, members["max_steps"]) or 0) if "max_steps" in members else 0,
            self._each(members.get("storages"), self._storage),
            (*self._each(members.get("knowledge"), self._knowledge), *(found for found, _ in memories)),
            (self.tried(self._tests, members["tests"], nodes, described, most) or ()) if "tests" in members else (),
        )
        for name in {each.name for each in made.knowledge if not each.memory_path} & most.keys():
            self._complain(members["memories"].at(name).wrong("has the name of a storage in `knowledge`."))
        if not self.wrong:
            try:
                make_nodes(made.graph, default_model)
            except Fault as error:
                self._complain(members["nodes"].wrong(f"does not work. {error.message}"))
        return made

    def _each(self, part: Part | None, read: Callable[[str, Part], T]) -> tuple[T, ...]:
        members = (self.tried(_all_members, part) or {}) if part is not None else {}
        return tuple(made for name, member in members.items() if (made := self.tried(read, name, member)) is not None)

    def _node(self, name: str, part: Part, nodes: Mapping[str, Part]) -> NodeDescription:
        """A node, as far as it can be read."""
        kind = _KINDS[part.members(tuple(part.object()), ("type",))["type"].choice(_KINDS)]
        exits = RULES[kind].exits
        before = len(self.wrong)
        members = self.known(part, ("type", *kind.__fields__, *exits), ("type",))
        hints = get_type_hints(kind)
        found: dict[str, Any] = {}
        failed: set[str] = set()
        for key, member in members.items():
            so_far = len(self.wrong)
            field = f"{key}_exit" if key in exits else key
            if field in found:
                self._complain(member.wrong("is there twice, with `_exit` and without."))
            elif field.endswith("_exit"):
                found[field] = self.tried(_exit, member, nodes)
            elif field != "type":
                found[field] = self.tried(self._value, field, hints[field], member)
            if len(self.wrong) > so_far:
                failed.add(key)
        if len(self.wrong) > before:
            self._failed[name] = failed
        params = kind(**{field: value for field, value in found.items() if value is not None})
        for field, problem in out_of_range(params):
            about, _, inner = field.partition(".")
            self._complain((_all_members(members[about])[inner] if inner else members[about]).wrong(problem))
        return NodeDescription(name, params)

    # Values. What is wrong with a part of one is told, and the rest of it given.

    def _value(self, field: str, hint: Any, part: Part) -> Any:
        """What a field of that type is to be."""
        if field in _NAMES:
            return _NAMES[field][part.choice(_NAMES[field])]
        if field == "sampling":
            return self._table(SamplingOverrides, part)
        if field in READERS:
            return READERS[field](part, lambda number: _simple(float, number))
        if field == "tools":
            return self._tables(ToolDefinition, part)
        if field == "characters":
            return self._tables(CharacterDefinition, part)
        if field == "parameters":
            return self._tables(ToolParamDefinition, part)
        if field in ("intents_ids", "intents_prompt") and isinstance(part.value, list):
            return ", ".join(self._list(_without_comma, part))
        if field == "filter" and isinstance(part.value, dict):
            return jsontext.dumps(part.value).decode()
        return self._list(Part.text, part) if hint == tuple[str, ...] else _simple(hint, part)

    def _list(self, read: Callable[[Part], T], part: Part) -> tuple[T, ...]:
        return tuple(made for item in part.items() if (made := self.tried(read, item)) is not None)

    def _tables(self, kind: type[Value], part: Part) -> tuple[Any, ...]:
        """A list of objects. Whoever writes something else, such as a JSON Schema, is told the shape."""
        if not isinstance(part.value, list) or not all(isinstance(item, dict) for item in part.value):
            raise part.wrong(f"must be a list of {{{', '.join(kind.__fields__)}}}.")
        return self._list(lambda item: self._table(kind, item), part)

    def _table(self, kind: type[Value], part: Part) -> Any:
        hints = get_type_hints(kind)
        members = self.known(part, kind.__fields__)
        found = {field: self.tried(self._value, field, hints[field], member) for field, member in members.items()}
        return kind(**{field: value for field, value in found.items() if value is not None})

    def _check(self, number: int, node: NodeDescription, part: Part, default_model: str) -> None:
        """Look at what can be wrong with one node before there is a host.

        Where something is wrong already, only what is about a key that could be read: the rest may come of it.
        """
        members = _all_members(part)
        told: set[str] = set()
        failed = self._failed.get(node.name)
        # With any model at all, the rest of a node that has none can be looked at, too.
        for model in (default_model, default_model or "any"):
            try:
                made = make_node(number, node, model)
                made.check()
                if isinstance(made, Guardrail):
                    made.compile(PatternBook(), made.params.inline_strings, GraphError)
            except Fault as error:
                named = [key for key in members if f"`{key}`" in error.message]
                named += [key for words, key in _ABOUT.items() if words in error.message and key in members]
                if error.message not in told and (failed is None or (named and named[0] not in failed)):
                    about = members[named[0]] if named else part
                    self._complain(about.wrong(f"does not work. {error.message}"))
                told.add(error.message)

    def _storage(self, name: str, part: Part) -> StringStorageDescription:
        if isinstance(part.value, dict):
            texts = {key: self.tried(member.text) or "" for key, member in _all_members(part).items()}
            return StringStorageDescription(name, tuple(texts.values()), "", StringStorageKind.MAP, tuple(texts.keys()))
        if isinstance(part.value, str):
            found = self._lines(part)
            return StringStorageDescription(name, found.lines, "", found.kind, found.keys)
        return StringStorageDescription(name, self._list(Part.text, part))

    def _knowledge(self, name: str, part: Part) -> EmbeddedStorageDescription:
        if isinstance(part.value, str):
            records, model = self._beside(part, lambda folder: embedded.described(folder, part.text(), name))
            return EmbeddedStorageDescription(name, "", (), model, records)
        members = part.members(("embedding_model", "strings", "records", "fields"), ("embedding_model",))
        model = members["embedding_model"].text()
        if ("strings" in members) == ("records" in members):
            raise part.wrong("needs either `strings` or `records`.")
        if "strings" in members:
            if "fields" in members:
                raise part.wrong("has `fields` for plain strings. Write `records`, a list of {text, metadata}.")
            strings = members["strings"]
            texts = self._lines(strings).lines if isinstance(strings.value, str) else self._list(Part.text, strings)
            return EmbeddedStorageDescription(name, "", texts, model)
        given = {key: members[key].value for key in ("records", "fields") if key in members}
        records = jsontext.dumps(given).decode()
        try:
            embedded.inline_records(name, records, model)
        except Fault as error:
            raise part.wrong(f"does not work. {error.message}") from None
        return EmbeddedStorageDescription(name, "", (), model, records)

    def _memory(self, name: str, part: Part) -> tuple[EmbeddedStorageDescription, int | None]:
        """A memory, and how many entries those have it keep that do not say it themselves."""
        members = part.members(("embedding_model", "file", "max_entries"), ("embedding_model", "file"))
        most = members["max_entries"].count() if "max_entries" in members else None
        if most is not None and not 1 <= most <= MAX_ENTRIES:
            raise members["max_entries"].wrong(f"must be from 1 to {MAX_ENTRIES}.")
        file = members["file"]
        try:
            MemoryFile.check(self._folder, file.text(), name)
        except Fault as error:
            raise file.wrong(f"does not work. {error.message}") from None
        return EmbeddedStorageDescription(name, "", (), members["embedding_model"].text(), "", file.text()), most

    def _tests(
        self,
        part: Part,
        nodes: Iterable[str],
        described: Sequence[NodeDescription | None],
        memories: Iterable[str],
    ) -> tuple[WrittenTest, ...]:
        tools = {tool.name for node in described if node for tool in getattr(node.params, "tools", ())}
        # Of a node that could not be read, nobody knows the tools.
        known = None if None in described else frozenset(tools)
        names = GraphNames(frozenset(nodes), known, frozenset(memories), placed=not part.is_json)
        return yaml_tests.read(part, names, self)

    def _lines(self, part: Part) -> StringStorage:
        """The texts in the file that a part names."""
        return self._beside(part, lambda folder: storages.load(folder, part.text()))

    def _beside(self, part: Part, read: Callable[[str], T]) -> T:
        """What is in the graph's folder, by that reader."""
        if self._folder is None:
            raise part.wrong("names a file, and this graph is not in a folder.")
        if isinstance(part.value, str):
            self.beside[os.path.join(self._folder, part.value)] = None
        try:
            return read(self._folder)
        except Fault as error:
            raise part.wrong(f"does not work. {error.message}") from None


def _all_members(part: Part) -> dict[str, Part]:
    return {key: member for key, member in part.all_members().items() if not member.is_null}


def _bounded(node: NodeDescription, part: Part, most: Mapping[str, int | None]) -> NodeDescription:
    """A node that writes into a memory, which keeps as many entries as the memory says if the node does not."""
    params = node.params
    if not isinstance(params, RememberParams) or "max_entries" in part.object():
        return node
    entries = most.get(params.memory or "")
    return node if entries is None else node.replace(params=params.replace(max_entries=entries))


def _steps(part: Part) -> int:
    steps = part.count()
    if steps > MAX_MAX_STEPS:
        raise part.wrong(f"must be from 0 to {MAX_MAX_STEPS}.")
    return steps


def _exit(part: Part, nodes: Mapping[str, Part]) -> str:
    target = part.text()
    if target and target not in nodes:
        hint = suggestion(target, nodes)
        raise part.wrong(f"leads to `{target}`, which is not a node.{hint}")
    return target


def _simple(hint: Any, part: Part) -> Any:
    if hint not in (int, float, int | None, float | None):
        return part.flag() if hint is bool else part.text()
    value = part.value
    whole = hint in (int, int | None)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise part.wrong("must be a whole number." if whole else "must be a number.")
    try:
        return value if whole else float(value)
    except OverflowError:
        raise part.wrong("is too large a number.") from None


def _without_comma(part: Part) -> str:
    text = part.text()
    if "," in text:
        raise part.wrong("has a comma, which is what separates intents.")
    return text
