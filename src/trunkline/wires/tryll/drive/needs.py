"""What a client asks for that not every server knows: one that does not would pass over it, and answer otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import NodeDescription, NodeParams

#: The extension that brought each of these fields. The clients for games have this table, too, written by
#: `scripts/client_code.py`; so a name has to mean the same in every message that has it.
EXTENSION_OF: Mapping[str, str] = {
    "stop": "generation",
    "json_schema": "generation",
    "logit_bias": "generation",
    "lora": "generation",
    "timings": "timings",
    "pronunciations": "timings",
    "records_json": "records",
    "memory_path": "memory",
}


def check_known(nodes: Iterable[NodeDescription], extensions: Collection[str]) -> None:
    """See to it that a server with these extensions does all that the nodes ask for.

    Raises:
        TryllError: 5002, it does not.
    """
    for node in nodes:
        for field in _unknown(node.params, extensions):
            raise TryllError(5002, f"This server does not know `{field}`, which the node `{node.name}` has.")


def is_unknown(field: str, extensions: Collection[str]) -> bool:
    """Whether a server with these extensions passes over the field."""
    return field in EXTENSION_OF and EXTENSION_OF[field] not in extensions


def _unknown(params: NodeParams | None, extensions: Collection[str]) -> Iterator[str]:
    """What is asked for, and not known."""
    parts: tuple[tuple[str, Any], ...] = (("", params), ("sampling.", getattr(params, "sampling", None)))
    for prefix, part in parts:
        for field in EXTENSION_OF:
            if getattr(part, field, None) and is_unknown(field, extensions):
                yield prefix + field
