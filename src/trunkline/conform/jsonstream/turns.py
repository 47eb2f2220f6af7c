"""Checks of ordinary turns: a message in, an answer out, again and again."""

from __future__ import annotations

import itertools

from trunkline.base import jsontext
from trunkline.conform.jsonstream.ready import NOWHERE
from trunkline.conform.jsonstream.scenes import ask, ends, greet, new_id, of, say, send, text_of
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import SeenEvent, Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, NotExercised

#: Messages that are sent while an answer is under way.
QUEUED = 3
#: Equal messages by whose usage a running total gives itself away.
EQUAL_MESSAGES = 3
#: A running total over three equal messages triples; a message that happens to cost more does not.
TOTAL_FACTOR = 2.5
#: A large paste, far below what one line may hold.
LARGE_INPUT = 1 << 20


@SUITE.check("js.turn.answer", "MUST", "3.2")
async def message_is_answered(stage: Stage) -> None:
    """A message is answered: `stream_start`, `text_delta`s, `stream_end`."""
    async with stage.agent() as agent:
        msg_id = await say(stage, agent, "hello")
        found = await agent.expect("`stream_end`", of("stream_end"), stage.target.timeout)
        kinds = [event.type for event in found if event.msg_id == msg_id]
        for wanted in ("stream_start", "text_delta", "stream_end"):
            if wanted not in kinds:
                raise Broken(f"no `{wanted}` for the message")


@SUITE.check("js.turn.several", "MUST", "Overview")
async def process_serves_several_turns(stage: Stage) -> None:
    """The process stays alive and answers one message after another."""
    async with stage.agent() as agent:
        for number in range(3):
            await greet(stage, agent, f"(number {number + 1})")


@SUITE.check("js.turn.queue", "SHOULD", "2.1")
async def messages_are_queued(stage: Stage) -> None:
    """Messages that arrive during a turn are answered after it, in order."""
    async with stage.agent() as agent:
        sent = [new_id() for _ in range(QUEUED)]
        # At once: one that comes alone may find the one before it answered.
        text = stage.prompt("hello")
        messages = [{"type": "message", "msg_id": msg_id, "input": text} for msg_id in sent]
        await agent.write(b"".join(jsontext.dumps(message) + b"\n" for message in messages))
        found = await _through(stage, agent, sent[-1])
        ended = [event.msg_id for event in found if event.type == "stream_end"]
        if ended != sent:
            raise Broken(
                f"the messages were {', '.join(sent)}; those that ended are {', '.join(map(str, ended)) or 'none'}"
            )


@SUITE.check("js.turn.repeated-msg-id", "SHOULD", "2.1")
async def repeated_ids_are_answered(stage: Stage) -> None:
    """A message that reuses a `msg_id` is answered like any other."""
    async with stage.agent() as agent:
        msg_id = new_id()
        for number in (1, 2):
            await send(agent, stage.prompt("hello"), msg_id=msg_id)
            found = await agent.expect(
                f"the answer to message {number} with the same id", ends(msg_id), stage.target.timeout
            )
            if not text_of(found):
                raise Broken(f"message {number} with the same id got an answer without text")


@SUITE.check("js.turn.empty-input", "SHOULD", "2.1")
async def empty_input_ends(stage: Stage) -> None:
    """A message with an empty `input` also gets its `stream_end`."""
    async with stage.agent() as agent:
        msg_id = await send(agent, "")
        await agent.expect("`stream_end` for an empty `input`", ends(msg_id), stage.target.timeout)
        await greet(stage, agent, "after an empty one")


@SUITE.check("js.turn.files", "SHOULD", "2.1")
async def missing_files_break_nothing(stage: Stage) -> None:
    """Attached files that do not exist, or are directories, do no harm."""
    async with stage.agent() as agent:
        files = [str(stage.workspace / "no-such-file.txt"), str(stage.workspace), "conform-read.txt"]
        msg_id = await send(agent, stage.prompt("hello"), files=files)
        await agent.expect("`stream_end` for a message with files", ends(msg_id), stage.target.timeout)


@SUITE.check("js.turn.files-null", "MAY", "2.1")
async def files_may_be_null(stage: Stage) -> None:
    """`files` may be null."""
    async with stage.agent() as agent:
        msg_id = await send(agent, stage.prompt("hello"), files=None)
        await agent.expect("`stream_end` for a message with `files` null", ends(msg_id), stage.target.timeout)


@SUITE.check("js.turn.extra-fields", "SHOULD", "6")
async def extra_fields_are_ignored(stage: Stage) -> None:
    """Unknown members of a command are ignored."""
    async with stage.agent() as agent:
        msg_id = await send(agent, stage.prompt("hello"), conform_extra={"deep": [1]}, priority=5)
        found = await agent.expect("`stream_end` for a message with an extra field", ends(msg_id), stage.target.timeout)
        if any(event.type == "error" for event in found):
            raise Broken("an extra field got an `error`")


@SUITE.check("js.turn.content", "MAY", "2.1")
async def content_is_taken_for_input(stage: Stage) -> None:
    """`content`, as newer hosts call it, is accepted in place of `input`."""
    async with stage.agent() as agent:
        msg_id = new_id()
        await agent.send(type="message", msg_id=msg_id, content=stage.prompt("hello"))
        found = await agent.expect("`stream_end` for a message with `content`", ends(msg_id), stage.target.timeout)
        if not text_of(found):
            raise Broken("a message with `content` got an answer without text")


async def _repeats(stage: Stage, text: str) -> None:
    async with stage.agent() as agent:
        said = text_of(await ask(stage, agent, "repeat", text=text))
        if text not in said:
            raise Broken(f"sent was {text!a}, repeated {said[:200]!a}")


@SUITE.check("js.text.non-ascii", "MUST", "Overview")
async def non_ascii_arrives(stage: Stage) -> None:
    """Text outside ASCII arrives as it was sent, in UTF-8."""
    await _repeats(stage, "Grüße, 世界! Привет 🎉")


@SUITE.check("js.text.line-separator", "SHOULD", "Overview")
async def line_separators_are_text(stage: Stage) -> None:
    """Only a line feed ends a line: U+2028 and U+0085 do not."""
    async with stage.agent() as agent:
        msg_id = await send(agent, stage.prompt("repeat", text="one\u2028two\u2029three\u0085four"))
        found = await agent.expect("the answer to a text with U+2028", ends(msg_id), stage.target.timeout)
        said = text_of(found)
        if any(event.type == "error" for event in found) or "one" not in said or "four" not in said:
            raise Broken(f"a text with U+2028, U+2029 and U+0085 was not understood: {said[:200]!a}")


@SUITE.check("js.text.surrogate", "SHOULD", "Overview")
async def lone_surrogates_are_survived(stage: Stage) -> None:
    """A lone surrogate in an escape is not fatal."""
    async with stage.agent() as agent:
        msg_id = await send(agent, stage.prompt("repeat", text="\ud800"))
        await agent.collect(lambda event: ends(msg_id)(event) or event.type == "error", stage.target.timeout)
        await greet(stage, agent, "after one with a lone surrogate")


@SUITE.check("js.text.crlf", "SHOULD", "Overview")
async def crlf_is_understood(stage: Stage) -> None:
    """A command line that ends with CR LF is understood."""
    async with stage.agent() as agent:
        await _understands(stage, agent, before=b"", after=b"\r\n", what="a line that ends with CR LF")


@SUITE.check("js.text.blank-lines", "SHOULD", "Overview")
async def blank_lines_are_ignored(stage: Stage) -> None:
    """Blank lines are ignored."""
    async with stage.agent() as agent:
        await _understands(stage, agent, before=b"\n  \n\r\n", after=b"\n", what="a message after blank lines")


@SUITE.check("js.text.large", "SHOULD", "2.1")
async def large_input_is_answered(stage: Stage) -> None:
    """A message of one mebibyte is answered."""
    async with stage.agent() as agent:
        msg_id = await send(agent, stage.prompt("hello") + " (Ignore this: " + "x" * LARGE_INPUT + ")")
        found = await agent.expect("`stream_end` for a message of 1 MiB", ends(msg_id), stage.target.timeout)
        if any(event.type == "error" for event in found):
            raise Broken("a message of 1 MiB got an `error`")


@SUITE.check("js.usage.present", "SHOULD", "1.9")
async def usage_is_told(stage: Stage) -> None:
    """`stream_end` reports the usage of the message."""
    async with stage.agent() as agent:
        if not isinstance((await ask(stage, agent, "hello"))[-1].data.get("usage"), dict):
            raise Broken("`stream_end` has no `usage`")


@SUITE.check("js.usage.per-message", "MUST", "1.9")
async def usage_is_per_message(stage: Stage) -> None:
    """The usage is that of the single message, not a running total."""
    async with stage.agent() as agent:
        counts = [_output_tokens((await ask(stage, agent, "hello"))[-1]) for _ in range(EQUAL_MESSAGES)]
    if not counts[0]:
        raise NotExercised("the first `stream_end` has no `usage.output_tokens`")
    grows = all(before < after for before, after in itertools.pairwise(counts))
    if grows and counts[-1] >= TOTAL_FACTOR * counts[0]:
        raise Broken(f"`output_tokens` of {EQUAL_MESSAGES} identical messages: {', '.join(map(str, counts))}")


@SUITE.check("js.error.provider", "SHOULD", "4.2")
async def provider_errors_are_told(stage: Stage) -> None:
    """A failing model is reported as `provider_error`; the conversation continues."""
    async with stage.agent("--base-url", NOWHERE) as agent:
        msg_id = await say(stage, agent, "unreachable")
        found = await agent.expect("`stream_end` after a failure of the model", ends(msg_id), stage.target.timeout)
        errors = [event for event in found if event.type == "error"]
        if not errors:
            raise NotExercised("the model did not fail")
        code = errors[-1].member("error", "code")
        if code != "provider_error" or errors[-1].msg_id != msg_id:
            raise Broken(f"the failure has the code {code!a} and the `msg_id` {errors[-1].msg_id!a}")
        again = await say(stage, agent, "hello")
        await agent.expect("`stream_end` of the next message", ends(again), stage.target.timeout)


async def _understands(stage: Stage, agent: Subject, before: bytes, after: bytes, what: str) -> None:
    msg_id = new_id()
    line = {"type": "message", "msg_id": msg_id, "input": stage.prompt("hello")}
    await agent.write(before + jsontext.dumps(line) + after)
    found = await agent.expect(f"the answer to {what}", ends(msg_id), stage.target.timeout)
    if any(event.type == "error" for event in found):
        raise Broken(f"{what} got an `error`")


async def _through(stage: Stage, agent: Subject, last: str) -> list[SeenEvent]:
    return await agent.expect("`stream_end` of the last message", ends(last), stage.target.timeout)


def _output_tokens(end: SeenEvent) -> int:
    count = end.member("usage", "output_tokens")
    return count if isinstance(count, int) and not isinstance(count, bool) else 0
