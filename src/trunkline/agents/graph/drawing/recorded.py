"""A turn that was recorded: its diagnostics, read with care, and what each node of it decided, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError

#: More than the diagnostics of any turn.
MAX_BYTES = 8 * 1024 * 1024
#: Steps of a turn that are looked at: as many as an agent may take.
MAX_STEPS = 10_000


class RecordedNode(Value):
    """A node that ran. `exit` is empty if it did not come to its end."""

    name: str
    type: str
    exit: str
    ms: float
    data: Mapping[str, str]


class Recorded(Value):
    """A turn."""

    steps: tuple[RecordedNode, ...]
    status: str = ""
    wall_ms: float = 0.0
    tokens: int = 0
    error: str = ""
    message: str = ""
    answer: str = ""


def load(path: str) -> Recorded:
    """Read the file that `trunkline graph run --record` writes, or the `debug_info` of any turn.

    Raises:
        ConfigError: it cannot be read, or is no such thing.
    """
    try:
        contents = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"The turn `{path}` cannot be read: {error.strerror}.") from None
    if contents.cut:
        raise ConfigError(f"The turn `{path}` is larger than {MAX_BYTES} bytes.")
    try:
        found = jsontext.loads(contents.data)
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}.") from None
    try:
        return read(found)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def read(found: Any) -> Recorded:
    """The turn of a JSON value.

    Raises:
        ConfigError: it is none.
    """
    nodes = found.get("nodes") if isinstance(found, dict) else None
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        raise ConfigError("these are not the diagnostics of a turn: they have no list `nodes`.")
    error = found.get("error")
    told = ""
    if isinstance(error, dict):
        named = " ".join(filter(None, (_text(error, key) for key in ("code", "name", "kind"))))
        told = f"{named}: {_text(error, 'message')}"
    return Recorded(
        tuple(map(_step, nodes[:MAX_STEPS])),
        _text(found, "status"),
        _number(found, "wall_ms"),
        int(_number(found, "tokens_generated")),
        told,
        _said(found, "HumanMessage"),
        _said(found, "CharacterMessage"),
    )


def _step(node: Mapping[str, Any]) -> RecordedNode:
    data = node.get("data")
    texts = {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
    return RecordedNode(_text(node, "name"), _text(node, "type"), _text(node, "exit"), _number(node, "ms"), texts)


def _said(found: Mapping[str, Any], kind: str) -> str:
    parts = found.get("interaction")
    texts = (
        (_text(part, "text") for part in parts if isinstance(part, dict) and part.get("_type") == kind)
        if isinstance(parts, list)
        else ()
    )
    return "\n".join(texts)


def _text(of: Mapping[str, Any], key: str) -> str:
    value = of.get(key)
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def _number(of: Mapping[str, Any], key: str) -> float:
    value = of.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    # What no clock shows is no time; not a number is neither.
    return float(value) if 0 <= value < 1e12 else 0.0


def decision(step: RecordedNode) -> str:
    """What a node decided, beyond the exit that it took; empty if there is nothing to say."""
    data = step.data
    match step.type:
        case "HumanMessageGuardrail":
            return f"pattern {data['pattern']}" if data.get("pattern") else ""
        case "Retrieve":
            return _nearest(data)
        case "ToolCall":
            return data.get("calls") or ("no tool" if step.exit else "")
        case "ClassifyIntent":
            near = f" at {data['raw_distance'][:4]}" if data.get("raw_distance") else ""
            # A record that is too far away has no say, and is still what there was to choose from.
            return f"{data.get('result.intent') or ('nothing near enough' if near else '')}{near}"
        case "ClassifyIntentLLM":
            chance = f" ({data['top_prob'][:4]})" if data.get("top_prob") else ""
            reason = data.get("not_found_reason", "").replace("_", " ")
            return f"{data.get('result.intent', '')}{chance}{f': {reason}' if reason else ''}".removeprefix(": ")
        case "IntentToInstruction":
            return f"{data.get('intent') or 'no intent'}: {data.get('result_text') or 'nothing'}"
        case "Remember":
            return data.get("remembered") or data.get("not_remembered", "")
        case "Director":
            ended = f", until {data['ended_by']}" if data.get("ended_by") else ""
            return f"{data['speakers']}{ended}" if data.get("speakers") else ""
        case _:
            return ""


def _too_far(looked_at: str) -> str:
    """Why nothing was found. Only the nearest records are looked at, however many the storage has."""
    match looked_at:
        case "":
            return ""
        case "0":
            return "there is nothing to find"
        case "1":
            return "the nearest is not near enough"
        case _:
            return f"the nearest {looked_at} are not near enough"


def _nearest(data: Mapping[str, str]) -> str:
    count = data.get("result_count", "0")
    first = data.get("result[000].text")
    if first is None:
        return _too_far(data.get("raw_result_count", ""))
    distance = data.get("result[000].distance", "")[:4]
    return f"{count} at {distance}: {first}"
