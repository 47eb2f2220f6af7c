"""Checks of what is refused: by its status, and in OpenAI's form."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Broken, Judgement
from trunkline.conform.openai.answer import JSON_TYPE, is_text
from trunkline.conform.openai.chat import answers
from trunkline.conform.openai.scenes import refused
from trunkline.conform.openai.stage import CHAT, Stage, word
from trunkline.conform.openai.suite import SUITE
from trunkline.conform.record import Record


@SUITE.judge("openai.error.shape", "MUST", "Errors")
def errors_have_a_shape(record: Record) -> Judgement:
    """Every error is JSON: an object `error` with a `message` and a `type`."""
    found = [answer for answer in answers(record) if answer.status >= 400]
    for answer in found:
        whole = is_text(answer.member("error", "message")) and is_text(answer.member("error", "type"))
        if not whole or answer.type != JSON_TYPE:
            told = f"{answer.asked} was answered with {answer.told} of the type {short(answer.type)}"
            return Judgement(len(found), f"{told}, without a `message` and a `type` in `error`")
    return Judgement(len(found))


@SUITE.judge("openai.error.members", "SHOULD", "Errors")
def errors_have_all_members(record: Record) -> Judgement:
    """An error has the members `param` and `code`, too, which may be null."""
    found = [answer for answer in answers(record) if answer.status >= 400]
    for answer in found:
        error = answer.member("error")
        if not isinstance(error, dict) or "param" not in error or "code" not in error:
            return Judgement(len(found), f"{answer.asked} was answered with {answer.told}, without `param` and `code`")
    return Judgement(len(found))


@SUITE.judge("openai.error.status", "MUST", "Errors")
def errors_have_a_status(record: Record) -> Judgement:
    """No answer with the status 200 is an error."""
    found = [answer for answer in answers(record) if answer.status < 400]
    for answer in found:
        if not answer.is_stream and answer.member("error") is not None:
            return Judgement(len(found), f"{answer.asked} was answered with {answer.told}, which is an error")
    return Judgement(len(found))


async def _refused(stage: Stage, why: str, *without: str, **more: Any) -> None:
    body = await stage.chat_body(**more)
    for name in without:
        del body[name]
    refused(await stage.asking.ask("POST", CHAT, body), why, 400)


@SUITE.check("openai.error.json", "MUST", "Errors")
async def broken_json_is_refused(stage: Stage) -> None:
    """A body that is not JSON is refused with 400."""
    refused(await stage.asking.ask("POST", CHAT, content=b'{"model": "x", "messages": [{'), "not JSON", 400)


@SUITE.check("openai.error.object", "MUST", "Errors")
async def other_json_is_refused(stage: Stage) -> None:
    """A body that is not an object, or empty, is refused with 400."""
    for content in (b"[]", b'"hello"', b"7", b""):
        refused(await stage.asking.ask("POST", CHAT, content=content), f"the body {content.decode()!r}", 400)


@SUITE.check("openai.error.model", "MUST", "Errors")
async def unknown_models_are_refused(stage: Stage) -> None:
    """A model that does not exist is refused."""
    refused(await stage.chat(model=word()), "no such model", 404, 400)


@SUITE.check("openai.error.model-status", "SHOULD", "Errors")
async def unknown_models_are_404(stage: Stage) -> None:
    """A model that does not exist is 404."""
    refused(await stage.chat(model=word()), "no such model", 404)


@SUITE.check("openai.error.no-model", "SHOULD", "Errors")
async def models_are_required(stage: Stage) -> None:
    """A request without `model` is refused with 400."""
    await _refused(stage, "without `model`", "model")


@SUITE.check("openai.error.messages", "MUST", "Errors")
async def messages_are_required(stage: Stage) -> None:
    """A request without `messages` is refused with 400."""
    await _refused(stage, "without `messages`", "messages")


@SUITE.check("openai.error.empty", "SHOULD", "Errors")
async def there_must_be_a_message(stage: Stage) -> None:
    """A request with an empty list of `messages` is refused with 400."""
    await _refused(stage, "no messages", messages=[])


@SUITE.check("openai.error.types", "MUST", "Errors")
async def wrong_messages_are_refused(stage: Stage) -> None:
    """`messages` of wrong types are refused with 400."""
    wrong: tuple[Any, ...] = ("hello", 7, ["hello"], [{"role": "user", "content": 7}], [{"content": "hello"}])
    for messages in wrong:
        await _refused(stage, "`messages` of a wrong type", messages=messages)


@SUITE.check("openai.error.options", "SHOULD", "Errors")
async def wrong_options_are_refused(stage: Stage) -> None:
    """Options of wrong types are refused with 400."""
    wrong: tuple[dict[str, Any], ...] = ({"stream": "yes"}, {"max_tokens": "many"}, {"temperature": "hot"}, {"stop": 7})
    for options in wrong:
        await _refused(stage, "an option of a wrong type", **options)


@SUITE.check("openai.error.role", "SHOULD", "Errors")
async def unknown_roles_are_refused(stage: Stage) -> None:
    """A message of an unknown role is refused with 400."""
    await _refused(stage, "an unknown role", messages=[{"role": "conform", "content": "hello"}])


@SUITE.check("openai.error.path", "SHOULD", "Errors")
async def unknown_paths_are_404(stage: Stage) -> None:
    """A path that does not exist is 404."""
    refused(await stage.asking.ask("POST", f"/{word()}", {}), "no such path", 404)


@SUITE.check("openai.error.method", "SHOULD", "Errors")
async def other_methods_are_refused(stage: Stage) -> None:
    """`GET /chat/completions` is not answered as if it were a request for a completion."""
    answer = await stage.asking.ask("GET", CHAT)
    if answer.status >= 500:
        raise Broken(f"{answer.asked} was answered with {answer.told}, not with 404 or 405")
    expect(answer.member("choices") is None, f"{answer.asked} was answered with {answer.told}, a completion")
