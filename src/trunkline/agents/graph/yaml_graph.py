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
for names, the names can be written, and where it has a text with commas or JSON in it, a list or an object.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, get_type_hints

from trunkline.agents import script_source
from trunkline.agents.graph.nodes.strings import Guardrail
from trunkline.agents.graph.params import RULES
from trunkline.agents.graph.plan import make_nodes
from trunkline.agents.script_source import Part, listed
from trunkline.base import jsontext
from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll import messages
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    CannedResponseSelectionStrategy,
    CreateEmbeddedStringStorageRequest,
    CreateStringStorageRequest,
    GraphDescription,
    NodeDescription,
    NodeParams,
    Placement,
    StringStorageKind,
)

#: Larger than any graph that a person writes.
MAX_BYTES = 1024 * 1024

_KINDS: dict[str, type[NodeParams]] = {rules.type: params for params, rules in RULES.items()}
_NAMES: dict[str, dict[str, int]] = {
    field: {name.lower(): number for number, name in enumeration.names().items()}
    for field, enumeration in (("placement", Placement), ("selection_strategy", CannedResponseSelectionStrategy))
}
_ROOT = ("start", "nodes", "default_model", "diagnostics", "max_steps", "storages", "knowledge")


class GraphFile(Value):
    """What a file says: a graph, how an agent is made of it, and the storages that it brings along."""

    graph: GraphDescription
    default_model: str = ""
    diagnostics: bool = False
    max_steps: int = 0
    storages: tuple[CreateStringStorageRequest, ...] = ()
    knowledge: tuple[CreateEmbeddedStringStorageRequest, ...] = ()


def load(path: str) -> GraphFile:
    """Read and check a graph's file.

    Raises:
        ConfigError: it cannot be read, or no agent can be made of it. What only a host can know is not checked.
    """
    try:
        contents = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"The graph `{path}` cannot be read: {os.strerror(error.errno or 0)}.") from None
    if contents.cut:
        raise ConfigError(f"The graph `{path}` is larger than {MAX_BYTES} bytes.")
    return parse(contents.data, path)


def parse(data: bytes, name: str) -> GraphFile:
    """The same, of a text. `name` is what errors call it; one that ends in `.json` is JSON.

    Raises:
        ConfigError: as `load`.
    """
    try:
        return _read(script_source.parse(data, name))
    except ConfigError as error:
        # The parts are shared with scripts, which is what they call the whole.
        raise ConfigError(error.message.replace(": the script ", ": the graph ", 1), hint=error.hint) from None


def _read(root: Part) -> GraphFile:
    members = root.members(_ROOT, ("start", "nodes"))
    nodes = _all_members(members["nodes"])
    described = tuple(_node(name, part, nodes) for name, part in nodes.items())
    graph = GraphDescription(described, members["start"].text())
    if graph.start_node not in nodes:
        raise members["start"].wrong(f"is `{graph.start_node}`, which is none of the nodes {listed(nodes)}.")
    default_model = members["default_model"].text() if "default_model" in members else ""
    try:
        for node in make_nodes(graph, default_model).values():
            if isinstance(node, Guardrail):
                node.compile(node.params.inline_strings, 3003)
    except TryllError as error:
        about = next((part for name, part in nodes.items() if f"`{name}" in error.message), members["nodes"])
        raise about.wrong(f"does not work. {error.message}") from None
    return GraphFile(
        graph,
        default_model,
        members["diagnostics"].flag() if "diagnostics" in members else False,
        members["max_steps"].count() if "max_steps" in members else 0,
        tuple(_storage(*each) for each in _all_members(members.get("storages")).items()),
        tuple(_knowledge(*each) for each in _all_members(members.get("knowledge")).items()),
    )


def _all_members(part: Part | None) -> dict[str, Part]:
    return part.members(tuple(part.object())) if part is not None else {}


def _node(name: str, part: Part, nodes: Mapping[str, Part]) -> NodeDescription:
    kind = _KINDS[part.members(tuple(part.object()), ("type",))["type"].choice(_KINDS)]
    exits = RULES[kind].exits
    members = part.members(("type", *kind.__fields__, *exits), ("type",))
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for key, member in members.items():
        field = f"{key}_exit" if key in exits else key
        if field in found:
            raise member.wrong("is there twice, with `_exit` and without.")
        if field.endswith("_exit"):
            found[field] = _exit(member, nodes)
        elif field != "type":
            found[field] = _value(field, hints[field], member)
    return NodeDescription(name, kind(**found))


def _exit(part: Part, nodes: Mapping[str, Part]) -> str:
    target = part.text()
    if target and target not in nodes:
        hint = script_source.suggestion(target, nodes)
        raise part.wrong(f"leads to `{target}`, which is no node.{hint}")
    return target


def _value(field: str, hint: Any, part: Part) -> Any:
    """What a field of that type is to be."""
    if field in _NAMES:
        return _NAMES[field][part.choice(_NAMES[field])]
    if field == "sampling":
        return _table(messages.SamplingOverrides, part)
    if field == "tools":
        return tuple(_table(messages.ToolDefinition, item) for item in part.items())
    if field == "parameters":
        return tuple(_table(messages.ToolParamDefinition, item) for item in part.items())
    if field in ("intents_ids", "intents_prompt") and isinstance(part.value, list):
        return ", ".join(_without_comma(item) for item in part.items())
    if field == "filter" and isinstance(part.value, dict):
        return jsontext.dumps(part.value).decode()
    return _simple(hint, part)


def _simple(hint: Any, part: Part) -> Any:
    if hint in (int, float, int | None, float | None):
        value = part.value
        whole = hint in (int, int | None)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise part.wrong("must be a whole number." if whole else "must be a number.")
        return value if whole else float(value)
    if hint is bool:
        return part.flag()
    return part.texts() if hint == tuple[str, ...] else part.text()


def _without_comma(part: Part) -> str:
    text = part.text()
    if "," in text:
        raise part.wrong("has a comma, which is what separates intents.")
    return text


def _table(kind: type[Value], part: Part) -> Any:
    hints = get_type_hints(kind)
    members = part.members(kind.__fields__)
    return kind(**{field: _value(field, hints[field], member) for field, member in members.items()})


def _storage(name: str, part: Part) -> CreateStringStorageRequest:
    if isinstance(part.value, dict):
        texts = {key: member.text() for key, member in _all_members(part).items()}
        return CreateStringStorageRequest(
            0, name, tuple(texts.values()), "", StringStorageKind.MAP, tuple(texts.keys())
        )
    return CreateStringStorageRequest(0, name, part.texts())


def _knowledge(name: str, part: Part) -> CreateEmbeddedStringStorageRequest:
    members = part.members(("embedding_model", "strings"), ("embedding_model", "strings"))
    return CreateEmbeddedStringStorageRequest(
        0, name, "", members["strings"].texts(), members["embedding_model"].text()
    )
