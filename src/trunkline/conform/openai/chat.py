"""Checks of chat completions that come whole."""

from __future__ import annotations

import time
from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Broken, Judgement, NotApplicable
from trunkline.conform.openai.answer import JSON_TYPE, OpenAIAnswer, is_count, is_text, member
from trunkline.conform.openai.scenes import FINISH_REASONS, chunks, content, fine, finish
from trunkline.conform.openai.stage import Stage, word
from trunkline.conform.openai.suite import SUITE
from trunkline.conform.record import Record

#: What UTF-8 is for: two, three and four bytes, and a mark that joins the letter before it.
BEYOND_ASCII = "\u00e4\u00f6\u00fc \u6f22\u5b57 \U0001f642 e\u0301"
#: How far a clock may be off. Milliseconds in place of seconds are off by far more.
_CLOCK_SECONDS = 7 * 24 * 3600


def answers(record: Record) -> list[OpenAIAnswer]:
    """The answers of a conversation."""
    return [entry.data for entry in record.entries if isinstance(entry.data, OpenAIAnswer)]


@SUITE.check("openai.chat.answer", "MUST", "Chat")
async def messages_are_answered(stage: Stage) -> None:
    """`POST /chat/completions` is answered with 200 and JSON, with a message of the assistant that has a text."""
    answer = fine(await stage.chat())
    expect(answer.type == JSON_TYPE, f"{answer.asked} was answered with the type {short(answer.type)}")
    expect(bool(content(answer)), f"{answer.asked} was answered with {answer.shown}, without a text")
    role = answer.member("choices", 0, "message", "role")
    expect(role == "assistant", f"{answer.asked} was answered with a message of the role {short(role)}")


@SUITE.check("openai.chat.shape", "MUST", "Chat")
async def completions_have_a_shape(stage: Stage) -> None:
    """A completion has an `id`, the object `chat.completion`, a `model`, and choices with their index."""
    answer = fine(await stage.chat())
    whole = is_text(answer.member("id")) and is_text(answer.member("model"))
    whole = whole and answer.member("object") == "chat.completion" and answer.member("choices", 0, "index") == 0
    expect(whole, f"{answer.asked} was answered with {answer.shown}, which is not a complete one")


@SUITE.check("openai.chat.created", "MUST", "Chat")
async def completions_have_a_time(stage: Stage) -> None:
    """`created` is an integer: seconds since 1970."""
    answer = fine(await stage.chat())
    found = answer.member("created")
    near = is_count(found) and abs(found - time.time()) < _CLOCK_SECONDS
    expect(near, f"{answer.asked} was answered with `created` {short(found)}, not with seconds since 1970")


@SUITE.check("openai.chat.finish", "MUST", "Chat")
async def completions_say_why_they_end(stage: Stage) -> None:
    """`finish_reason` is one of the known values; `stop` for an answer that ended by itself."""
    answer = fine(await stage.chat())
    expect(finish(answer) == "stop", f"{answer.asked} was answered with `finish_reason` {short(finish(answer))}")


@SUITE.judge("openai.chat.reasons", "MUST", "Chat")
def reasons_are_known(record: Record) -> Judgement:
    """Every `finish_reason` is null or one of the known values."""
    found = [value for answer in answers(record) if answer.status == 200 for value in _finishes(answer)]
    wrong = [value for value in found if value is not None and value not in FINISH_REASONS]
    return Judgement(len(found), f"a `finish_reason` is {short(wrong[0])}" if wrong else None)


def _finishes(answer: OpenAIAnswer) -> list[Any]:
    wholes = chunks(answer) if answer.is_stream else [answer.data]
    choices = [choice for each in wholes for choice in _choices(each)]
    return [member(choice, "finish_reason") for choice in choices]


def _choices(data: Any) -> list[Any]:
    found = member(data, "choices")
    return found if isinstance(found, list) else []


@SUITE.judge("openai.chat.usage", "MUST", "Chat", "the server told of no usage")
def usage_adds_up(record: Record) -> Judgement:
    """`usage` has `prompt_tokens`, `completion_tokens` and `total_tokens`: integers, the last the sum of the others."""
    found = []
    for answer in answers(record):
        wholes = chunks(answer) if answer.is_stream else [answer.data]
        found += [each["usage"] for each in wholes if _choices(each) or member(each, "choices") == []
                  if member(each, "usage") is not None]  # fmt: skip
    for usage in found:
        numbers = [member(usage, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
        if not all(map(is_count, numbers)) or numbers[0] + numbers[1] != numbers[2]:
            return Judgement(len(found), f"the usage {short(usage)} does not add up")
    return Judgement(len(found))


@SUITE.check("openai.chat.counted", "SHOULD", "Chat")
async def tokens_are_counted(stage: Stage) -> None:
    """A completion tells its `usage`, with at least one token on each side."""
    answer = fine(await stage.chat())
    told = [answer.member("usage", name) for name in ("prompt_tokens", "completion_tokens")]
    counted = all(is_count(each) and each > 0 for each in told)
    expect(counted, f"{answer.asked} was answered with the `usage` {short(answer.member('usage'))}")


@SUITE.check("openai.chat.ids", "SHOULD", "Chat")
async def ids_are_unique(stage: Stage) -> None:
    """Every completion has an `id` of its own."""
    found = [fine(await stage.chat()).member("id") for _ in range(3)]
    expect(len(set(map(str, found))) == len(found), f"three completions have the ids {short(found)}")


@SUITE.check("openai.chat.history", "MUST", "Chat")
async def conversations_are_taken(stage: Stage) -> None:
    """Messages of the system, the developer, the user and the assistant are taken, as many as there are."""
    said = {"role": "user", "content": stage.prompt("hello")}
    for first in ("system", "developer"):
        messages = [{"role": first, "content": "Be brief."}, said, {"role": "assistant", "content": "hello"}, said]
        answer = fine(await stage.chat(messages=messages))
        expect(bool(content(answer)), f"{answer.asked} was answered with {answer.shown}, without a text")


@SUITE.check("openai.chat.remembers", "SHOULD", "Chat")
async def conversations_are_heeded(stage: Stage) -> None:
    """The messages before the last are what the model knows of the conversation."""
    count, hello = stage.prompt("count"), stage.prompt("hello")
    said = [{"role": "user", "content": hello}, {"role": "assistant", "content": "hello"}]
    answer = fine(await stage.chat(messages=[*said, {"role": "user", "content": count}]))
    digits = "".join(each if each.isdigit() else " " for each in content(answer)).split()
    if not digits:
        raise NotApplicable("the model does not count; the prompt `count` must make it tell how many messages came")
    expect(digits[-1] == "2", f"{answer.asked}, the second message, was answered with {short(content(answer))}, not 2")


@SUITE.check("openai.chat.parts", "MUST", "Chat")
async def contents_may_be_parts(stage: Stage) -> None:
    """The `content` of a message may be a list of parts."""
    parts = [{"type": "text", "text": stage.prompt("hello")}]
    answer = fine(await stage.chat(messages=[{"role": "user", "content": parts}]))
    expect(bool(content(answer)), f"{answer.asked} was answered with {answer.shown}, without a text")


@SUITE.check("openai.chat.unicode", "MUST", "Chat")
async def text_is_utf8(stage: Stage) -> None:
    """Characters outside ASCII survive in both directions."""
    mark = word()
    answer = fine(await stage.chat("repeat", f"{mark} {BEYOND_ASCII}"))
    if mark not in content(answer):
        raise NotApplicable(f"the model does not repeat what it is told: it said {short(content(answer))}")
    if BEYOND_ASCII not in content(answer):
        raise Broken(f"asked to repeat {short(f'{mark} {BEYOND_ASCII}')}, the model said {short(content(answer))}")


@SUITE.check("openai.chat.options", "SHOULD", "Chat")
async def options_are_taken(stage: Stage) -> None:
    """What clients send by default is taken: `temperature`, `top_p`, `n` 1, `user`, `stream` false, null for others."""
    usual: dict[str, Any] = {"temperature": 1, "top_p": 1, "n": 1, "user": "conform", "stream": False}
    fine(await stage.chat(**usual, stop=None, max_tokens=None, seed=None, presence_penalty=0, frequency_penalty=0))
