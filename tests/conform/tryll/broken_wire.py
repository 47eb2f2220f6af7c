"""Servers that do not keep the rules of frames, sessions and errors."""

from __future__ import annotations

from typing import Any

from tests.conform.tryll.bent import Habit, Put, Way
from tests.conform.tryll.habits import HABITS, answers, changes, requests
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode, frame

# The session

changes("speaks_version_one", m.SessionReady, "tryll.session.ready", protocol_version=1)
changes("calls_every_session_the_same", m.SessionReady, "tryll.session.ids", session_id=7)
changes("forgets_request_ids", m.ListModelsResponse, "tryll.session.request-ids", request_id=0)


@answers("tryll.session.configure", "tryll.verify.older")
def acknowledges_a_configuration(way: Way, message: m.Message) -> Any:
    return m.Ack(message.request_id) if isinstance(message, m.ConfigureSessionResponse) else None


@answers("tryll.session.again")
def can_be_configured_once(way: Way, message: m.Message) -> Any:
    if not isinstance(message, m.ConfigureSessionResponse):
        return None
    way.state["times"] = way.state.get("times", 0) + 1
    return m.ErrorResponse(message.request_id, 2002, "once") if way.state["times"] > 1 else None


@requests("tryll.session.version")
def looks_at_no_version(way: Way, message: Any, payload: bytes) -> Any:
    return message.replace(protocol_version=0) if isinstance(message, m.ConfigureSessionRequest) else None


@requests("tryll.session.engines")
def takes_any_engine(way: Way, message: Any, payload: bytes) -> Any:
    engines = {"inference_engine": 0, "stt_engine": 0, "tts_engine": 0, "embedding_engine": 0}
    return message.replace(**engines) if isinstance(message, m.ConfigureSessionRequest) else None


@requests("tryll.session.order", "tryll.session.scope", "tryll.storage.list", "tryll.storage.sorted",
          "tryll.storage.destroy", "tryll.storage.name")  # fmt: skip
def finds_no_storage(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.CreateAgentRequest) and message.graph is not None:
        params = [node.params for node in message.graph.nodes]
        if any(isinstance(each, m.CannedResponseParams) and each.string_storage for each in params):
            return way.refuse(message, 3010)
    return None


@requests("tryll.session.scope")
def shares_storages_with_everybody(way: Way, message: Any, payload: bytes) -> Any:
    if not isinstance(message, m.CreateStringStorageRequest):
        return None
    owner = way.memory.setdefault(message.name, way)
    return None if owner is way else way.refuse(message, 7002)


@answers("tryll.session.debug")
def acknowledges_debug_commands(way: Way, message: m.Message) -> Any:
    is_debug = isinstance(message, m.ErrorResponse) and message.code == 5005
    return m.Ack(message.request_id) if is_debug and isinstance(message, m.ErrorResponse) else None


def _cuts_its_last_frame() -> Habit:
    def left(way: Way, reset: bool) -> None:
        if not reset:
            way.tell(frame(encode(m.Ack(1)))[:-3])

    return Habit(("tryll.session.half-close", "tryll.session.half-close-turn", "tryll.frame.unfinished"), left=left)


def _stays_when_clients_go() -> Habit:
    return Habit(("tryll.session.half-close", "tryll.agent.gone", "tryll.frame.unfinished"), stays=True)


def _sulks_when_somebody_vanishes() -> Habit:
    def left(way: Way, reset: bool) -> None:
        way.memory["sulking"] = way.memory.get("sulking", False) or reset

    def bend(way: Way, message: m.Message) -> Put | None:
        return () if way.memory.get("sulking") else None

    return Habit(("tryll.session.vanished", "tryll.frame.broken-off"), left=left, answers=bend)


def _waits_for_slow_readers() -> Habit:
    return Habit(("tryll.frame.unread",), at_once=True)


HABITS["cuts_its_last_frame"] = _cuts_its_last_frame
HABITS["stays_when_clients_go"] = _stays_when_clients_go
HABITS["sulks_when_somebody_vanishes"] = _sulks_when_somebody_vanishes
HABITS["waits_for_slow_readers"] = _waits_for_slow_readers

# Frames

_FRAMES = ("tryll.frame.zero", "tryll.frame.garbage", "tryll.frame.truncated", "tryll.verify.offsets",
           "tryll.verify.lengths", "tryll.verify.utf8", "tryll.verify.unknown-tag", "tryll.verify.server-only",
           "tryll.verify.no-body", "tryll.verify.unknown-node")  # fmt: skip


@answers(*_FRAMES)
def hangs_up_on_bad_frames(way: Way, message: m.Message) -> Any:
    if isinstance(message, m.ErrorResponse) and message.code in (5001, 5002):
        way.client.close()
        return ()
    return None


@requests("tryll.verify.utf8", "tryll.verify.offsets", "tryll.frame.garbage", "tryll.frame.truncated")
def makes_something_of_everything(way: Way, message: Any, payload: bytes) -> Any:
    return m.SendMessageRequest(1, 2**62, "?") if message is None else None


@requests("tryll.frame.split", "tryll.frame.together")
def takes_one_frame_only(way: Way, message: Any, payload: bytes) -> Any:
    if not isinstance(message, m.SendMessageRequest):
        return None
    way.state["messages"] = way.state.get("messages", 0) + 1
    return () if way.state["messages"] > 1 else None


@requests("tryll.frame.largest", "tryll.frame.waiting", "tryll.turn.long", "tryll.verify.aliases")
def takes_half_a_mebibyte_at_most(way: Way, message: Any, payload: bytes) -> Any:
    return () if len(payload) > 1 << 19 else None


@answers("tryll.frame.too-large", "tryll.frame.announced", "tryll.frame.before")
def counts_too_large_as_malformed(way: Way, message: m.Message) -> Any:
    is_it = isinstance(message, m.ErrorResponse) and message.code == 5003
    return message.replace(code=5001) if is_it else None


@requests("tryll.verify.newer")
def knows_its_own_fields_only(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.SendMessageRequest) and len(payload) > len(encode(message)) + 40:
        return way.refuse(message, 5001)
    return None


@requests("tryll.verify.older")
def wants_every_field(way: Way, message: Any, payload: bytes) -> Any:
    if isinstance(message, m.ConfigureSessionRequest) and len(payload) < len(encode(message)):
        return way.refuse(message, 5001)
    return None


# Errors

_NUMBERED = (
    *_FRAMES, "tryll.session.unconfigured", "tryll.session.version", "tryll.session.engines", "tryll.frame.split",
    "tryll.frame.together", "tryll.frame.largest", "tryll.frame.too-large", "tryll.frame.waiting",
    "tryll.agent.destroy", "tryll.agent.unknown", "tryll.agent.others", "tryll.agent.gone", "tryll.turn.busy",
    "tryll.turn.change", "tryll.turn.destroyed", "tryll.graph.exit", "tryll.graph.shape", "tryll.graph.pattern",
    "tryll.graph.no-model", "tryll.graph.unknown-model", "tryll.graph.storage-kind", "tryll.graph.storage-path",
    "tryll.graph.range", "tryll.param.structural", "tryll.param.node", "tryll.param.failed", "tryll.storage.map",
    "tryll.storage.data", "tryll.storage.name", "tryll.storage.destroy", "tryll.storage.unknown",
    "tryll.storage.outside", "tryll.storage.missing", "tryll.storage.files", "tryll.storage.links",
    "tryll.storage.shadow", "tryll.embedded.refused", "tryll.embedded.filter", "tryll.model.unknown",
    "tryll.node.labels", "tryll.node.intent-record", "tryll.extra.cancel-nothing", "tryll.voice.format",
    "tryll.voice.states", "tryll.voice.unconfigured", "tryll.voice.too-long", "tryll.voice.nobody",
    "tryll.voice.hotwords", "tryll.voice.busy",
)  # fmt: skip

changes("has_numbers_of_its_own", m.ErrorResponse, *_NUMBERED, code=9999)
changes("gives_no_reasons", m.ErrorResponse, "tryll.wire.reasons", "tryll.graph.exit", "tryll.graph.unknown-model",
        message="")  # fmt: skip
changes("fails_within_turns_aloud", m.ErrorResponse, "tryll.wire.turn-errors", code=4001)


@answers("tryll.agent.unknown", "tryll.agent.others", "tryll.agent.destroy", "tryll.storage.unknown",
         "tryll.model.unknown", "tryll.graph.exit", "tryll.storage.outside", "tryll.param.structural")  # fmt: skip
def refuses_nothing(way: Way, message: m.Message) -> Any:
    return m.Ack(message.request_id) if isinstance(message, m.ErrorResponse) else None


# What holds for every frame


@answers("tryll.wire.frames")
def writes_what_cannot_be_read(way: Way, message: m.Message) -> Any:
    return (b"\x08\0\0\0" + b"\xff" * 8,) if isinstance(message, m.AnswerText) else None


@answers("tryll.wire.frames")
def announces_too_much(way: Way, message: m.Message) -> Any:
    return (b"\0\0\x20\0",) if isinstance(message, m.AnswerText) else None


@answers("tryll.wire.direction")
def greets_again(way: Way, message: m.Message) -> Any:
    return (m.SessionReady(2, 7), message) if isinstance(message, m.TurnComplete) else None


@answers("tryll.wire.direction")
def asks_clients(way: Way, message: m.Message) -> Any:
    return (m.SendMessageRequest(1, 2, "and you?"), message) if isinstance(message, m.TurnComplete) else None


@answers("tryll.wire.progress", "tryll.model.unknown")
def completes_what_was_not_begun(way: Way, message: m.Message) -> Any:
    is_it = isinstance(message, m.ErrorResponse) and message.code // 1000 == 6
    return (m.DownloadComplete(getattr(message, "request_id", 0), "x", True),) if is_it else None
