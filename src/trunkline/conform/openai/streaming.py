"""Checks of chat completions that are streamed."""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Broken, Judgement, NotApplicable
from trunkline.conform.openai.answer import DONE, EVENTS_TYPE, OpenAIAnswer, is_count, is_text, member
from trunkline.conform.openai.chat import answers
from trunkline.conform.openai.scenes import chunks, content, fine, lives, refused
from trunkline.conform.openai.stage import CHAT, Stage, word
from trunkline.conform.openai.suite import SUITE
from trunkline.conform.record import Record

#: An answer of so many tokens, and of at least so many characters, is one that nobody has at once.
_SOME_TOKENS, _LONG_CHARS = 20, 60
#: How many streams run at once where several do.
SEVERAL = 4


async def _streamed(stage: Stage, prompt: str = "hello", **more: Any) -> OpenAIAnswer:
    return fine(await stage.chat(prompt, stream=True, **more))


def is_chat_stream(answer: OpenAIAnswer) -> bool:
    """Whether an answer is a streamed completion."""
    return (
        answer.is_stream
        and answer.status == 200
        and any(member(each, "choices") is not None for each in chunks(answer))
    )


@SUITE.check("openai.stream.type", "MUST", "Streaming")
async def streams_have_their_type(stage: Stage) -> None:
    """A stream has the content type `text/event-stream`."""
    answer = await _streamed(stage)
    expect(answer.type == EVENTS_TYPE, f"{answer.asked} was answered with the type {short(answer.type)}")


@SUITE.check("openai.stream.text", "MUST", "Streaming")
async def streams_have_a_text(stage: Stage) -> None:
    """The `content` of the deltas, one after the other, is the answer."""
    mark = word()
    answer = fine(await stage.chat("repeat", mark, stream=True))
    expect(bool(content(answer)), f"{answer.asked} was answered with a stream without a text: {answer.shown}")
    if mark not in content(answer):
        raise NotApplicable(f"the model does not repeat what it is told: it said {short(content(answer))}")


@SUITE.judge("openai.stream.done", "MUST", "Streaming")
def streams_end(record: Record) -> Judgement:
    """The last event of a stream is `[DONE]`, and there is one."""
    found = [answer for answer in answers(record) if is_chat_stream(answer)]
    for answer in found:
        texts = [event.text for event in answer.events]
        if texts[-1:] != [DONE] or texts.count(DONE) != 1:
            return Judgement(
                len(found), f"the stream for {answer.asked} ends with {short(texts[-1:])}, not with {DONE}"
            )
    return Judgement(len(found))


@SUITE.judge("openai.stream.shape", "MUST", "Streaming")
def chunks_have_a_shape(record: Record) -> Judgement:
    """Every event is a chunk: JSON with `id`, the object `chat.completion.chunk`, `created`, `model` and `choices`."""
    found = [answer for answer in answers(record) if is_chat_stream(answer)]
    for answer in found:
        for event in answer.events:
            data = event.data
            if event.text == DONE or member(data, "error") is not None:
                continue
            whole = is_text(member(data, "id")) and is_text(member(data, "model")) and is_count(member(data, "created"))
            whole = whole and isinstance(member(data, "choices"), list)
            if not whole or member(data, "object") != "chat.completion.chunk":
                return Judgement(len(found), f"the chunk {short(event.text)} is not as it should be")
    return Judgement(len(found))


@SUITE.judge("openai.stream.ids", "MUST", "Streaming")
def chunks_belong_together(record: Record) -> Judgement:
    """All chunks of a stream have the same `id`, `created` and `model`."""
    found = [answer for answer in answers(record) if is_chat_stream(answer)]
    for answer in found:
        for name in ("id", "created", "model"):
            values = {str(member(each, name)) for each in chunks(answer) if "choices" in each}
            if len(values) > 1:
                return Judgement(len(found), f"the chunks for {answer.asked} have the {name}s {short(sorted(values))}")
    return Judgement(len(found))


@SUITE.judge("openai.stream.role", "MUST", "Streaming")
def the_first_chunk_has_the_role(record: Record) -> Judgement:
    """The first delta has the role `assistant`."""
    found = [answer for answer in answers(record) if is_chat_stream(answer)]
    for answer in found:
        first = next(each for each in chunks(answer) if member(each, "choices"))
        if member(first, "choices", 0, "delta", "role") != "assistant":
            return Judgement(len(found), f"the first chunk for {answer.asked} is {short(first)}, without the role")
    return Judgement(len(found))


@SUITE.judge("openai.stream.finish", "MUST", "Streaming")
def streams_say_why_they_end(record: Record) -> Judgement:
    """Exactly one chunk has a `finish_reason`, the last one with a choice; in the others it is null."""
    found = [answer for answer in answers(record) if is_chat_stream(answer) and not _failed(answer)]
    for answer in found:
        reasons = [member(each, "choices", 0, "finish_reason") for each in chunks(answer) if member(each, "choices")]
        if reasons[-1] is None or any(each is not None for each in reasons[:-1]):
            return Judgement(len(found), f"the chunks for {answer.asked} have the reasons {short(reasons[-3:])}")
    return Judgement(len(found))


def _failed(answer: OpenAIAnswer) -> bool:
    return any("error" in each for each in chunks(answer))


@SUITE.check("openai.stream.usage", "MUST", "Streaming")
async def usage_comes_last(stage: Stage) -> None:
    """With `include_usage` the last chunk before `[DONE]` has the `usage`, and `choices` that are an empty list."""
    answer = await _streamed(stage, stream_options={"include_usage": True})
    last = chunks(answer)[-1:]
    wanted = bool(last) and last[0].get("choices") == [] and "usage" in last[0]
    expect(wanted, f"the last chunk for {answer.asked} is {short(last)}, not one with `usage` and no choices")
    others = [each for each in chunks(answer)[:-1] if each.get("usage") is not None or not each.get("choices")]
    expect(not others, f"for {answer.asked}, the chunk {short(others)} has a usage or no choices before the last")


@SUITE.check("openai.stream.no-usage", "SHOULD", "Streaming")
async def usage_must_be_asked_for(stage: Stage) -> None:
    """Without `include_usage` every chunk has a choice: clients look at the first."""
    answer = await _streamed(stage)
    wrong = [each for each in chunks(answer) if not each.get("choices")]
    expect(not wrong, f"for {answer.asked}, which asks for no usage, came {short(wrong)}")


@SUITE.judge("openai.stream.lines", "MUST", "Streaming")
def lines_end_plainly(record: Record) -> Judgement:
    """Lines end with a line feed alone, and every event with an empty line."""
    found = [answer for answer in answers(record) if answer.is_stream and answer.status == 200]
    for answer in found:
        if b"\r" in answer.body:
            return Judgement(len(found), f"the stream for {answer.asked} has carriage returns: {answer.shown}")
        if not answer.body.endswith(b"\n\n"):
            return Judgement(len(found), f"the stream for {answer.asked} ends with {short(answer.body[-40:])}")
    return Judgement(len(found))


@SUITE.check("openai.stream.pieces", "SHOULD", "Streaming")
async def long_answers_come_in_pieces(stage: Stage) -> None:
    """A long answer comes in more than one piece."""
    answer = await _streamed(stage, "long", max_tokens=_SOME_TOKENS)
    pieces = [each for each in chunks(answer) if member(each, "choices", 0, "delta", "content")]
    if len(content(answer)) < _LONG_CHARS:
        raise NotApplicable(f"the answer {short(content(answer))} is short; the prompt `long` must make it long")
    expect(len(pieces) > 1, f"{answer.asked} was answered with {len(content(answer))} characters in one piece")


@SUITE.check("openai.stream.refused", "MUST", "Streaming")
async def errors_come_before_streams(stage: Stage) -> None:
    """What is wrong with a request for a stream is told by the status, not within a stream."""
    body = await stage.chat_body(stream=True)
    del body["messages"]
    refused(await stage.asking.ask("POST", CHAT, body), "without `messages`", 400)


@SUITE.check("openai.stream.several", "SHOULD", "Streaming")
async def several_at_once(stage: Stage) -> None:
    """Several streams at once have ids of their own, and each has its own text."""
    words = [word() for _ in range(SEVERAL)]
    found = await asyncio.gather(*(stage.chat("repeat", each, stream=True) for each in words))
    ids = {str(member(chunks(fine(each))[0], "id")) for each in found if chunks(fine(each))}
    expect(len(ids) == SEVERAL, f"{SEVERAL} streams at once have the ids {short(sorted(ids))}")
    for own, answer in zip(words, found, strict=True):
        others = [each for each in words if each != own and each in content(answer)]
        expect(not others, f"the stream that was asked for {short(own)} has {short(content(answer))}")


@SUITE.check("openai.stream.left", "MUST", "Streaming")
async def clients_may_leave(stage: Stage) -> None:
    """A client that hangs up in the middle of a stream does not hurt the server."""
    body = await stage.chat_body("long", stream=True)
    for _ in range(3):
        await stage.asking.leave(CHAT, body)
    try:
        await lives(stage, "clients hung up")
    except Broken as problem:
        raise Broken(f"{problem}, although a client may leave at any time") from None
