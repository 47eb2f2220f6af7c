"""Judges: what a host writes to its agent, in every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trunkline.conform.expect import short
from trunkline.conform.jsonstream_host.stage import HostCommand
from trunkline.conform.jsonstream_host.suite import SUITE
from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record
from trunkline.wires.jsonstream.messages import COMMANDS

_KNOWN = frozenset(COMMANDS)
_SCOPES = ("once", "always")
_MODES = ("default", "auto_edit", "yolo", "plan")


def _commands(record: Record, *types: str) -> Iterator[HostCommand]:
    for entry in record.entries:
        if isinstance(entry.data, HostCommand) and (not types or entry.data.type in types):
            yield entry.data


def _judged(found: list[HostCommand], problems: Iterator[str]) -> Judgement:
    return Judgement(len(found), next(problems, None))


@SUITE.judge("jh.line.object", "MUST", "Overview")
def lines_are_objects(record: Record) -> Judgement:
    """Every line that the host writes is one JSON object in UTF-8 with a `type`, and ends with a line feed."""
    found = list(_commands(record))
    return _judged(found, (f"the host wrote {short(each.line)}" for each in found if each.type is None))


@SUITE.judge("jh.line.known", "MUST", "2")
def commands_are_known(record: Record) -> Judgement:
    """The host sends only commands that exist."""
    found = [each for each in _commands(record) if each.type is not None]
    return _judged(found, (f"the host sent {short(each.type)}" for each in found if each.type not in _KNOWN))


@SUITE.judge("jh.message.shape", "MUST", "2.1")
def messages_have_their_fields(record: Record) -> Judgement:
    """A `message` has a `msg_id`, and its text in `input` (or `content`, in the newer dialect); `files` are paths."""
    found = list(_commands(record, "message"))
    return _judged(found, (problem for each in found if (problem := _message_problem(each.data))))


def _message_problem(data: dict[str, Any]) -> str | None:
    if not isinstance(data.get("msg_id"), str) or not data["msg_id"]:
        return f"`msg_id` is {short(data.get('msg_id'))}"
    if not isinstance(data.get("input", data.get("content")), str):
        return f"`input` is {short(data.get('input'))}"
    files = data.get("files")
    if files is not None and not (isinstance(files, list) and all(isinstance(file, str) for file in files)):
        return f"`files` is {short(files)}"
    return None


@SUITE.judge("jh.message.unique", "MUST", "2.1")
def message_ids_are_unique(record: Record) -> Judgement:
    """Each `message` has its own `msg_id`."""
    found = list(_commands(record, "message"))
    ids = [str(each.data.get("msg_id")) for each in found]
    return _judged(found, (f"`msg_id` {short(each)} was used twice" for each in ids if ids.count(each) > 1))


@SUITE.judge("jh.tool.shape", "MUST", "2.3")
def decisions_have_their_fields(record: Record) -> Judgement:
    """A decision names the call by its `call_id`; `scope` is `once` or `always`, and `reason` is a string."""
    found = list(_commands(record, "tool_approve", "tool_deny"))
    return _judged(found, (problem for each in found if (problem := _decision_problem(each))))


def _decision_problem(command: HostCommand) -> str | None:
    call_id, scope, reason = (command.data.get(name) for name in ("call_id", "scope", "reason"))
    if call_id not in ("t1", "t2"):
        return f"`call_id` is {short(call_id)}, and no such call is pending"
    if command.type == "tool_approve" and scope is not None and scope not in _SCOPES:
        return f"`scope` is {short(scope)}"
    if reason is not None and not isinstance(reason, str):
        return f"`reason` is {short(reason)}"
    return None


@SUITE.judge("jh.history.first", "MUST", "2.5")
def history_comes_first(record: Record) -> Judgement:
    """`init_history`, if used, is sent before the first `message`; `set_mode` names a mode that exists."""
    found = [each for each in _commands(record) if each.type is not None]
    types = [each.type for each in found]
    problems = []
    if "init_history" in types and "message" in types[: types.index("init_history")]:
        problems.append("`init_history` came after a `message`")
    modes = (each.data.get("mode") for each in found if each.type == "set_mode")
    problems += [f"`mode` is {short(mode)}" for mode in modes if mode not in _MODES]
    return _judged(found, iter(problems))
