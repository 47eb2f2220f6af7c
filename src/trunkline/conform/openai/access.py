"""Checks of keys, for a server that needs one."""

from __future__ import annotations

from trunkline.conform.kit import Judgement, NotApplicable
from trunkline.conform.openai.answer import OpenAIAnswer
from trunkline.conform.openai.chat import answers
from trunkline.conform.openai.scenes import refused
from trunkline.conform.openai.stage import CHAT, Stage, word
from trunkline.conform.openai.suite import SUITE
from trunkline.conform.record import Record

#: The beginning of keys that the kit makes up, by which they are known if a server repeats them.
WRONG_KEY = "sk-conform-wrong-"


async def _with_key(stage: Stage, key: str) -> OpenAIAnswer:
    if not stage.target.key:
        raise NotApplicable("no `OPENAI_API_KEY` is set, so the server is asked without a key")
    answer = await stage.asking.ask("POST", CHAT, await stage.chat_body(), key=key)
    if answer.status == 200 and not key:
        raise NotApplicable("the server needs no key: it answers without one")
    return answer


@SUITE.check("openai.auth.none", "MUST", "Authentication")
async def a_key_is_needed(stage: Stage) -> None:
    """A request without a key is refused with 401, if the server needs one."""
    refused(await _with_key(stage, ""), "without a key", 401)


@SUITE.check("openai.auth.wrong", "MUST", "Authentication")
async def a_wrong_key_is_refused(stage: Stage) -> None:
    """A request with a wrong key is refused with 401, if the server needs one."""
    await _with_key(stage, "")
    refused(await _with_key(stage, WRONG_KEY + word()), "with a wrong key", 401)


@SUITE.check("openai.auth.models", "SHOULD", "Authentication")
async def the_list_needs_a_key_too(stage: Stage) -> None:
    """The list of models needs the key, too, if completions do."""
    await _with_key(stage, "")
    refused(await stage.asking.ask("GET", "/models", key=WRONG_KEY + word()), "with a wrong key", 401)


@SUITE.judge("openai.auth.kept", "MUST", "Authentication", "no wrong key was tried")
def keys_are_not_repeated(record: Record) -> Judgement:
    """An error does not repeat the key that was sent."""
    found = [answer for answer in answers(record) if answer.status == 401]
    leaks = [answer for answer in found if WRONG_KEY.encode() in answer.body and answer.body.count(b"*") < 3]
    return Judgement(len(found), f"{leaks[0].asked} was answered with the key in it" if leaks else None)
