"""What checks have in common: what an answer says, and what is said of it."""

from __future__ import annotations

from typing import Any

from trunkline.conform.kit import Broken, NotApplicable
from trunkline.conform.openai.answer import OpenAIAnswer, SentEvent, is_text, member
from trunkline.conform.openai.stage import Stage

#: Statuses of a server that does not have a part of the interface.
MISSING = (404, 405, 501)

FINISH_REASONS = frozenset(("stop", "length", "tool_calls", "content_filter", "function_call"))


def fine(answer: OpenAIAnswer) -> OpenAIAnswer:
    """A request was answered as it should be.

    Raises:
        Broken: it was refused.
    """
    if answer.status != 200:
        raise Broken(f"{answer.asked} was answered with {answer.told}, not with 200")
    return answer


def offered(answer: OpenAIAnswer, what: str) -> OpenAIAnswer:
    """The same, of something that a server need not have.

    Raises:
        NotApplicable: it has not.
        Broken: the request was refused for another reason.
    """
    if answer.status in MISSING:
        raise NotApplicable(f"the server offers no {what}: {answer.asked} was answered with {answer.status}")
    return fine(answer)


def refused(answer: OpenAIAnswer, why: str, *statuses: int) -> None:
    """A request was refused, with one of these statuses.

    Raises:
        Broken: it was not.
    """
    if answer.status not in statuses:
        wanted = " or ".join(map(str, statuses))
        raise Broken(f"{answer.asked} ({why}) was answered with {answer.told}, not with {wanted}")
    if not is_text(answer.member("error", "message")):
        raise Broken(f"{answer.asked} ({why}) was answered with {answer.told}, without an `error` that says why")


async def lives(stage: Stage, after: str) -> None:
    """The server still answers.

    Raises:
        Broken: it does not.
    """
    try:
        fine(await stage.chat())
    except Broken as problem:
        raise Broken(f"after {after}: {problem}") from None


# Chat completions.


def content(answer: OpenAIAnswer) -> str:
    """The text of a completion, whole or streamed."""
    if answer.is_stream:
        return "".join(str(member(each, "choices", 0, "delta", "content") or "") for each in chunks(answer))
    return str(answer.member("choices", 0, "message", "content") or "")


def finish(answer: OpenAIAnswer) -> Any:
    """Why a completion ended."""
    if answer.is_stream:
        found = [member(each, "choices", 0, "finish_reason") for each in chunks(answer)]
        return next((each for each in found if each is not None), None)
    return answer.member("choices", 0, "finish_reason")


def chunks(answer: OpenAIAnswer) -> list[Any]:
    """The chunks of a streamed completion."""
    return [event.data for event in answer.events if isinstance(event.data, dict)]


# Responses.


def output_text(response: Any) -> str:
    """The text of a response."""
    found = []
    for item in member(response, "output") or ():
        for part in (member(item, "content") or ()) if member(item, "type") == "message" else ():
            if member(part, "type") == "output_text":
                found.append(str(member(part, "text") or ""))
    return "".join(found)


def of_type(events: tuple[SentEvent, ...], kind: str) -> list[Any]:
    """The events of a stream with that type."""
    return [event.data for event in events if member(event.data, "type") == kind]
