"""All that is wrong with a graph's file, and all that looks wrong, each with its place.

Problems are what no agent can be made with. Warnings are what one can be made with, and is hardly meant: nodes that no
turn comes to, turns that never end, storages that nobody uses or that the file does not bring along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping

from trunkline.agents.graph import bundled, confined, yaml_graph, yaml_open
from trunkline.agents.graph.params import asks_to_remember, exits_of
from trunkline.agents.graph.yaml_graph import GraphFile, GraphReading
from trunkline.base.document import DocumentError, Part
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.graph.description import (
    CannedResponseParams,
    DirectorParams,
    GenerateAndSpeakParams,
    GenerateParams,
    IntentToInstructionParams,
    RememberParams,
)
from trunkline.core.graph.ordinals import StringStorageKind

#: Where nodes name their storages.
_SOURCES = ("string_storage", "pronunciations", "embedded_string_storage", "memory")


#: Nodes that a user waits for.
_ANSWERING = (GenerateParams, GenerateAndSpeakParams, CannedResponseParams, DirectorParams)


class Finding(Value):
    """One thing that is wrong. `line` and `column` are 0 where they are not known.

    `node` and `key` are empty where it is about neither. `key` is the path below the node, or below the file if it is
    about no node.
    """

    file: str
    line: int
    column: int
    node: str
    key: str
    text: str
    """Words that need the subject before them."""
    told: str
    """The whole sentence, with its place."""


class GraphReport(Value):
    """What was found. `graph` is None if there are problems."""

    graph: GraphFile | None
    problems: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    lines: Mapping[str, int] = {}
    """The lines in which the nodes begin, by name; not of a graph in JSON."""
    beside: tuple[str, ...] = ()
    """The paths of the files that it names."""


def examine(path: str) -> GraphReport:
    """Read a file and look at all of it. Never raises: what cannot be read is a problem. Not for an event loop."""
    try:
        found = yaml_graph.read(path)
    except ConfigError as error:
        return GraphReport(None, (Finding(path, 0, 0, "", "", str(error), str(error)),))
    return _examined(found, path, bundled.folder_of(path))


def examine_data(data: bytes, name: str, folder: str) -> GraphReport:
    """The same of what a file is to say: `name` is what complaints call it, `folder` the one that it belongs to."""
    return _examined(yaml_graph.read_data(data, name, folder), name, folder)


def _examined(found: GraphReading, name: str, folder: str) -> GraphReport:
    if found.file is None or found.root is None:
        return GraphReport(None, _ordered(found.wrong), beside=found.beside)
    wrong = [*_wrong_kinds(found.root, found.file)] or asyncio.run(_opened(found.root, found.file, folder))
    problems = _ordered(wrong)
    odd = [*_paths(found.root, found.file), *_storages(found.root, found.file, folder)]
    # In JSON, each place would be looked for by reading all of it again.
    lines = {} if name.endswith(".json") else _lines(found.root.at("nodes").all_members())
    return GraphReport(None if problems else found.file, problems, _ordered(odd), lines, found.beside)


def _lines(nodes: Mapping[str, Part]) -> dict[str, int]:
    return {name: part.place.line for name, part in nodes.items() if part.place is not None}


def _ordered(errors: Iterable[DocumentError]) -> tuple[Finding, ...]:
    return tuple(sorted(map(_finding, errors), key=lambda each: (each.line, each.column)))


def _finding(error: DocumentError) -> Finding:
    inside = error.path[:1] == ("nodes",) and len(error.path) > 1
    key = ".".join(map(str, error.path[2:] if inside else error.path))
    node = str(error.path[1]) if inside else ""
    return Finding(error.file, error.line or 0, error.column or 0, node, key, error.problem, str(error))


# Ways through the graph.


def _paths(root: Part, file: GraphFile) -> Iterator[DocumentError]:
    exits = {node.name: exits_of(node.params) for node in file.graph.nodes if node.params is not None}
    onward = {name: set(to.values()) - {""} for name, to in exits.items()}
    reached = _reached([file.graph.start_node], onward)
    for name in exits:
        if name not in reached:
            yield root.at("nodes", name).wrong("is a node that no turn can reach.")
    # Backwards, from the nodes that can end a turn.
    before: dict[str, set[str]] = {name: set() for name in exits}
    for name, to in exits.items():
        for target in to.values():
            if target:
                before[target].add(name)
    can_end = _reached([name for name, to in exits.items() if "" in to.values()], before)
    for name in exits:
        if name in reached and name not in can_end:
            yield root.at("nodes", name).wrong("has no path to the end: a turn that gets here runs out of steps.")

    answering = {node.name for node in file.graph.nodes if isinstance(node.params, _ANSWERING)}
    for node in file.graph.nodes:
        if not isinstance(node.params, RememberParams) or not asks_to_remember(node.params):
            continue
        if waiting := sorted(_reached(onward[node.name], onward) & answering):
            yield root.at("nodes", node.name).wrong(
                f"asks a model before `{waiting[0]}` answers, and the user waits for both: put it behind."
            )


def _reached(starts: Collection[str], ways: Mapping[str, Collection[str]]) -> set[str]:
    seen, waiting = set[str](), list(starts)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += ways[name]
    return seen


# Storages.


async def _opened(root: Part, file: GraphFile, folder: str) -> list[DocumentError]:
    """What shows when the nodes meet their storages."""
    return [_placed(root, place, error) async for place, error in yaml_open.trouble(file, folder)]


def _placed(root: Part, place: tuple[str, ...], error: Fault) -> DocumentError:
    part = root.at(*place)
    # The key that the sentence names, or else the one that the storage is behind.
    if place[0] == "memories":
        part = part.at("file")
        return part.wrong(f"does not work. {error.message}")
    named = [key for key in part.object() if f"`{key}`" in error.message or f" {key}." in error.message]
    for key in (*named, *_SOURCES):
        if key in part.value:
            return part.at(key).wrong(f"does not work. {error.message}")
    return part.wrong(f"does not work. {error.message}")


def _wrong_kinds(root: Part, file: GraphFile) -> Iterator[DocumentError]:
    kinds = {storage.name: storage.kind for storage in file.storages}
    for node in file.graph.nodes:
        named = node.params.string_storage if isinstance(node.params, IntentToInstructionParams) else None
        if named is not None and kinds.get(named, StringStorageKind.MAP) != StringStorageKind.MAP:
            yield root.at("nodes", node.name, "string_storage").wrong(
                f"is `{named}`, which is not a Map: write it as an object of strings."
            )


def _storages(root: Part, file: GraphFile, folder: str) -> Iterator[DocumentError]:
    knowledge = [each.name for each in file.knowledge if not each.memory_path]
    memories = [each.name for each in file.knowledge if each.memory_path]
    strings = [each.name for each in file.storages]
    used: set[str] = set()
    for field, section, brought in (
        ("string_storage", "storages", strings),
        ("pronunciations", "storages", strings),
        ("embedded_string_storage", "knowledge", [*knowledge, *memories]),
        ("memory", "memories", memories),
    ):
        for node in file.graph.nodes:
            name = getattr(node.params, field, None)
            if not name:
                continue
            used.add(f"{brought is strings} {name}")
            if name not in brought and not (field != "memory" and confined.exists(folder, name)):
                hint = suggestion(name, brought)
                where = "not in `memories`"
                if field != "memory":
                    where = f"neither in `{section}` nor a file next to the graph"
                yield root.at("nodes", node.name, field).wrong(
                    f"is `{name}`, which is {where}: the program that runs the graph must provide it.{hint}"
                )
    for section, is_strings, brought in (
        ("storages", True, strings),
        ("knowledge", False, knowledge),
        ("memories", False, memories),
    ):
        for name in brought:
            if f"{is_strings} {name}" not in used:
                yield root.at(section, name).wrong("is used by no node.")
