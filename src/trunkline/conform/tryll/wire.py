"""Judges: what holds for every frame of a server, whichever check it was sent to."""

from __future__ import annotations

from collections.abc import Iterator

from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record
from trunkline.conform.tryll.link import ReceivedFrame, shown
from trunkline.conform.tryll.suite import SUITE
from trunkline.wires.tryll import messages as m

#: The numbers that stand for a failure inside a turn. Others of 4xxx are about voice.
_IN_TURN = (4001, 4002, 4003)


@SUITE.judge("tryll.wire.frames", "MUST", "Framing")
def frames(record: Record) -> Judgement:
    """Every frame from the server is a complete message of the schema, no larger than 1,048,576 bytes."""
    heard = list(_heard(record))
    return Judgement(len(heard), next((each.problem for each in heard if each.problem), None))


@SUITE.judge("tryll.wire.direction", "MUST", "Message types")
def direction(record: Record) -> Judgement:
    """The server sends only server messages, and `SessionReady` exactly once, first."""
    messages = list(_messages(record))
    for number, message in enumerate(messages):
        if not isinstance(message, m.FromServer):
            return Judgement(len(messages), f"the server sent a `{type(message).__name__}`")
        if isinstance(message, m.SessionReady) != (number == 0):
            return Judgement(len(messages), f"frame {number + 1} is {shown(message)}")
    return Judgement(len(messages))


@SUITE.judge("tryll.wire.one-final", "MUST", "Streaming answers")
def one_final(record: Record) -> Judgement:
    """Each turn has exactly one final `AnswerText`, its last, and exactly one `TurnComplete` after it."""
    looked_at = 0
    over: dict[int, bool] = {}
    for message in _messages(record):
        if isinstance(message, m.AnswerText):
            looked_at += 1
            if over.get(message.agent_id):
                return Judgement(looked_at, f"after the final text of a turn came {shown(message)}")
            over[message.agent_id] = message.is_final
        elif isinstance(message, m.TurnComplete):
            looked_at += 1
            if not over.pop(message.agent_id, False):
                return Judgement(looked_at, f"a turn of the agent {message.agent_id} ended without a final text")
    return Judgement(looked_at)


@SUITE.judge("tryll.wire.turn-errors", "MUST", "Error responses")
def turn_errors(record: Record) -> Judgement:
    """Failures within a turn (4001 to 4003) and client codes (1xxx) are never sent as an `ErrorResponse`."""
    errors = [message for message in _messages(record) if isinstance(message, m.ErrorResponse)]
    wrong = [each for each in errors if each.code in _IN_TURN or each.code // 1000 <= 1]
    return Judgement(len(errors), f"the server sent {shown(wrong[0])}" if wrong else None)


@SUITE.judge("tryll.wire.reasons", "SHOULD", "Error responses")
def reasons(record: Record) -> Judgement:
    """Every error has a message that can be shown to people."""
    errors = [message for message in _messages(record) if isinstance(message, m.ErrorResponse)]
    wrong = [each for each in errors if not each.message.strip() or "Traceback" in each.message]
    return Judgement(len(errors), f"the error {wrong[0].code} says {wrong[0].message[:160]!a}" if wrong else None)


@SUITE.judge("tryll.wire.progress", "MUST", "Session lifecycle")
def progress(record: Record) -> Judgement:
    """Only a requested download ends with `DownloadComplete`; `percent` goes from 0 to 100."""
    messages = list(_messages(record))
    # The kit asks for no download of a model that is there to be had.
    wrong: list[m.Message] = [each for each in messages if isinstance(each, m.DownloadComplete)]
    wrong += [each for each in messages if isinstance(each, m.DownloadProgress) and not 0 <= each.percent <= 100]
    return Judgement(len(messages), f"the server sent {shown(wrong[0])}" if wrong else None)


def _heard(record: Record) -> Iterator[ReceivedFrame]:
    return (entry.data for entry in record.entries if isinstance(entry.data, ReceivedFrame))


def _messages(record: Record) -> Iterator[m.Message]:
    return (each.message for each in _heard(record) if each.message is not None)
