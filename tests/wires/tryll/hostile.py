"""Frames that lie, made by hand. All of them are well formed as far as each of their offsets goes."""

from __future__ import annotations

from struct import pack

from trunkline.wires.tryll.codec import MAX_FRAME
from trunkline.wires.tryll.codec.templates import front_of
from trunkline.wires.tryll.messages import (
    CreateAgentRequest,
    CreateStringStorageRequest,
    ListModelsResponse,
    Message,
    NodeEvent,
)


def string(text: str) -> bytes:
    """A string, ended and padded."""
    data = text.encode()
    return pack("<I", len(data)) + data + bytes(4 - len(data) % 4)


def body_with_vector(kind: type[Message], field: str, count: int, target: bytes, lead: int = 0) -> bytes:
    """A message with one vector, all of whose offsets lead `lead` bytes into what follows it."""
    front, body, _ = front_of(kind, field)
    first = body + 12
    here = first + 4 * count + lead
    offsets = b"".join(pack("<I", here - (first + 4 * number)) for number in range(count))
    return front + pack("<II", 4, count) + offsets + target


def same_string(size: int, count: int, filling: str = "x") -> bytes:
    """A vector of strings that are all the same one."""
    return body_with_vector(CreateStringStorageRequest, "strings", count, string(filling * size))


def same_wide_string() -> bytes:
    """The same, of a text that takes four times its bytes in memory."""
    return body_with_vector(CreateStringStorageRequest, "strings", 60_000, string("\N{GRINNING FACE}" + "x" * 700_000))


def same_table() -> bytes:
    """A vector of as many tables as fit, all the same empty one."""
    count = (MAX_FRAME - 100) // 4
    return body_with_vector(ListModelsResponse, "models", count, pack("<HHi", 4, 4, 4), lead=4)


def many_vtables() -> bytes:
    """Tables each of which has a vtable of its own that nobody has seen before."""
    count = 40_000
    front, body, _ = front_of(ListModelsResponse, "models")
    first = body + 12
    at = first + 4 * count
    offsets, tables = [], []
    for number in range(count):
        offsets.append(pack("<I", at + 8 - (first + 4 * number)))
        tables.append(pack("<HHHHi", 8, 8 + number, 0, 4, 8) + bytes(4))
        at += 16
    return front + pack("<II", 4, count) + b"".join(offsets + tables)


def tables_in_tables() -> bytes:
    """A graph of a thousand nodes that are the same, each with a thousand tools, each with as many parameters."""
    front, body, _ = front_of(CreateAgentRequest, "graph")
    out = bytearray(front + pack("<I", 0))

    def table(vtable: bytes, fields: int) -> int:
        out.extend(vtable)
        at = len(out)
        out.extend(pack("<i", len(vtable)) + bytes(4 * fields))
        return at

    def lead(at: int, to: int) -> None:
        out[at : at + 4] = pack("<I", to - at)

    def vector(count: int) -> int:
        at = len(out)
        out.extend(pack("<I", count) + bytes(4 * count))
        return at

    graph = table(pack("<HHHH", 6, 8, 4, 0), 1)
    lead(body + 4, graph)
    nodes = vector(1000)
    lead(graph + 4, nodes)
    # `tools` is at position 3 of a node: the union takes two.
    node = table(pack("<HHHHHHHH", 12, 8, 0, 0, 0, 4, 0, 0), 1)
    tools = vector(1000)
    lead(node + 4, tools)
    tool = table(pack("<HHHHHH", 10, 8, 0, 0, 4, 0), 1)
    parameters = vector(1000)
    lead(tool + 4, parameters)
    parameter = table(pack("<HH", 4, 4), 0)
    for start, target in ((nodes, node), (tools, tool), (parameters, parameter)):
        for number in range(1000):
            lead(start + 4 + 4 * number, target)
    return bytes(out)


def event_of_one_text(size: int, count: int) -> bytes:
    """An event arranged as builders do it, whose texts are all the same one."""
    front, body, _ = front_of(NodeEvent, "node_name", "event_type", "kv_pairs", "agent_id")
    vector = body + 24
    pairs = vector + 4 + 4 * count + 8
    text = pairs + 12 * count
    out = front + pack("<IIIQ", text - body - 4, text - body - 8, vector - body - 12, 1)
    out += pack("<I", count) + b"".join(
        pack("<I", pairs + 12 * number - (vector + 4 + 4 * number)) for number in range(count)
    )
    out += pack("<HHHH", 8, 12, 4, 8)
    for number in range(count):
        at = pairs + 12 * number
        out += pack("<iII", at - (pairs - 8), text - at - 4, text - at - 8)
    return out + string("\N{GRINNING FACE}" + "x" * size)
