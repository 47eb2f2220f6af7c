"""Checks of lines that are no commands: each is one `protocol_error`, and the next line is read as usual."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trunkline.base.values import Value
from trunkline.conform.jsonstream.scenes import approve, ends, of, request, say
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import SeenEvent
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, Check, Tier

#: The longest line that hosts are promised to be heard with.
MAX_LINE = 16 * 1024 * 1024
#: Deeper than any argument of a tool, and than many parsers' stacks.
DEPTH = 100_000


class BadLine(Value):
    """A line that is no command."""

    name: str
    tier: Tier
    section: str
    what: str
    line: bytes


BAD_LINES: tuple[BadLine, ...] = (
    BadLine("malformed", "MUST", "4.1", "malformed JSON", b'{"type":"message","msg_id":'),
    BadLine("not-json", "MUST", "4.1", "a line that is not JSON at all", b"hello"),
    BadLine("not-object", "MUST", "2", "JSON that is not an object", b'["message"]'),
    BadLine("unknown-type", "MUST", "4.1", "an unknown command type", b'{"type":"foo"}'),
    BadLine("no-type", "MUST", "2", "a command without a `type`", b'{"msg_id":"m","input":"hello"}'),
    BadLine("type-not-string", "MUST", "2", "a `type` that is not a string", b'{"type":5}'),
    BadLine("invalid-utf8", "MUST", "Overview", "invalid UTF-8", b'{"type":"message","msg_id":"m","input":"\xff\xfe"}'),
    BadLine("nul", "SHOULD", "4.1", "NUL bytes", b"\0\0\0"),
    BadLine("deep", "SHOULD", "4.1", "very deeply nested JSON", b"[" * DEPTH + b"]" * DEPTH),
    BadLine("message-no-id", "MUST", "2.1", "a `message` without `msg_id`", b'{"type":"message","input":"hello"}'),
    BadLine("message-no-input", "MUST", "2.1", "a `message` without `input`", b'{"type":"message","msg_id":"m"}'),
    BadLine(
        "message-id-number",
        "SHOULD",
        "2.1",
        "a `msg_id` that is not a string",
        b'{"type":"message","msg_id":5,"input":"x"}',
    ),
    BadLine(
        "message-input-number",
        "SHOULD",
        "2.1",
        "an `input` that is not a string",
        b'{"type":"message","msg_id":"m","input":5}',
    ),
    BadLine(
        "message-files-text",
        "SHOULD",
        "2.1",
        "a `files` that is not a list",
        b'{"type":"message","msg_id":"m","input":"x","files":"a.txt"}',
    ),
    BadLine(
        "approve-no-id", "MUST", "2.3", "a `tool_approve` without `call_id`", b'{"type":"tool_approve","scope":"once"}'
    ),
    BadLine(
        "approve-scope", "SHOULD", "2.3", "an unknown `scope`", b'{"type":"tool_approve","call_id":"c","scope":"ever"}'
    ),
    BadLine("deny-no-id", "MUST", "2.4", "a `tool_deny` without `call_id`", b'{"type":"tool_deny","reason":"no"}'),
    BadLine("history-no-text", "MUST", "2.5", "an `init_history` without `text`", b'{"type":"init_history"}'),
    BadLine("mode-missing", "MUST", "2.6", "a `set_mode` without `mode`", b'{"type":"set_mode"}'),
    BadLine("mode-unknown", "SHOULD", "2.6", "an unknown `mode`", b'{"type":"set_mode","mode":"turbo"}'),
)


def _refused(bad: BadLine) -> Callable[[Stage], Awaitable[None]]:
    async def scene(stage: Stage) -> None:
        await _is_refused(stage, bad.line, bad.what)

    return scene


async def _is_refused(stage: Stage, line: bytes, what: str) -> SeenEvent:
    """One `protocol_error`, and the next line works."""
    async with stage.agent() as agent:
        await agent.write(line + b"\n")
        msg_id = await say(stage, agent, "hello")
        found = await agent.expect(f"the answer to the line after {what}", ends(msg_id), stage.target.timeout)
        errors = [event for event in found if event.type == "error"]
        if len(errors) != 1:
            raise Broken(f"{what} got {len(errors)} errors")
        _is_protocol_error(errors[0], what)
        return errors[0]


def _is_protocol_error(error: SeenEvent, what: str) -> None:
    if error.member("error", "code") != "protocol_error":
        raise Broken(f"{what} got the code {error.member('error', 'code')!a}")
    if "msg_id" not in error.data or error.data["msg_id"] is not None:
        found = ascii(error.data["msg_id"]) if "msg_id" in error.data else "missing"
        raise Broken(f'the `protocol_error` for {what} should have `"msg_id": null`; it is {found}')


for _bad in BAD_LINES:
    SUITE.add(
        Check(
            f"js.bad.{_bad.name}",
            _bad.tier,
            _bad.section,
            f"There is exactly one `protocol_error` for {_bad.what}; the next line works.",
        ),
        _refused(_bad),
    )


@SUITE.check("js.bad.unknown-text", "SHOULD", "4.1")
async def unknown_types_are_named(stage: Stage) -> None:
    """The error says `Unknown command type: foo`, and is not retryable."""
    error = await _is_refused(stage, b'{"type":"foo"}', "an unknown command type")
    if (
        error.member("error", "message") != "Unknown command type: foo"
        or error.member("error", "retryable") is not False
    ):
        raise Broken(f"the error is {error.member('error')!a}")


@SUITE.check("js.bad.too-long", "SHOULD", "4.1")
async def long_lines_are_refused(stage: Stage) -> None:
    """There is exactly one `protocol_error` for a line over 16 MiB; the next line works."""
    start, end = b'{"type":"message","msg_id":"conform-long","input":"', b'"}'
    await _is_refused(stage, start + b"x" * (MAX_LINE + 1 - len(start + end)) + end, "a line over 16 MiB")


@SUITE.check("js.bad.in-turn", "SHOULD", "4.1")
async def turns_are_not_disturbed(stage: Stage) -> None:
    """A bad line during a turn does not disturb it."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await agent.write(b'{"type":"foo"}\n')
        found = await agent.expect("`error` for a bad line during a turn", of("error"), stage.target.patience)
        _is_protocol_error(found[-1], "a bad line in a turn")
        await approve(agent, wanted)
        after = await agent.expect("`stream_end` after a bad line", ends(wanted.msg_id), stage.target.timeout)
        if not any(map(of("tool_result", call_id=wanted.call_id), after)):
            raise Broken("the pending call has no result after a bad line")
        if any(event.type == "error" for event in after):
            raise Broken("a bad line during a turn got more than one error")
