"""The frames of a Tryll turn: written, and read with every byte verified; against the code that `flatc` generates.

The control builds and reads each frame as its documentation shows, with the `flatbuffers` runtime. It verifies nothing:
ours does, and is measured doing so. Frames are read as the other side's builder makes them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bench._measure import Goal, Row, Taken, interleaved, rate_row

from tests.support import flatc
from trunkline.wires.tryll.codec import decode, encode
from trunkline.wires.tryll.messages import (
    AnswerText,
    Message,
    NodeEvent,
    NodeEventKeyValue,
    SendMessageRequest,
    TurnComplete,
)

# By name: the runtime has no annotations.
flatbuffers: Any = importlib.import_module("flatbuffers")
generated = flatc.generated()

#: By the processor: nothing here waits, and what else the machine does is not the codec's.
ENCODE_GOAL = Goal(">=", 40.0, by="CPU")
DECODE_GOAL = Goal(">=", 6.0, by="CPU")

CONTROL = "generated code"

SEND = SendMessageRequest(7, 3, "Who lives in the old mill?")
ANSWER = AnswerText(7, 3, " märchenhaft", True, False)
LAST = AnswerText(7, 3, "", True, True)
COMPLETE = TurnComplete(7, 3, 0, "", 17)
EVENT = NodeEvent(
    3,
    "détect",
    "tool_call",
    (NodeEventKeyValue("tool_name", "set_light"), NodeEventKeyValue("arguments_json", '{"name":"porch","on":"true"}')),
)
#: What passes over the wire in a turn of sixteen tokens with one call.
TURN: tuple[Message, ...] = (SEND, *[ANSWER] * 16, LAST, EVENT, COMPLETE)


def codec_rows(frames: int, rounds: int) -> list[Row]:
    """All rows: so many frames in one measurement."""
    rows = []
    for name, messages, goal in (
        ("a turn", TURN, ENCODE_GOAL),
        ("SendMessageRequest", (SEND,), ENCODE_GOAL),
        ("AnswerText", (ANSWER,), ENCODE_GOAL),
        ("TurnComplete", (COMPLETE,), ENCODE_GOAL),
        # Nearly all of it is text that has to be encoded piece by piece.
        ("NodeEvent", (EVENT,), None),
    ):
        payloads = [theirs_build(message) for message in messages]
        rows.append(_row(f"encode {name}", messages, frames, rounds, encode, theirs_build, goal))
        rows.append(_row(f"verify and decode {name}", payloads, frames, rounds, decode, theirs_read, DECODE_GOAL))
    return rows


def _row(
    name: str,
    given: Sequence[Any],
    frames: int,
    rounds: int,
    ours: Callable[[Any], Any],
    theirs: Callable[[Any], Any],
    goal: Goal | None,
) -> Row:
    items = (list(given) * (frames // len(given) + 1))[:frames]
    pairs = interleaved(rounds, partial(timed, ours, items), partial(timed, theirs, items))
    return rate_row(name, len(items), pairs, CONTROL, goal=goal)


def timed(action: Callable[[Any], Any], items: list[Any]) -> Taken:
    """How long it takes for all of them."""
    wall, cpu = time.perf_counter(), time.process_time()
    for item in items:
        action(item)
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


# The control.


def theirs_build(message: Message) -> bytes:
    """A frame, by the generated code."""
    build, tag = BUILDERS[type(message)]
    builder = flatbuffers.Builder(256)
    body = build(builder, message)
    generated.MessageStart(builder)
    generated.MessageAddBodyType(builder, tag)
    generated.MessageAddBody(builder, body)
    builder.Finish(generated.MessageEnd(builder))
    return bytes(builder.Output())


def build_send(builder: Any, message: SendMessageRequest) -> int:
    text = builder.CreateString(message.text)
    generated.SendMessageRequestStart(builder)
    generated.SendMessageRequestAddRequestId(builder, message.request_id)
    generated.SendMessageRequestAddAgentId(builder, message.agent_id)
    generated.SendMessageRequestAddText(builder, text)
    end: int = generated.SendMessageRequestEnd(builder)
    return end


def build_answer(builder: Any, message: AnswerText) -> int:
    text = builder.CreateString(message.text)
    generated.AnswerTextStart(builder)
    generated.AnswerTextAddRequestId(builder, message.request_id)
    generated.AnswerTextAddAgentId(builder, message.agent_id)
    generated.AnswerTextAddText(builder, text)
    generated.AnswerTextAddIsDelta(builder, message.is_delta)
    generated.AnswerTextAddIsFinal(builder, message.is_final)
    end: int = generated.AnswerTextEnd(builder)
    return end


def build_complete(builder: Any, message: TurnComplete) -> int:
    info = builder.CreateString(message.debug_info)
    generated.TurnCompleteStart(builder)
    generated.TurnCompleteAddRequestId(builder, message.request_id)
    generated.TurnCompleteAddAgentId(builder, message.agent_id)
    generated.TurnCompleteAddStatus(builder, message.status)
    generated.TurnCompleteAddDebugInfo(builder, info)
    generated.TurnCompleteAddTokensGenerated(builder, message.tokens_generated)
    end: int = generated.TurnCompleteEnd(builder)
    return end


def build_event(builder: Any, message: NodeEvent) -> int:
    pairs = []
    for pair in message.kv_pairs:
        key, value = builder.CreateString(pair.key), builder.CreateString(pair.value)
        generated.NodeEventKeyValueStart(builder)
        generated.NodeEventKeyValueAddKey(builder, key)
        generated.NodeEventKeyValueAddValue(builder, value)
        pairs.append(generated.NodeEventKeyValueEnd(builder))
    generated.NodeEventStartKvPairsVector(builder, len(pairs))
    for offset in reversed(pairs):
        builder.PrependUOffsetTRelative(offset)
    vector = builder.EndVector()
    node, kind = builder.CreateString(message.node_name), builder.CreateString(message.event_type)
    generated.NodeEventStart(builder)
    generated.NodeEventAddAgentId(builder, message.agent_id)
    generated.NodeEventAddNodeName(builder, node)
    generated.NodeEventAddEventType(builder, kind)
    generated.NodeEventAddKvPairs(builder, vector)
    end: int = generated.NodeEventEnd(builder)
    return end


BUILDERS: dict[type[Message], tuple[Callable[[Any, Any], int], int]] = {
    SendMessageRequest: (build_send, 6),
    AnswerText: (build_answer, 7),
    TurnComplete: (build_complete, 8),
    NodeEvent: (build_event, 26),
}


def theirs_read(payload: bytes) -> tuple[Any, ...]:
    """All that a frame holds, by the generated code."""
    root = generated.Message.GetRootAs(payload, 0)
    kind, read = READERS[root.BodyType()]
    body, at = kind(), root.Body()
    body.Init(at.Bytes, at.Pos)
    return read(body)


def read_send(body: Any) -> tuple[Any, ...]:
    return body.RequestId(), body.AgentId(), body.Text().decode()


def read_answer(body: Any) -> tuple[Any, ...]:
    return body.RequestId(), body.AgentId(), body.Text().decode(), body.IsDelta(), body.IsFinal()


def read_complete(body: Any) -> tuple[Any, ...]:
    return body.RequestId(), body.AgentId(), body.Status(), body.DebugInfo().decode(), body.TokensGenerated()


def read_event(body: Any) -> tuple[Any, ...]:
    pairs = [body.KvPairs(number) for number in range(body.KvPairsLength())]
    texts = [(pair.Key().decode(), pair.Value().decode()) for pair in pairs]
    return body.AgentId(), body.NodeName().decode(), body.EventType().decode(), texts


READERS: dict[int, tuple[Any, Callable[[Any], tuple[Any, ...]]]] = {
    6: (generated.SendMessageRequest, read_send),
    7: (generated.AnswerText, read_answer),
    8: (generated.TurnComplete, read_complete),
    26: (generated.NodeEvent, read_event),
}
