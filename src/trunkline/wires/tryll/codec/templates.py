"""A short cut for writing the frames of a turn: `SendMessageRequest`, `AnswerText`, `TurnComplete` and `NodeEvent`.

All that is the same in every frame of a kind is kept as one piece, and the rest is packed behind it. To that end the
offsets of a table's strings stand in front of its numbers: constant ones belong to the piece.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from trunkline.wires.tryll.codec.shapes import WIDTHS, shape_of
from trunkline.wires.tryll.codec.writer import TAILS, utf8, write
from trunkline.wires.tryll.messages import (
    BODIES,
    AnswerText,
    Message,
    NodeEvent,
    SendMessageRequest,
    TurnComplete,
)


def front_of(kind: type[Message], *names: str) -> tuple[bytes, int, int]:
    """The bytes up to a body whose fields have this order, where the body begins, and its size."""
    fields = {field.name: field for field in shape_of(kind).fields}
    entries = [0] * shape_of(kind).positions
    size = 4
    for name in names:
        entries[fields[name].position] = size
        size += WIDTHS[fields[name].code]
    size += -size % 4
    vtable = Struct(f"<{2 + len(entries)}H").pack(4 + 2 * len(entries), size, *entries)
    # The root's vtable is at 4, the root at 12, the body's vtable at 24.
    body = 24 + len(vtable) + -len(vtable) % 8
    front = Struct("<IHHHHiIB3x").pack(12, 8, 12, 8, 4, 8, body - 16, BODIES.index(kind) + 1)
    return (front + vtable).ljust(body, b"\0") + Struct("<i").pack(body - 24), body, size


_pack_u32 = Struct("<I").pack

#: In which order the fields stand in our frames.
ORDERS: dict[type[Message], tuple[str, ...]] = {
    SendMessageRequest: ("text", "request_id", "agent_id"),
    AnswerText: ("text", "request_id", "agent_id", "is_delta", "is_final"),
    TurnComplete: (
        "debug_info", "request_id", "agent_id", "tokens_generated", "tokens_prompt", "tokens_cached", "status",
    ),
    NodeEvent: ("node_name", "event_type", "kv_pairs", "agent_id"),
}  # fmt: skip


def _with_text(kind: type[Message]) -> bytes:
    """The front, and the offset of a text that follows the body; its field is the first."""
    front, _, size = front_of(kind, *ORDERS[kind])
    return front + Struct("<I").pack(size - 4)


_SEND = _with_text(SendMessageRequest)
_pack_send = Struct(f"<{len(_SEND)}sQQI").pack
_ANSWER = _with_text(AnswerText)
_pack_answer = Struct(f"<{len(_ANSWER)}sQQ??2xI").pack
_COMPLETE = _with_text(TurnComplete)
_pack_complete = Struct(f"<{len(_COMPLETE)}sQQiiiB3xI").pack


def _encode_send_message(message: SendMessageRequest) -> bytes:
    data = utf8(message.text)
    size = len(data)
    return _pack_send(_SEND, message.request_id, message.agent_id, size) + data + TAILS[size & 3]


def _encode_answer_text(message: AnswerText) -> bytes:
    data = utf8(message.text)
    size = len(data)
    return (
        _pack_answer(_ANSWER, message.request_id, message.agent_id, message.is_delta, message.is_final, size)
        + data
        + TAILS[size & 3]
    )


def _encode_turn_complete(message: TurnComplete) -> bytes:
    data = utf8(message.debug_info)
    size = len(data)
    return (
        _pack_complete(
            _COMPLETE,
            message.request_id,
            message.agent_id,
            message.tokens_generated,
            message.tokens_prompt,
            message.tokens_cached,
            message.status,
            size,
        )
        + data
        + TAILS[size & 3]
    )


#: Texts of fewer bytes than this are packed with their frame.
SHORT = 1024


class _Whole(dict[int, tuple[Callable[..., bytes], bytes]]):
    """By the words that a text fills but for its last: what packs a whole frame, and its constant bytes."""

    def __init__(self, front: bytes, form: str) -> None:
        super().__init__()
        self._front = front
        self._form = form

    def __missing__(self, words: int) -> tuple[Callable[..., bytes], bytes]:
        # What is packed is filled up with zeros, which a text needs behind it.
        pack = Struct(f"<{4 + len(self._front)}s{self._form}{4 * words + 4}s")
        made = self[words] = pack.pack, Struct("<I").pack(pack.size - 4) + self._front
        return made


_ANSWERS = _Whole(_ANSWER, "QQ??2xI")
_COMPLETES = _Whole(_COMPLETE, "QQiiiB3xI")


def answer_frame(request_id: int, agent_id: int, text: str, is_delta: bool = False, is_final: bool = False) -> bytes:
    """An `AnswerText` as a whole frame, for a server that sends thousands. The caller sees to it that it fits."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = utf8(text)
    size = len(data)
    if size < SHORT:
        pack, front = _ANSWERS[size >> 2]
        return pack(front, request_id, agent_id, is_delta, is_final, size, data)
    payload = _encode_answer_text(AnswerText(request_id, agent_id, text, is_delta, is_final))
    return _pack_u32(len(payload)) + payload


def complete_frame(
    request_id: int,
    agent_id: int,
    status: int,
    debug_info: str = "",
    generated: int = 0,
    prompt: int = 0,
    cached: int = 0,
) -> bytes:
    """A `TurnComplete` with its counts of tokens as a whole frame. The caller sees to it that it fits."""
    data = utf8(debug_info) if debug_info else b""
    size = len(data)
    if size < SHORT:
        pack, front = _COMPLETES[size >> 2]
        return pack(front, request_id, agent_id, generated, prompt, cached, status, size, data)
    payload = _encode_turn_complete(TurnComplete(request_id, agent_id, status, debug_info, generated, prompt, cached))
    return _pack_u32(len(payload)) + payload


_EVENT, _EVENT_AT, _EVENT_SIZE = front_of(NodeEvent, *ORDERS[NodeEvent])

#: Events with more pairs than this go the long way.
MOST_PAIRS = 16
#: The events that are remembered, by node, type and keys. A graph has few; but clients choose the names, so neither
#: many nor long ones are.
MAX_EVENTS = 256
MAX_EVENT_NAMES = 1024


class _EventPlan:
    """A `NodeEvent` of which only the agent and the values are not known yet.

    The body, the vector, the vtable of the pairs, the pairs, the texts that are known; then the values.
    """

    __slots__ = ("pack", "pieces")

    def __init__(self, names: tuple[str, ...]) -> None:
        count = len(names) - 2
        vector = _EVENT_AT + _EVENT_SIZE
        first = vector + 4 + 4 * count + 8
        texts, at, starts = b"", first + 12 * count, []
        for name in names:
            data = utf8(name)
            starts.append(at + len(texts))
            texts += _pack_u32(len(data)) + data + TAILS[len(data) & 3]
        end = at + len(texts)
        body = Struct("<III").pack(starts[0] - _EVENT_AT - 4, starts[1] - _EVENT_AT - 8, _EVENT_SIZE - 12)
        offsets = [4 * (count - number) + 8 + 12 * number for number in range(count)]
        piece = Struct(f"<I{count}IHHHH").pack(count, *offsets, 8, 12, 4, 8)
        #: What is packed: known bytes; in between the agent, and the offset of each value if all before it were empty.
        self.pieces: list[Any] = [_EVENT + body, 0]
        form = f"<{len(self.pieces[0])}sQ"
        for number in range(count):
            at = first + 12 * number
            piece += Struct("<iI").pack(8 + 12 * number, starts[2 + number] - at - 4)
            self.pieces += (piece, end - at - 8)
            form += f"{len(piece)}sI"
            piece = b""
        self.pieces.append(piece + texts)
        self.pack = Struct(f"{form}{len(piece + texts)}s").pack


_EVENT_PLANS: dict[tuple[str, ...], _EventPlan] = {}


def _encode_node_event(message: NodeEvent) -> bytes:
    pairs = message.kv_pairs
    names = (message.node_name, message.event_type, *[pair.key for pair in pairs])
    plan = _EVENT_PLANS.get(names)
    if plan is None:
        if len(pairs) > MOST_PAIRS or sum(map(len, names)) > MAX_EVENT_NAMES:
            return write(message)
        if len(_EVENT_PLANS) >= MAX_EVENTS:
            _EVENT_PLANS.clear()
        plan = _EVENT_PLANS[names] = _EventPlan(names)
    pieces = plan.pieces[:]
    pieces[1] = message.agent_id
    values = b""
    index = 3
    for pair in pairs:
        pieces[index] += len(values)
        index += 2
        try:
            data = pair.value.encode()
        except UnicodeEncodeError:
            data = utf8(pair.value)
        values += _pack_u32(len(data)) + data + TAILS[len(data) & 3]
    return plan.pack(*pieces) + values


ENCODERS: dict[type[Message], Callable[[Any], bytes]] = {
    SendMessageRequest: _encode_send_message,
    AnswerText: _encode_answer_text,
    TurnComplete: _encode_turn_complete,
    NodeEvent: _encode_node_event,
}
