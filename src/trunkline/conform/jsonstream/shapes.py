"""Judges of single lines: is it one, and does each event hold what its section of the protocol document shows?"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

from trunkline.base import jsontext
from trunkline.conform.jsonstream.scenes import CATEGORIES
from trunkline.conform.jsonstream.subject import SeenEvent
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Check, Judgement, Tier
from trunkline.conform.record import Record

ERROR_CODES = ("provider_error", "tool_error", "config_error", "protocol_error", "internal_error")

#: As semver.org has it, without build metadata's finer rules.
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
#: How much of a bad line a reason repeats.
_SHOWN_BYTES = 60

Problem = str | None
Rule = Callable[[SeenEvent], Problem]


def events(record: Record) -> Iterator[SeenEvent]:
    """What the agent said in a record."""
    for entry in record.entries:
        if entry.who == "agent" and isinstance(entry.data, dict) and isinstance(entry.data.get("type"), str):
            yield SeenEvent(entry.at, entry.data)


def is_semver(text: Any) -> bool:
    """Whether this is a version such as `0.1.0`."""
    return isinstance(text, str) and _SEMVER.fullmatch(text) is not None


def judged(problems: list[Problem]) -> Judgement:
    """The judgement over one finding for each thing that was looked at."""
    return Judgement(len(problems), next((problem for problem in problems if problem is not None), None))


@SUITE.judge("js.line.object", "MUST", "1")
def lines_are_objects(record: Record) -> Judgement:
    """Every line on standard output is one JSON object with a string `type`."""
    return judged([_line_problem(entry.line) for entry in record.entries if entry.who == "agent"])


@SUITE.judge("js.line.utf8", "MUST", "Overview")
def lines_are_utf8(record: Record) -> Judgement:
    """Standard output is UTF-8."""
    return judged([_utf8_problem(entry.line) for entry in record.entries if entry.who == "agent"])


@SUITE.judge("js.line.terminated", "MUST", "Overview")
def lines_are_terminated(record: Record) -> Judgement:
    """Every line ends with a line feed, including the last."""
    if record.was_killed:
        return Judgement(0)
    return judged([f"the output ends within a line: {_shown(record.unfinished)}" if record.unfinished else None])


def _line_problem(line: bytes) -> Problem:
    try:
        data = jsontext.loads(line)
    except ValueError as error:
        # The other judge's matter, and one fault is enough.
        return None if _utf8_problem(line) else f"not JSON ({error}): {_shown(line)}"
    if not isinstance(data, dict):
        return f"not a JSON object: {_shown(line)}"
    return None if isinstance(data.get("type"), str) else f"no string `type`: {_shown(line)}"


def _utf8_problem(line: bytes) -> Problem:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}: {_shown(line)}"
    return None


def _shown(line: bytes) -> str:
    return ascii(line[:_SHOWN_BYTES])[1:]


def string(*path: str) -> Rule:
    """That member is a string."""
    return _member(path, lambda value: isinstance(value, str), "a string")


def filled(*path: str) -> Rule:
    """That member is a non-empty string."""
    return _member(path, lambda value: isinstance(value, str) and value != "", "a non-empty string")


def boolean(*path: str) -> Rule:
    """That member is true or false."""
    return _member(path, lambda value: isinstance(value, bool), "true or false")


def mapping(*path: str) -> Rule:
    """That member is an object."""
    return _member(path, lambda value: isinstance(value, dict), "an object")


def one_of(choices: tuple[str, ...], *path: str) -> Rule:
    """That member is one of these."""
    return _member(path, lambda value: value in choices, f"one of {', '.join(choices)}")


def _member(path: tuple[str, ...], fits: Callable[[Any], bool], kind: str) -> Rule:
    name = ".".join(path)

    def rule(event: SeenEvent) -> Problem:
        value = event.member(*path)
        return None if fits(value) else f"`{event.type}.{name}` is not {kind}: {ascii(value)[:_SHOWN_BYTES]}"

    return rule


def _usage(event: SeenEvent) -> Problem:
    usage = event.data.get("usage")
    if usage is None and "usage" not in event.data:
        return None
    if not isinstance(usage, dict):
        return f"`stream_end.usage` is not an object: {ascii(usage)[:_SHOWN_BYTES]}"
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        count = usage.get(name, 0)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            return f"`stream_end.usage.{name}` is not a count: {ascii(count)[:_SHOWN_BYTES]}"
    missing = [name for name in ("input_tokens", "output_tokens") if name not in usage]
    return f"`stream_end.usage` has no `{missing[0]}`" if missing else None


def _error_msg_id(event: SeenEvent) -> Problem:
    if "msg_id" not in event.data:
        return "`error` has no `msg_id`; it is null when there is no message"
    value = event.data["msg_id"]
    return None if value is None or isinstance(value, str) else "`error.msg_id` is neither null nor a string"


def _info_msg_id(event: SeenEvent) -> Problem:
    value = event.data.get("msg_id")
    return None if value is None or isinstance(value, str) else "`info.msg_id` is neither null nor a string"


def _metadata(event: SeenEvent) -> Problem:
    value = event.data.get("metadata")
    return None if value is None or isinstance(value, dict) else "`tool_result.metadata` is not an object"


_RULES: tuple[tuple[str, Tier, str, tuple[Rule, ...]], ...] = (
    ("stream_start", "MUST", "1.2", (filled("msg_id"),)),
    ("text_delta", "MUST", "1.3", (string("text"), filled("msg_id"))),
    # Not every agent reasons aloud or has something to tell: where the event is not seen, nothing is amiss.
    ("thinking", "SHOULD", "1.4", (string("text"), filled("msg_id"))),
    (
        "tool_request",
        "MUST",
        "1.5",
        (
            filled("msg_id"),
            filled("call_id"),
            filled("tool", "name"),
            one_of(("info", "edit", "exec", "mcp"), "tool", "category"),
            mapping("tool", "args"),
            string("tool", "description"),
        ),
    ),
    ("tool_running", "MUST", "1.6", (filled("msg_id"), filled("call_id"), filled("tool_name"))),
    (
        "tool_result",
        "MUST",
        "1.7",
        (
            filled("msg_id"),
            filled("call_id"),
            filled("tool_name"),
            one_of(("success", "error"), "status"),
            string("output"),
            one_of(("text", "diff", "image"), "output_type"),
            _metadata,
        ),
    ),
    ("tool_cancelled", "MUST", "1.8", (filled("msg_id"), filled("call_id"), string("reason"))),
    ("stream_end", "MUST", "1.9", (filled("msg_id"), _usage)),
    (
        "error",
        "MUST",
        "1.10",
        (
            _error_msg_id,
            one_of(ERROR_CODES, "error", "code"),
            string("error", "message"),
            boolean("error", "retryable"),
        ),
    ),
    ("info", "SHOULD", "1.11", (_info_msg_id, string("message"))),
)


def _shape_judge(type: str, rules: tuple[Rule, ...]) -> Callable[[Record], Judgement]:
    def judge(record: Record) -> Judgement:
        seen = [event for event in events(record) if event.type == type]
        return judged([next((found for rule in rules if (found := rule(event))), None) for event in seen])

    return judge


for _type, _tier, _section, _rules in _RULES:
    SUITE.add_judge(
        Check(f"js.shape.{_type}", _tier, _section, f"`{_type}` has the fields of its section, with their types."),
        _shape_judge(_type, _rules),
    )


@SUITE.judge("js.tool.category", "MUST", "1.5")
def categories_are_as_listed(record: Record) -> Judgement:
    """A tool named in the protocol has the category given there."""
    problems: list[Problem] = []
    for event in events(record):
        name = event.member("tool", "name")
        if event.type == "tool_request" and isinstance(name, str) and name in CATEGORIES:
            found = event.member("tool", "category")
            right = found == CATEGORIES[name]
            problems.append(None if right else f"`{name}` has the category {found!a}, not `{CATEGORIES[name]}`")
    return judged(problems)


@SUITE.judge("js.tool.description", "MUST", "1.5")
def descriptions_are_one_line(record: Record) -> Judgement:
    """A request's `description` is one line for a person to read."""
    found = [event.member("tool", "description") for event in events(record) if event.type == "tool_request"]
    return judged([_description_problem(text) for text in found if isinstance(text, str)])


def _description_problem(text: str) -> Problem:
    if not text.strip():
        return "a `description` is empty"
    return f"a `description` has more than one line: {text[:_SHOWN_BYTES]!a}" if "\n" in text else None


@SUITE.judge("js.tool.image", "SHOULD", "1.7")
def images_are_base64(record: Record) -> Judgement:
    """An output of type `image` is base64."""
    outputs = [event.data.get("output") for event in events(record) if event.data.get("output_type") == "image"]
    return judged([_base64_problem(output) for output in outputs])


def _base64_problem(output: Any) -> Problem:
    try:
        return None if isinstance(output, str) and base64.b64decode(output, validate=True) else "an image is empty"
    except (binascii.Error, ValueError):
        return f"an image is not base64: {ascii(output)[:_SHOWN_BYTES]}"
