"""Judges of updates: whose they are, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trunkline.conform.acp.lines import each_message, messages
from trunkline.conform.acp.subject import UPDATE, is_response, updates_in
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import BLOCKS, CHUNKS, ENTRY_STATUSES, PRIORITIES, UPDATES
from trunkline.conform.expect import short
from trunkline.conform.kit import Judgement
from trunkline.conform.record import Record


def each_update(record: Record, kinds: frozenset[str], problem: Callable[[Any], str | None]) -> Judgement:
    """Look at all updates of these kinds for the first with a problem."""
    found = updates_in(list(messages(record)), None, *kinds)
    for update in found:
        if told := problem(update):
            return Judgement(len(found), told)
    return Judgement(len(found))


@SUITE.judge("acp.update.shape", "MUST", "Prompt Turn")
def updates_have_a_shape(record: Record) -> Judgement:
    """`session/update` is a notification with a `sessionId` and an `update` of a known kind."""
    count = sum(1 for each in messages(record) if each.get("method") == UPDATE)
    wrong = each_message(record, _misshaped).problem
    return Judgement(count, wrong)


def _misshaped(message: dict[str, Any]) -> str | None:
    if message.get("method") != UPDATE:
        return None
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    kind = update.get("sessionUpdate") if isinstance(update, dict) else None
    fine = isinstance(params, dict) and isinstance(params.get("sessionId"), str) and "id" not in message
    known = isinstance(kind, str) and kind in UPDATES
    return None if fine and known else f"{short(message)} is not an update as the schema has them"


@SUITE.judge("acp.update.session", "MUST", "Prompt Turn")
def updates_belong_to_sessions(record: Record) -> Judgement:
    """The `sessionId` of an update is that of a session of this connection."""
    # One that is being opened may tell of itself before its id is known. Whether one that the client made up had to be
    # refused is a matter of its own.
    known = {
        str(each["result"]["sessionId"])
        for each in messages(record)
        if is_response(each) and isinstance(each.get("result"), dict) and "sessionId" in each["result"]
    }
    for entry in record.entries:
        params = entry.data.get("params") if entry.who == "host" and isinstance(entry.data, dict) else None
        if isinstance(params, dict) and "sessionId" in params:
            known.add(str(params["sessionId"]))
    updates = [each for each in messages(record) if each.get("method") == UPDATE]
    for message in updates:
        params = message.get("params")
        if not isinstance(params, dict) or params.get("sessionId") not in known:
            return Judgement(len(updates), f"{short(message)} belongs to no session of this connection")
    return Judgement(len(updates))


def bad_block(block: Any) -> str | None:
    """What is wrong with a content block; None if nothing is."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or kind not in BLOCKS:
        return f"the content block {short(block)} is of no known type"
    missing = [name for name in BLOCKS[kind] if not isinstance(block.get(name), str)]
    if kind == "resource" and not isinstance(block.get("resource"), dict):
        missing = ["resource"]
    return f"the content block {short(block)} has no proper `{missing[0]}`" if missing else None


@SUITE.judge("acp.update.content", "MUST", "Content")
def chunks_have_blocks(record: Record) -> Judgement:
    """A chunk of a message or a thought has a content block with all that its type needs."""
    return each_update(record, CHUNKS, lambda update: bad_block(update.get("content")))


@SUITE.judge("acp.update.plan", "MUST", "Agent Plan", "the agent told of no plan")
def plans_have_entries(record: Record) -> Judgement:
    """A plan has entries, each with a `content`, a known `priority` and a known `status`."""
    return each_update(record, frozenset(("plan",)), _bad_plan)


def _bad_plan(update: dict[str, Any]) -> str | None:
    entries = update.get("entries")
    for entry in entries if isinstance(entries, list) else [None]:
        told = entry if isinstance(entry, dict) else {}
        fine = isinstance(told.get("content"), str) and told.get("priority") in PRIORITIES
        if not fine or told.get("status") not in ENTRY_STATUSES:
            return f"the plan {short(update)} has an entry that is not as it should be"
    return None


@SUITE.judge("acp.update.commands", "MUST", "Slash Commands", "the agent told of no commands")
def commands_have_names(record: Record) -> Judgement:
    """Every one of the available commands has a `name` and a `description`."""
    return each_update(record, frozenset(("available_commands_update",)), _bad_commands)


def _bad_commands(update: dict[str, Any]) -> str | None:
    found = update.get("availableCommands")
    for each in found if isinstance(found, list) else [None]:
        if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in ("name", "description")):
            return f"the command {short(each)} lacks a `name` or a `description`"
    return None


@SUITE.judge("acp.update.usage", "MUST", "Prompt Turn", "the agent told of no usage")
def usage_is_counted(record: Record) -> Judgement:
    """An update about usage has `used` and `size`, which are integers and not negative."""
    return each_update(record, frozenset(("usage_update",)), _bad_usage)


def _bad_usage(update: dict[str, Any]) -> str | None:
    found = [update.get("used"), update.get("size")]
    fine = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in found)
    return None if fine else f"the usage {short(update)} lacks `used` or `size`"
