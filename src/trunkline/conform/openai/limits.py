"""Checks of what bounds or shapes an answer: `stop`, `max_tokens`, `n`, `response_format`."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Broken, NotApplicable
from trunkline.conform.openai.answer import OpenAIAnswer, member, parsed
from trunkline.conform.openai.scenes import content, fine, finish, refused
from trunkline.conform.openai.stage import Stage, word
from trunkline.conform.openai.suite import SUITE

#: A limit that the answer to `long` exceeds by far.
FEW_TOKENS = 8
#: The most characters that so few tokens can be, generously.
_MOST_CHARS = 20 * FEW_TOKENS

_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


async def _stopped(stage: Stage, as_list: bool, stream: bool) -> None:
    """An answer ends before the sequence, which is not in it."""
    before, end, after = word(), word(), word()
    given: Any = [end, "conform never said"] if as_list else end
    answer = fine(await stage.chat("repeat", f"{before} {end} {after}", stop=given, stream=stream))
    text = content(answer)
    if before not in text:
        raise NotApplicable(f"the model does not repeat what it is told: it said {short(text)}")
    if end in text or after in text:
        raise Broken(f"{answer.asked} was answered with {short(text)}, which does not end before {short(end)}")
    expect(finish(answer) == "stop", f"{answer.asked} was answered with `finish_reason` {short(finish(answer))}")


@SUITE.check("openai.limit.stop", "MUST", "Chat")
async def stop_is_a_text(stage: Stage) -> None:
    """An answer ends before the text of `stop`, with the reason `stop`."""
    await _stopped(stage, as_list=False, stream=False)


@SUITE.check("openai.limit.stops", "MUST", "Chat")
async def stop_is_a_list(stage: Stage) -> None:
    """`stop` may be a list; an answer ends before the first of them."""
    await _stopped(stage, as_list=True, stream=False)


@SUITE.check("openai.limit.stop-stream", "MUST", "Chat")
async def stop_ends_streams(stage: Stage) -> None:
    """`stop` ends streamed answers, too."""
    await _stopped(stage, as_list=True, stream=True)


def _is_cut(answer: OpenAIAnswer) -> None:
    text = content(answer)
    if finish(answer) == "stop" and len(text) < 4 * FEW_TOKENS:
        raise NotApplicable(f"the answer {short(text)} was short by itself; the prompt `long` must make it long")
    expect(finish(answer) == "length", f"{answer.asked} was answered with `finish_reason` {short(finish(answer))}")
    expect(len(text) <= _MOST_CHARS, f"{answer.asked} was answered with {len(text)} characters")


@SUITE.check("openai.limit.max-tokens", "MUST", "Chat")
async def answers_are_cut(stage: Stage) -> None:
    """An answer has at most `max_tokens` tokens; one that was cut off there ends with the reason `length`."""
    _is_cut(fine(await stage.chat("long", max_tokens=FEW_TOKENS)))


@SUITE.check("openai.limit.max-completion", "SHOULD", "Chat")
async def the_newer_name_works(stage: Stage) -> None:
    """`max_completion_tokens` does the same."""
    _is_cut(fine(await stage.chat("long", max_completion_tokens=FEW_TOKENS)))


@SUITE.check("openai.limit.max-stream", "MUST", "Chat")
async def streams_are_cut(stage: Stage) -> None:
    """`max_tokens` cuts streamed answers, too."""
    _is_cut(fine(await stage.chat("long", max_tokens=FEW_TOKENS, stream=True)))


@SUITE.check("openai.limit.n", "MUST", "Chat")
async def several_choices_or_none(stage: Stage) -> None:
    """`n` of 2 gives two choices, each with its index, or is refused with 400."""
    answer = await stage.chat(n=2)
    if answer.status == 200:
        found = [member(each, "index") for each in answer.member("choices") or ()]
        expect(sorted(map(str, found)) == ["0", "1"], f"{answer.asked} was answered with the choices {short(found)}")
        return
    refused(answer, "two choices", 400)


async def _formatted(stage: Stage, form: dict[str, Any]) -> Any:
    """The JSON value of an answer in a format, which may be refused."""
    answer = await stage.chat("json", response_format=form)
    if answer.status != 200:
        refused(answer, "a format", 400)
        raise NotApplicable(f"the server refuses the format: {answer.told}")
    found = parsed(content(answer).encode("utf-8", "surrogatepass"))
    expect(isinstance(found, dict), f"{answer.asked} was answered with {short(content(answer))}, not with an object")
    return found


@SUITE.check("openai.limit.json", "SHOULD", "Chat")
async def json_is_json(stage: Stage) -> None:
    """With the `response_format` `json_object` the answer is a JSON object, or the request is refused with 400."""
    await _formatted(stage, {"type": "json_object"})


@SUITE.check("openai.limit.schema", "SHOULD", "Chat")
async def schemas_are_followed(stage: Stage) -> None:
    """With a JSON schema the answer follows it, or the request is refused with 400."""
    schema = {"name": "conform", "strict": True, "schema": _SCHEMA}
    found = await _formatted(stage, {"type": "json_schema", "json_schema": schema})
    follows = set(found) == {"answer"} and isinstance(found["answer"], int)
    expect(follows, f"the answer {short(found)} does not follow the schema")
