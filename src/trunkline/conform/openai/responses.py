"""Checks of Responses that come whole; a server need not have them."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Judgement, NotApplicable
from trunkline.conform.openai.answer import OpenAIAnswer, is_count, is_text, member
from trunkline.conform.openai.chat import answers
from trunkline.conform.openai.scenes import MISSING, of_type, offered, output_text, refused
from trunkline.conform.openai.stage import RESPONSES, Stage, word
from trunkline.conform.openai.suite import SUITE
from trunkline.conform.record import Record

OFFER = "`POST /responses`"


async def _given(stage: Stage, prompt: str = "hello", **more: Any) -> OpenAIAnswer:
    return offered(await stage.respond(prompt, **more), OFFER)


@SUITE.check("openai.responses.answer", "MUST", "Responses")
async def responses_are_given(stage: Stage) -> None:
    """`POST /responses` is answered with 200 and a response that has a text."""
    answer = await _given(stage)
    expect(bool(output_text(answer.data)), f"{answer.asked} was answered with {answer.shown}, without a text")


@SUITE.check("openai.responses.shape", "MUST", "Responses")
async def responses_have_a_shape(stage: Stage) -> None:
    """A response has an `id`, the object `response`, a time, a `model`, the status `completed`, and `output` items."""
    answer = await _given(stage)
    whole = is_text(answer.member("id")) and is_text(answer.member("model")) and answer.member("object") == "response"
    created = answer.member("created_at")
    whole = whole and isinstance(created, int | float) and answer.member("status") == "completed"
    expect(whole and answer.member("error") is None, f"{answer.asked} was answered with {answer.shown}")
    for item in answer.member("output") or ():
        expect(is_text(member(item, "type")) and is_text(member(item, "id")), f"the item {short(item)} lacks an `id`")


@SUITE.check("openai.responses.message", "MUST", "Responses")
async def messages_have_parts(stage: Stage) -> None:
    """An item of the type `message` is the assistant's, and its parts have a `text` and `annotations`."""
    answer = await _given(stage)
    found = [item for item in answer.member("output") or () if member(item, "type") == "message"]
    for item in found:
        expect(member(item, "role") == "assistant", f"the message {short(item)} is not the assistant's")
        for part in member(item, "content") or ():
            fine = member(part, "type") != "output_text" or (
                isinstance(member(part, "text"), str) and isinstance(member(part, "annotations"), list)
            )
            expect(fine, f"the part {short(part)} lacks `text` or `annotations`")
    expect(bool(found), f"{answer.asked} was answered with {answer.shown}, without a `message`")


@SUITE.judge("openai.responses.usage", "MUST", "Responses", "the server told of no usage of a response")
def usage_adds_up(record: Record) -> Judgement:
    """`usage` has `input_tokens`, `output_tokens` and `total_tokens`: integers, the last the sum of the others."""
    found = []
    for answer in answers(record):
        ends = of_type(answer.events, "response.completed") if answer.is_stream else []
        whole = [answer.data] if answer.member("object") == "response" else [member(end, "response") for end in ends]
        found += [each["usage"] for each in whole if member(each, "usage") is not None]
    for usage in found:
        numbers = [member(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens")]
        if not all(map(is_count, numbers)) or numbers[0] + numbers[1] != numbers[2]:
            return Judgement(len(found), f"the usage {short(usage)} does not add up")
    return Judgement(len(found))


@SUITE.check("openai.responses.input", "MUST", "Responses")
async def input_may_be_items(stage: Stage) -> None:
    """`input` may be a list of messages, whose content is a text or a list of parts; `instructions` are taken."""
    text = stage.prompt("hello")
    for content in (text, [{"type": "input_text", "text": text}]):
        answer = await _given(stage, input=[{"role": "user", "content": content}], instructions="Be brief.")
        expect(bool(output_text(answer.data)), f"{answer.asked} was answered with {answer.shown}, without a text")


@SUITE.check("openai.responses.previous", "MUST", "Responses")
async def responses_continue(stage: Stage) -> None:
    """`previous_response_id` continues a conversation."""
    first = await _given(stage, "count")
    if not _number(first):
        raise NotApplicable("the model does not count; the prompt `count` must make it tell how many messages came")
    answer = await stage.respond("count", previous_response_id=str(first.member("id")))
    if answer.status in (400, 404):
        refused(answer, "the id of a response", 400, 404)
        raise NotApplicable(f"the server keeps no responses: {answer.told}")
    offered(answer, OFFER)
    told = f"{answer.asked}, the second message, was answered with {short(output_text(answer.data))}, not 2"
    expect(_number(answer) == "2", told)
    expect(answer.member("id") != first.member("id"), f"two responses have the id {short(first.member('id'))}")


def _number(answer: OpenAIAnswer) -> str:
    digits = "".join(each if each.isdigit() else " " for each in output_text(answer.data)).split()
    return digits[-1] if digits else ""


@SUITE.check("openai.responses.unknown", "MUST", "Responses")
async def unknown_responses_cannot_be_continued(stage: Stage) -> None:
    """A `previous_response_id` that there is not is refused."""
    await _given(stage)
    refused(await stage.respond(previous_response_id=f"resp_{word()}"), "no such response", 400, 404)


@SUITE.check("openai.responses.max-tokens", "MUST", "Responses")
async def responses_are_cut(stage: Stage) -> None:
    """A response that was cut off by `max_output_tokens` has the status `incomplete`, and says so."""
    # The smallest that OpenAI itself takes.
    answer = await _given(stage, "long", max_output_tokens=16)
    text = output_text(answer.data)
    if answer.member("status") == "completed" and len(text) < 64:
        raise NotApplicable(f"the answer {short(text)} was short by itself; the prompt `long` must make it long")
    reason = answer.member("incomplete_details", "reason")
    told = f"{answer.asked} was answered with the status {short(answer.member('status'))}, for {short(reason)}"
    expect(answer.member("status") == "incomplete" and reason == "max_output_tokens", told)


@SUITE.check("openai.responses.missing", "MUST", "Errors")
async def input_is_required(stage: Stage) -> None:
    """A request for a response without `input` is refused with 400."""
    body = await stage.response_body()
    del body["input"]
    answer = await stage.asking.ask("POST", RESPONSES, body)
    if answer.status in MISSING:
        raise NotApplicable(f"the server offers no {OFFER}: {answer.asked} was answered with {answer.status}")
    refused(answer, "without `input`", 400)
