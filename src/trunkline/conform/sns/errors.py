"""Checks of answers as such: their form, what they never tell, and bodies that are not JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trunkline.conform.kit import Broken, Judgement
from trunkline.conform.record import Record
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import SUITE, answered, check

#: Deeper than any parser that calls itself can go.
DEPTH = 20_000

_NOT_JSON = (
    b"",
    b"{",
    b"nul",
    b'{"a": NaN}',
    b'{"a": [1,]}',
    b'{"a": 1} x',
    b'{"a": "\xff"}',
    b"[" * DEPTH + b"]" * DEPTH,
)
_BROKEN = 500
_ORIGIN = "https://somewhere.example"


@check("sns.error.malformed", "SHOULD", "Details")
async def malformed(stage: Stage) -> None:
    """A signed write whose body is not JSON gets 400."""
    agent = await stage.agent()
    for content in _NOT_JSON:
        draft = await stage.draft(agent, "POST", "/api/threads", b" ", "{}")
        answer = await stage.ask(draft.method, draft.path, draft.headers, content)
        if answer.status != 400:
            raise Broken(f"{answer.asked} with {content[:20]!a} was answered with {answer.status}, not 400")


@check("sns.error.values", "SHOULD", "Details")
async def other_values(stage: Stage) -> None:
    """A JSON body that is not an object, or has members of the wrong type, is refused and does no harm."""
    agent = await stage.agent()
    for content, canonical in ((b"[1]", "[1]"), (b'"text"', '"text"'), (b"null", "null"), (b"{}", "{}")):
        answered(await stage.send(await stage.draft(agent, "POST", "/api/threads", content, canonical)), 400)
    answered(await stage.send(await stage.thread_draft(agent, title={"a": 1})), 400)
    answered(await stage.send(await stage.thread_draft(agent, body=["a"])), 400)


@check("sns.cors.preflight", "SHOULD", "Details")
async def preflight(stage: Stage) -> None:
    """A preflight request gets 200 or 204; if the origin is allowed, the response lists PATCH and the headers of the
    wire.
    """
    headers = {"origin": _ORIGIN, "access-control-request-method": "PATCH"}
    answer = await stage.ask("OPTIONS", "/api/threads", headers)
    answered(answer, 200, 204)
    origin = answer.headers.get("access-control-allow-origin")
    if origin in ("*", _ORIGIN):
        raise Broken(f"any origin is allowed: {origin!a}")
    if origin is None:
        return
    methods = answer.headers.get("access-control-allow-methods", "").upper()
    allowed = answer.headers.get("access-control-allow-headers", "").lower()
    wanted = ("x-runner-token", "x-agent-id", "x-agent-nonce", "x-agent-timestamp", "x-agent-signature")
    if missing := [name for name in wanted if name not in allowed]:
        raise Broken(f"it does not name {', '.join(missing)}")
    if "PATCH" not in methods:
        raise Broken(f"it does not name PATCH, but {methods!a}")


@SUITE.judge("sns.cors.wildcard", "SHOULD", "Details")
def wildcard(record: Record) -> Judgement:
    """No response allows every origin (`*`)."""
    return _first(record, lambda answer: answer.headers.get("access-control-allow-origin") == "*", "says `*`")


@SUITE.judge("sns.error.server", "MUST", "Validation")
def server_errors(record: Record) -> Judgement:
    """Nothing that a runner sends makes the network fail: no response is 5xx."""
    return _first(record, lambda answer: answer.status >= _BROKEN, "is an internal error")


@SUITE.judge("sns.error.shape", "SHOULD", "Details")
def shape(record: Record) -> Judgement:
    """Every error response is a JSON object with a string `error`."""
    refusals = [answer for answer in _answers(record) if 400 <= answer.status < _BROKEN]
    wrong = [answer for answer in refusals if not _is_told(answer)]
    return Judgement(len(refusals), _told(wrong, "has no `error`"))


@SUITE.judge("sns.error.success", "SHOULD", "Details")
def success(record: Record) -> Judgement:
    """Success is 200, for writes as well."""
    successes = [answer for answer in _answers(record) if answer.status < 300 and not answer.asked.startswith("OPTION")]
    return Judgement(len(successes), _told([each for each in successes if each.status != 200], "is not 200"))


@SUITE.judge("sns.error.secrets", "MUST", "Forbidden")
def secrets(record: Record) -> Judgement:
    """No response repeats a token that was sent."""
    return _first(record, lambda answer: answer.leaked, "contains the token of the request")


def _answers(record: Record) -> Iterator[SnsResponse]:
    return (entry.data for entry in record.entries if isinstance(entry.data, SnsResponse))


def _first(record: Record, is_wrong: Callable[[SnsResponse], bool], what: str) -> Judgement:
    answers = list(_answers(record))
    return Judgement(len(answers), _told([answer for answer in answers if is_wrong(answer)], what))


def _is_told(answer: SnsResponse) -> bool:
    is_json = answer.headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    return is_json and isinstance(answer.member("error"), str) and bool(answer.member("error"))


def _told(wrong: list[SnsResponse], what: str) -> str | None:
    if not wrong:
        return None
    first = wrong[0]
    return f"the answer {first.status} {first.shown!a} to {first.asked} {what}"
