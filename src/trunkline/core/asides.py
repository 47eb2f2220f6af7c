"""What agents tell besides their answers, in a line: what the nodes of a graph want to be known, the way that a turn
took through them, how much there is to hear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.core.events import MCP_READY, Audio, Extension
from trunkline.core.graph.turns import NODE_EVENT

#: Names of tools in a line. `/mcp` lists them all.
MOST_TOOLS = 20
#: Of one sample of sound.
_SAMPLE_BYTES = 2


def told(event: Extension) -> str:
    """What only some agents say, in a line: of a node `[NODE: TYPE] KEY=VALUE, ...`."""
    data = event.data
    if event.kind == MCP_READY:
        tools = list(map(str, data.get("tools", ())))
        has = f"{len(tools)} tools" if len(tools) > MOST_TOOLS else ", ".join(tools) or "no tools"
        return f"MCP server `{data.get('name')}` is connected: {has}."
    pairs = data.get("pairs")
    if event.kind != NODE_EVENT or not isinstance(pairs, Mapping):
        return f"{event.kind}: {dict(data)}"
    values = ", ".join(f"{key}={value}" for key, value in pairs.items())
    return f"[{data.get('node')}: {data.get('type')}] {values}"


def way(found: Mapping[str, Any], sound_seconds: float = 0.0) -> str:
    """The way that a turn took through its graph: `guard not_triggered > answer default; 12 ms, 5 tokens`."""
    nodes = (f"{node.get('name')} {node.get('exit', '')}".strip() for node in _nodes(found))
    took, tokens = found.get("wall_ms"), found.get("tokens_generated")
    parts = [*([f"{took:.0f} ms"] if isinstance(took, int | float) else []), *([f"{tokens} tokens"] if tokens else [])]
    parts += [f"{sound_seconds:.1f} s of sound"] if sound_seconds else []
    error = found.get("error")
    parts += [f"error {error['code']}"] if isinstance(error, Mapping) and "code" in error else []
    return f"({' > '.join(nodes)}; {', '.join(parts)})"


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same, for a JSON object."""
    kept = {key: found.get(key) for key in ("status", "wall_ms", "ttft_ms", "tokens_generated", "error")}
    nodes = [{key: node.get(key) for key in ("name", "type", "exit", "ms")} for node in _nodes(found)]
    return {**kept, "nodes": nodes}


def seconds(event: Audio) -> float:
    """How long it can be heard."""
    return len(event.data) / _SAMPLE_BYTES / event.channels / event.rate


def _nodes(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A server may say anything."""
    nodes = found.get("nodes")
    return [node for node in nodes if isinstance(node, Mapping)] if isinstance(nodes, list) else []
