"""Judges of 0.1: what every line of every turn must be like."""

from __future__ import annotations

import re

from trunkline.base import jsontext
from trunkline.conform.agentproc.agent.suite import OLD
from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record
from trunkline.wires.agentproc.codec import ERROR, PARTIAL, SESSION

#: What every bridge takes for an id.
_PORTABLE = re.compile(rb"[A-Za-z0-9._~=-]+")
#: White space, control characters and the colon would end an id somewhere.
_TOKEN = re.compile(rb"[^\s:\x00-\x1f\x7f]+")


def lines_of(record: Record) -> list[bytes]:
    """The agent's lines. What it was writing when the kit ended it is none of them."""
    lines = [entry.line for entry in record.entries if entry.who == "agent"]
    return lines[:-1] if record.was_killed and record.unfinished else lines


def _after(record: Record, prefix: str) -> list[bytes]:
    start = prefix.encode()
    return [line[len(start) :].removesuffix(b"\r") for line in lines_of(record) if line.startswith(start)]


@OLD.judge("ap.line.utf8", "MUST", "Output")
def output_is_utf8(record: Record) -> Judgement:
    """Standard output is UTF-8."""
    lines = lines_of(record)
    for line in lines:
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            return Judgement(len(lines), f"a line is not UTF-8: {line[:80]!a}")
    return Judgement(len(lines))


def _strings(record: Record, prefix: str) -> Judgement:
    """Every payload behind the prefix is a JSON string."""
    count = len(lines_of(record))
    for payload in _after(record, prefix):
        try:
            value = jsontext.loads(payload)
        except ValueError as error:
            return Judgement(count, f"`{prefix}` is followed by {payload[:80]!a}, which is not JSON ({error})")
        if not isinstance(value, str):
            return Judgement(count, f"`{prefix}` is followed by {payload[:80]!a}, which is not a JSON string")
    return Judgement(count)


@OLD.judge("ap.line.partial", "MUST", "Partials")
def partials_are_strings(record: Record) -> Judgement:
    """The text after `AGENT_PARTIAL:` is a JSON string."""
    return _strings(record, PARTIAL)


@OLD.judge("ap.line.error", "MUST", "Errors")
def errors_are_strings(record: Record) -> Judgement:
    """The text after `AGENT_ERROR:` is a JSON string."""
    return _strings(record, ERROR)


@OLD.judge("ap.line.error-text", "SHOULD", "Errors")
def errors_say_something(record: Record) -> Judgement:
    """An error has a text that a user can read."""
    found = _after(record, ERROR)
    empty = any(not payload.strip().strip(b'"').strip() for payload in found)
    return Judgement(len(found), "an error line says nothing" if empty else None)


@OLD.judge("ap.line.session", "SHOULD", "Session")
def ids_are_tokens(record: Record) -> Judgement:
    """The text after `AGENT_SESSION:` is an id without white space, colons or control characters."""
    for payload in _after(record, SESSION):
        if not _TOKEN.fullmatch(payload):
            return Judgement(1, f"`{SESSION}` is followed by {payload[:80]!a}")
    return Judgement(len(lines_of(record)))


@OLD.judge("ap.line.portable", "SHOULD", "Session")
def ids_are_portable(record: Record) -> Judgement:
    """A session id consists of letters, digits and `. _ ~ = -`, which every bridge accepts."""
    found = _after(record, SESSION)
    for payload in found:
        if not _PORTABLE.fullmatch(payload):
            return Judgement(1, f"`{SESSION}` is followed by {payload[:80]!a}")
    return Judgement(len(found))


@OLD.judge("ap.line.status", "SHOULD", "Exit codes")
def errors_have_their_status(record: Record) -> Judgement:
    """After an error line the exit status is not 0."""
    if not _after(record, ERROR) or record.was_killed:
        return Judgement(0)
    return Judgement(1, "the exit status is 0 after an error line" if record.exit_code == 0 else None)
