"""Makes the wire vectors of the game clients, in clients/vectors/, with our own codec.

    python scripts/client_vectors.py          write what is not as it should be
    python scripts/client_vectors.py --check  say what is not, and exit with 1 if anything is

`transcript.jsonl` has every message of the schema, `refused.jsonl` what a reader must not believe. What the lines mean,
and what a client's program does with them, is in clients/vectors/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import pack, pack_into, unpack_from
from typing import Any

from trunkline.base.values import Value
from trunkline.core.graph.description import GraphDescription, NodeDescription, NodeParams
from trunkline.wires.tryll.codec import decode, encode, json_form
from trunkline.wires.tryll.codec.errors import FrameError
from trunkline.wires.tryll.codec.shapes import UNIONS, Field, shape_named, shape_of, tag_of
from trunkline.wires.tryll.messages import (
    BODIES,
    NODE_PARAMS,
    AnswerText,
    ChangeAgentParamRequest,
    CreateAgentRequest,
    CreateStringStorageRequest,
    FromClient,
    HistoryEntry,
    ListModelsResponse,
    Message,
    ModelInfo,
    NodeEvent,
    NodeEventKeyValue,
    SaveHistoryResponse,
    SendMessageRequest,
    TtsAudioFrame,
)

FOLDER = Path(__file__).resolve().parent.parent / "clients" / "vectors"

#: The greatest and the least of each scalar; of floats also what is easily lost on the way.
GREATEST: dict[str, Any] = {
    "Q": 2**64 - 1,
    "I": 2**32 - 1,
    "i": 2**31 - 1,
    "H": 2**16 - 1,
    "B": 255,
    "f": 3.4028234663852886e38,
    "?": True,
}
LEAST: dict[str, Any] = {"Q": 0, "I": 0, "i": -(2**31), "H": 0, "B": 0, "f": 1.401298e-45, "?": False}

#: One to four bytes of UTF-8, what is right to left, joined or at the ends of ranges, and what JSON escapes.
#: No U+0000: some engines' strings end there.
TEXTS = (
    "",
    "Where is the mill?",
    "Grüß Gott, Ærøskøbing",
    "猫はどこですか",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0010ffff\U00010000",
    "\u0645\u0631\u062d\u0628\u0627 \u202ex\u202c e\u0301",
    '"\\/\b\f\n\r\t\x01\x1f\x7f',
    "\ufeff\ufffe\uffff\ud7ff\ue000",
    "abc",
    "abcd",
    "abcde",
)


# The messages.


def filled(kind: type[Value], numbers: dict[str, Any] | None = None, member: int = 0) -> Any:
    """A table with something in every field; vectors have two items, of which the second is empty."""
    return kind(*(_value(field, numbers, member, place) for place, field in enumerate(shape_of(kind).fields)))


def _value(field: Field, numbers: dict[str, Any] | None, member: int, place: int) -> Any:
    if field.kind == "scalar":
        if numbers is not None:
            return numbers[field.code]
        return {"?": not field.default, "f": 0.25 + place}.get(field.code, 3 + place)
    if field.kind == "string":
        return f"{field.name} {TEXTS[4]}" if place % 2 else f"{field.name} {TEXTS[2]}"
    if field.kind == "strings":
        return (f"first of {field.name}", "", TEXTS[4])
    if field.kind == "samples":
        return pack("<6h", 0, 1, -1, 32767, -32768, 258)
    if field.kind == "table":
        return filled(shape_named(field.of).type, numbers)
    if field.kind == "tables":
        table = shape_named(field.of).type
        return (filled(table, numbers), table())
    return filled(UNIONS[field.of][member], numbers)


def transcript() -> Iterator[tuple[Message, bytes]]:
    """Each message and its payload."""
    for message in _messages():
        yield message, encode(message)
    # Nothing is written: what is read is the schema's defaults.
    for tag, kind in enumerate(BODIES, 1):
        yield kind(), bare(tag)
    for tag, params in enumerate(NODE_PARAMS, 1):
        yield ChangeAgentParamRequest(params=params()), bare_params(tag)


def _messages() -> Iterator[Message]:
    for kind in BODIES:
        yield filled(kind)
        yield kind()
        yield filled(kind, GREATEST)
        yield filled(kind, LEAST)
    for number, params in enumerate(NODE_PARAMS):
        yield ChangeAgentParamRequest(1, 2, "full", filled(params))
        yield ChangeAgentParamRequest(1, 2, "inherits everything", params())
        yield ChangeAgentParamRequest(1, 2, "extreme", filled(params, GREATEST if number % 2 else LEAST))
    yield CreateAgentRequest(7, _graph(), "any", True, 16)
    yield ListModelsResponse(1, tuple(filled(ModelInfo, LEAST) for _ in range(3)), True)
    for text in TEXTS:
        yield SendMessageRequest(1, 2, text)
        yield AnswerText(1, 2, text, True, False)
    yield AnswerText(1, 2, "long, " * 1000, False, True)
    pairs = tuple(NodeEventKeyValue(key, value) for key, value in zip(TEXTS, reversed(TEXTS), strict=True))
    yield NodeEvent(1, "node", "an_event_that_is_new", pairs)
    yield CreateStringStorageRequest(1, "mapped", TEXTS, "", 2, TEXTS)
    yield SaveHistoryResponse(1, 2, tuple(HistoryEntry("user", text) for text in TEXTS))
    yield TtsAudioFrame(1, pack("<1201h", *range(-600, 601)))


def _graph() -> GraphDescription:
    """A graph with each of the nodes."""
    nodes: list[NodeDescription] = []
    for kind in NODE_PARAMS:
        params: NodeParams = filled(kind)
        nodes.append(NodeDescription(kind.__name__, params))
    return GraphDescription((*nodes, NodeDescription("without parameters")), nodes[0].name)


# Payloads that our writer does not make.


def bare(tag: int) -> bytes:
    """A message of which every field is absent."""
    #       root   vtable of the root     root: tag, padding, body   vtable of the body, the body
    return pack("<I HHHH iBxxxI HHi", 12, 8, 12, 4, 8, 8, tag, 8, 4, 4, 4)


def bare_params(tag: int) -> bytes:
    """A `ChangeAgentParamRequest` of which every field is absent, but for parameters of which every field is absent."""
    out = bytearray(pack("<I HHHH iBxxxI", 12, 8, 12, 4, 8, 8, tag_of("MessageBody", ChangeAgentParamRequest()), 20))
    # The tag of the parameters is at position 3, their value at position 4.
    out += pack("<HHHHHHHxx", 14, 12, 0, 0, 0, 4, 8)
    out += pack("<iBxxxI HHi", 16, tag, 8, 4, 4, 4)
    return bytes(out)


def refused() -> Iterator[tuple[str, bytes]]:
    """What is wrong, and the payload."""
    yield "empty", b""
    yield "only a root offset", pack("<I", 4)
    yield "all zero", bytes(64)
    yield "all ones", b"\xff" * 64
    yield from _cut()
    yield from _lying_numbers()
    yield from _unknown()
    yield from _texts()
    yield "a hundred tables, a hundred times in each of a hundred others", _tables_in_tables(100)
    yield "one string that a vector holds many times", _same_string(4000, 400)


def _cut() -> Iterator[tuple[str, bytes]]:
    for message in (SendMessageRequest(1, 2, "hello"), filled(NodeEvent), filled(CreateAgentRequest)):
        payload = encode(message)
        for end in sorted({*range(4, min(len(payload), 64), 4), len(payload) // 2, len(payload) - 4}):
            yield f"{type(message).__name__} cut after {end} bytes", payload[:end]


def _lying_numbers() -> Iterator[tuple[str, bytes]]:
    """Each word of a frame, one after the other, replaced by what leads out of it, where that matters."""
    payload = encode(NodeEvent(1, "node", "type", (NodeEventKeyValue("key", "value"),)))
    for at in range(0, len(payload) - 3, 4):
        for word in (0x7FFFFFFC, 0xFFFFFFFC, 0x80000000):
            broken = bytearray(payload)
            pack_into("<I", broken, at, word)
            if _is_refused(bytes(broken)):
                yield f"NodeEvent with {word:#x} at {at}", bytes(broken)


def _unknown() -> Iterator[tuple[str, bytes]]:
    yield "no body: the tag is 0", bare(0)
    yield "a message of a kind that nobody knows", bare(250)
    yield "a node of a kind that nobody knows", bare_params(250)
    payload = bytearray(bare_params(1))
    # The vtable of the body: the value of the union is absent.
    pack_into("<H", payload, 24 + 12, 0)
    yield "a union that has a tag and no value", bytes(payload)


def _texts() -> Iterator[tuple[str, bytes]]:
    payload = encode(SendMessageRequest(1, 2, "hello12"))
    for name, data in (
        ("a lone continuation byte", b"\x80"),
        ("an overlong slash", b"\xc0\xaf"),
        ("an overlong sequence of three", b"\xe0\x80\xaf"),
        ("an overlong sequence of four", b"\xf0\x80\x80\xaf"),
        ("a surrogate", b"\xed\xa0\x80"),
        ("what is beyond U+10FFFF", b"\xf4\x90\x80\x80"),
        ("a byte that UTF-8 does not have", b"\xff"),
        ("a sequence that is cut off", b"\xe2\x82"),
    ):
        yield f"a text with {name}", payload.replace(b"hello12", b"hello12"[: 7 - len(data)] + data)
    yield "a text that has no zero byte at its end", payload.replace(b"hello12\0", b"hello12!")
    at = payload.index(b"hello12") - 4
    longer = bytearray(payload)
    pack_into("<I", longer, at, unpack_from("<I", payload, at)[0] + 1000)
    yield "a text that is longer than the frame", bytes(longer)


def _tables_in_tables(count: int) -> bytes:
    """A graph whose nodes are all the same one, with tools that are the same, with parameters that are the same."""
    tag = BODIES.index(CreateAgentRequest) + 1
    out = bytearray(pack("<I HHHH iBxxxI", 12, 8, 12, 4, 8, 8, tag, 12))
    out += pack("<HHHHiI", 8, 8, 0, 4, 8, 0)

    def lead(at: int) -> None:
        pack_into("<I", out, at, len(out) - at)

    def vector() -> int:
        """Of offsets to one table, which stands behind its vtable of this length."""
        first = len(out) + 4
        out.extend(pack("<I", count) + bytes(4 * count))
        return first

    def fill(first: int) -> None:
        for number in range(count):
            lead(first + 4 * number)

    def table(*entries: int) -> int:
        """A vtable, and a table behind it; where the table is."""
        held = pack(f"<{2 + len(entries)}H", 4 + 2 * len(entries), 8, *entries)
        held += bytes(len(held) % 4)
        out.extend(held)
        return len(held)

    behind = table(4)
    lead(36)
    out.extend(pack("<iI", behind, 4))
    # `tools` of a node is at position 3, since the union takes two; `parameters` of a tool at position 2.
    for entries in ((0, 0, 0, 4), (0, 0, 4)):
        first = vector()
        behind = table(*entries)
        fill(first)
        out.extend(pack("<iI", behind, 4))
    first = vector()
    out.extend(pack("<HH", 4, 4))
    fill(first)
    return bytes(out + pack("<i", 4))


def _same_string(size: int, count: int) -> bytes:
    """A storage in which all strings are the same one."""
    tag = BODIES.index(CreateStringStorageRequest) + 1
    out = bytearray(pack("<I HHHH iBxxxI", 12, 8, 12, 4, 8, 8, tag, 16))
    out += pack("<HHHHHxx", 10, 8, 0, 0, 4)
    out += pack("<iI", 12, 4) + pack("<I", count)
    first = len(out)
    text = first + 4 * count
    out += b"".join(pack("<I", text - (first + 4 * number)) for number in range(count))
    return bytes(out + pack("<I", size) + b"x" * size + bytes(4))


def _is_refused(payload: bytes) -> bool:
    try:
        decode(payload)
    except FrameError:
        return True
    return False


# The files.


def files() -> dict[str, str]:
    """The text of each file.

    Raises:
        ValueError: our own codec does not read a vector as it is meant.
    """
    lines = []
    for message, payload in transcript():
        if decode(payload) != message:
            raise ValueError(f"a `{type(message).__name__}` is not read as it was written")
        sender = "client" if isinstance(message, FromClient) else "server"
        lines.append({"from": sender, "message": json_form.full(message), "frame": payload.hex()})
    wrong = []
    for why, payload in refused():
        try:
            decode(payload)
        except FrameError as error:
            wrong.append({"why": why, "code": error.code, "frame": payload.hex()})
        else:
            raise ValueError(f"it is not refused: {why}")
    return {"transcript.jsonl": _jsonl(lines), "refused.jsonl": _jsonl(wrong)}


def _jsonl(lines: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def stale() -> dict[Path, str]:
    """The files that are not as they have to be, and how they have to be."""
    wanted = {FOLDER / name: text for name, text in files().items()}
    return {
        path: text for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def main(arguments: list[str] | None = None) -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description="Makes the wire vectors of the game clients.")
    parser.add_argument("--check", action="store_true", help="say what is stale, and write nothing")
    check = parser.parse_args(arguments).check
    found = stale()
    for path, text in found.items():
        print(f"{'stale' if check else 'written'}: {path.name}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and found:
        print("Run `python scripts/client_vectors.py`, and commit what it writes.")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
